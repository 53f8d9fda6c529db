"""Where runs come from: a start, a parent, the run before, a reset; and what a reset has taken over.

A run that a reset has made has the beginning of its base, and what came later once more: nobody did that a second time.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from temporalio.api.enums.v1 import ContinueAsNewInitiator, WorkflowTaskFailedCause

from history_rules import Violation, closing_of
from logs import Call, Run, attributes_of, name_of


@dataclass(frozen=True)
class Reset:
    """What made a run, as its own history tells it."""

    base_run_id: str
    reason: str
    # The end of the task to which the run went back.
    failed_event_id: int
    at_ns: int


def reset_of(run: Run) -> Reset | None:
    for event in run.events:
        if name_of(event) != "WorkflowTaskFailed":
            continue
        failed = attributes_of(event)
        by_reset = failed.cause == WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW
        if by_reset and failed.new_run_id == run.run_id:
            at_ns = event.event_time.ToNanoseconds()
            return Reset(failed.base_run_id, failed.failure.message, event.event_id, at_ns)
    return None


def begun_ns(run: Run) -> int:
    """When the run began to be the one that its id means."""
    reset = reset_of(run)
    if reset:
        return reset.at_ns
    return run.events[0].event_time.ToNanoseconds() if run.events else 0


def started_of(run: Run) -> Any:
    """How the run began, as its first event has it."""
    return run.events[0].workflow_execution_started_event_attributes


def signal_key(event: Any) -> bytes:
    attributes = attributes_of(event)
    return attributes.signal_name.encode() + attributes.input.SerializeToString(deterministic=True)


@dataclass
class Lineage:
    runs: dict[str, Run]
    resets: dict[str, Reset]
    by_workflow: dict[str, list[Run]]

    @staticmethod
    def of(runs: Iterable[Run]) -> "Lineage":
        all_runs = {run.run_id: run for run in runs}
        resets = {run_id: reset for run_id, run in all_runs.items() if (reset := reset_of(run))}
        by_workflow: dict[str, list[Run]] = defaultdict(list)
        for run in all_runs.values():
            by_workflow[run.workflow_id].append(run)
        for chain in by_workflow.values():
            chain.sort(key=begun_ns)
        return Lineage(all_runs, resets, by_workflow)

    def in_order(self, workflow_id: str) -> list[Run]:
        return self.by_workflow.get(workflow_id, [])

    def past(self, run: Run) -> list[Run]:
        """What a run that was made by a reset must not lose: its base, and the runs that this went on as."""
        reset = self.resets.get(run.run_id)
        past: list[Run] = []
        next_id = reset.base_run_id if reset else ""
        while next_id in self.runs:
            past.append(self.runs[next_id])
            last = past[-1].events[-1] if past[-1].events else None
            is_continued = last is not None and name_of(last) == "WorkflowExecutionContinuedAsNew"
            next_id = attributes_of(last).new_execution_run_id if is_continued else ""
        return past

    def is_copy(self, run: Run, event: Any) -> bool:
        """True of what a reset has taken over as it stood."""
        reset = self.resets.get(run.run_id)
        return reset is not None and event.event_id < reset.failed_event_id

    def repeated_signals(self, run: Run) -> Counter[bytes]:
        """The signals that a reset has written once more."""
        found: Counter[bytes] = Counter()
        for before in self.past(run):
            found |= Counter(signal_key(e) for e in before.events if name_of(e) == "WorkflowExecutionSignaled")
        return found


def check_lineage(lineage: Lineage, calls: Iterable[Call]) -> Iterator[Violation]:
    """Runs that were sent back, by an order that was given; and runs that follow others by themselves."""
    orders: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        if call.kind == "reset":
            orders[call.id].append(call)
    made: dict[str, list[str]] = defaultdict(list)
    for run in lineage.runs.values():
        if run.run_id in lineage.resets:
            made[lineage.resets[run.run_id].reason].append(run.run_id)
            yield from _went_back(lineage, orders, run)
        elif run.events:
            yield from _followed(lineage, run)
    for order_id, tries in orders.items():
        told = {call.run_id for call in tries if call.outcome == "acked"}
        refused = all(call.outcome == "refused" for call in tries)
        runs = made.get(order_id, [])
        if len(runs) > 1 or not told <= set(runs) or (refused and runs):
            what = f"reset {order_id} was answered with {sorted(told)} and made {sorted(runs)}"
            yield Violation("reset", tries[0].workflow_id, "", 0, what)


def _went_back(lineage: Lineage, orders: dict[str, list[Call]], run: Run) -> Iterator[Violation]:
    reset = lineage.resets[run.run_id]

    def wrong(what: str, event_id: int = reset.failed_event_id) -> Violation:
        return Violation("reset", run.workflow_id, run.run_id, event_id, what)

    tries = orders.get(reset.reason)
    if not tries:
        yield wrong(f"nobody ordered the reset {reset.reason!r}")
        return
    base = lineage.runs.get(reset.base_run_id)
    if not base or tries[0].base_run_id != reset.base_run_id:
        yield wrong(f"{tries[0].base_run_id} was to go back, and not {reset.base_run_id}")
        return
    shared = tries[0].number - 1
    if [e.SerializeToString(deterministic=True) for e in base.events[:shared]] != [
        e.SerializeToString(deterministic=True) for e in run.events[:shared]
    ] or reset.failed_event_id <= shared:
        yield wrong(f"its first {shared} events are not those of {base.run_id}", 1)
    has = Counter(signal_key(e) for e in run.events if name_of(e) == "WorkflowExecutionSignaled")
    lost = lineage.repeated_signals(run) - has
    if lost:
        yield wrong(f"it has lost {lost.total()} signals: {next(iter(lost))!r}")
    if any(count > 1 for count in has.values()):
        yield wrong("it has a signal twice")
    accepted = accepted_before(lineage, run)
    known = _updates(run, {"WorkflowExecutionUpdateAccepted", "WorkflowExecutionUpdateAdmitted"})
    for update_id in sorted(accepted - known):
        yield wrong(f"it has lost the update {update_id}")


def accepted_before(lineage: Lineage, run: Run) -> set[str]:
    """The updates that a run which was made by a reset must not lose."""
    past = lineage.past(run)
    return {update for before in past for update in _updates(before, {"WorkflowExecutionUpdateAccepted"})}


def _updates(run: Run, names: set[str]) -> set[str]:
    found = set()
    for event in run.events:
        name = name_of(event)
        if name in names:
            attributes = attributes_of(event)
            is_admitted = name == "WorkflowExecutionUpdateAdmitted"
            # An update that was admitted by an event is accepted without its request.
            found.add(attributes.request.meta.update_id if is_admitted else attributes.protocol_instance_id)
    return found


RETRY = ContinueAsNewInitiator.CONTINUE_AS_NEW_INITIATOR_RETRY
CRON = ContinueAsNewInitiator.CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE
WORKFLOW = ContinueAsNewInitiator.CONTINUE_AS_NEW_INITIATOR_WORKFLOW


def _followed(lineage: Lineage, run: Run) -> Iterator[Violation]:
    """Who follows says why, counts its attempt, and has the last result of those before."""
    started = started_of(run)
    before = lineage.runs.get(started.continued_execution_run_id)
    if not before or not before.events:
        return
    end = name_of(before.events[-1])
    initiators = {
        "WorkflowExecutionContinuedAsNew": {WORKFLOW},
        "WorkflowExecutionCompleted": {CRON},
        "WorkflowExecutionFailed": {RETRY, CRON},
        "WorkflowExecutionTimedOut": {RETRY, CRON},
    }

    def wrong(what: str) -> Violation:
        return Violation("follow", run.workflow_id, run.run_id, 1, what)

    if started.initiator not in initiators.get(end, set()):
        yield wrong(f"it was made by {started.initiator} after {end}")
        return
    former = started_of(before)
    attempt = former.attempt + 1 if started.initiator == RETRY else 1
    if max(started.attempt, 1) != attempt:
        yield wrong(f"it is attempt {started.attempt} after attempt {former.attempt}")
    if started.initiator == CRON:
        is_result = end == "WorkflowExecutionCompleted"
        result = closing_of(before).result if is_result else former.last_completion_result
        if started.last_completion_result != result:
            yield wrong("it has not the last result")
    has_failure = started.HasField("continued_failure")
    if started.initiator != WORKFLOW and has_failure != (end != "WorkflowExecutionCompleted"):
        yield wrong(f"after {end} it has {'a' if has_failure else 'no'} failure")
