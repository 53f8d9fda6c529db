"""Updates: accepted once, answered once, told as they stand, never lost once they are acknowledged."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from history_rules import Violation
from lineage import Lineage
from logs import Call, Run, attributes_of, fate, json_of, name_of


def check_updates(lineage: Lineage, tries: dict[str, list[Call]]) -> Iterator[Violation]:
    accepted: dict[str, list[tuple[Run, int]]] = defaultdict(list)
    outcomes: dict[str, list[tuple[Run, Any]]] = defaultdict(list)
    for run in lineage.runs.values():
        yield from _in_run(lineage, run, accepted, outcomes)
    for update_id, calls in tries.items():
        if calls[0].kind == "update":
            yield from _of_call(lineage, update_id, calls, accepted[update_id], outcomes[update_id])
    for update_id, places in accepted.items():
        calls = tries.get(update_id)
        if not calls or calls[0].kind != "update":
            run, event_id = places[0]
            what = f"an update {update_id!r} that no client sent"
            yield Violation("update", run.workflow_id, run.run_id, event_id, what)


def _in_run(
    lineage: Lineage,
    run: Run,
    accepted: dict[str, list[tuple[Run, int]]],
    outcomes: dict[str, list[tuple[Run, Any]]],
) -> Iterator[Violation]:
    open_updates: dict[int, str] = {}
    known: set[str] = set()
    for event in run.events:
        name = name_of(event)

        def wrong(what: str, event_id: int = event.event_id) -> Violation:
            return Violation("update", run.workflow_id, run.run_id, event_id, what)

        if name == "WorkflowExecutionUpdateAccepted":
            update_id = attributes_of(event).protocol_instance_id
            if update_id in known:
                yield wrong(f"update {update_id} is accepted twice")
            known.add(update_id)
            open_updates[event.event_id] = update_id
            accepted[update_id].append((run, event.event_id))
        if name == "WorkflowExecutionUpdateCompleted":
            attributes = attributes_of(event)
            update_id = open_updates.pop(attributes.accepted_event_id, None)
            if update_id is None or update_id != attributes.meta.update_id:
                yield wrong(f"update {attributes.meta.update_id} is answered, and {update_id} was accepted there")
            outcomes[attributes.meta.update_id].append((run, attributes.outcome))
    if run.events and name_of(run.events[-1]) == "WorkflowExecutionCompleted":
        for event_id, update_id in open_updates.items():
            what = f"update {update_id} was accepted and never answered"
            yield Violation("update", run.workflow_id, run.run_id, event_id, what)


def _is_owed(lineage: Lineage, run: Run, holders: set[str]) -> bool:
    """Whether a run has accepted an update, or was made of one that owed it. What only a run had that a later reset went
    back behind is gone with it."""
    return run.run_id in holders or any(_is_owed(lineage, before, holders) for before in lineage.past(run))


def _of_call(
    lineage: Lineage,
    update_id: str,
    calls: Sequence[Call],
    accepted: list[tuple[Run, int]],
    outcomes: list[tuple[Run, Any]],
) -> Iterator[Violation]:
    """Acknowledged: accepted by somebody, and answered in the end; unknown: perhaps; refused: not at all."""
    workflow_id = calls[0].workflow_id

    def wrong(what: str, run_id: str = "", event_id: int = 0) -> Violation:
        return Violation("update", workflow_id, run_id, event_id, f"update {update_id} {what}")

    what_is_known = fate(calls)
    if what_is_known == "refused" and accepted:
        yield wrong("was refused, and is accepted", accepted[0][0].run_id, accepted[0][1])
    if what_is_known == "acked":
        chain = lineage.in_order(workflow_id)
        holders = {run.run_id for run, _ in accepted}
        if not holders:
            yield wrong("was acknowledged, and nobody has accepted it")
        elif chain and _is_owed(lineage, chain[-1], holders):
            last = chain[-1].run_id
            if last not in holders:
                yield wrong("was acknowledged, and the last run has not accepted it", last)
            elif not any(run.run_id == last for run, _ in outcomes):
                yield wrong("was acknowledged, and the last run has not answered it", last)
    for run, event_id in accepted:
        if run.workflow_id != workflow_id:
            yield wrong(f"is accepted by {run.workflow_id}", run.run_id, event_id)
    for call in calls:
        if call.outcome == "acked" and call.stage == "completed":
            values = [json_of(outcome.success) for _, outcome in outcomes]
            if call.result not in values:
                yield wrong(f"was answered with {call.result}; in histories there is {values}")
