"""Pauses and their ends: acknowledged: recorded once; unknown: at most once; refused: never; none invented."""

from collections import defaultdict
from collections.abc import Iterator

from history_rules import Violation
from lineage import Lineage
from logs import Call, Run, attributes_of, fate, name_of


def check_pauses(lineage: Lineage, tries: dict[str, list[Call]]) -> Iterator[Violation]:
    recorded: dict[str, list[tuple[Run, int]]] = defaultdict(list)
    for run in lineage.runs.values():
        for event in run.events:
            is_pause = name_of(event) in ("WorkflowExecutionPaused", "WorkflowExecutionUnpaused")
            if is_pause and not lineage.is_copy(run, event):
                recorded[attributes_of(event).request_id].append((run, event.event_id))
    for call_id, places in recorded.items():
        if call_id not in tries:
            run, event_id = places[0]
            yield Violation("pause", run.workflow_id, run.run_id, event_id, f"nobody has sent {call_id!r}")
    for call_id, calls in tries.items():
        if calls[0].kind not in ("pause", "unpause"):
            continue
        count, told = len(recorded[call_id]), fate(calls)
        if count > 1 or count != {"acked": 1, "refused": 0}.get(told, count):
            what = f"{calls[0].kind} {call_id} was {told}, and is recorded {count} times"
            yield Violation("pause", calls[0].workflow_id, "", 0, what)
