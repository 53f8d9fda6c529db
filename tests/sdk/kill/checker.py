"""The independent checker: histories, the clients' calls and the workers' answers must tell one story.

    checker.py HISTORIES CALLS WORK        prints what is wrong, exits with 1 if anything is

It shares no code with the server. `check` is the whole of it for other drivers.
"""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio.api.common.v1 import Payloads

from history_rules import CLOSING, Violation, check_run, closing_of, is_closed
from kinship import check_kinship
from lineage import Lineage, begun_ns, check_lineage, signal_key
from logs import (
    Call,
    Run,
    Work,
    attributes_of,
    fate,
    json_of,
    name_of,
    read_calls,
    read_histories,
    read_work,
    signal_id_of,
)
from pause_rules import check_pauses
from update_rules import check_updates

# By how much a server's time may differ from the clients', who use the same clock.
CLOCK_SLACK_MS = 1000


def check(
    histories: Sequence[Run],
    calls: Sequence[Call],
    work: Sequence[Work],
    all_closed: bool = True,
    grain_ms: float = 0,
) -> list[Violation]:
    """Everything that is wrong.

    all_closed: every run must have come to an end. grain_ms: see check_run.
    """
    story = Story.of(histories, calls, work)
    found = [violation for run in histories for violation in check_run(run, grain_ms)]
    if all_closed:
        found += (
            Violation("open", run.workflow_id, run.run_id, len(run.events), "the run never ended")
            for run in histories
            if not is_closed(run)
        )
    for rule in (_chains, _starts, _signals, _sender_order, _queries, _answers):
        found += rule(story)
    found += check_lineage(story.lineage, calls)
    found += check_kinship(story.lineage)
    found += check_updates(story.lineage, story.tries)
    found += check_pauses(story.lineage, story.tries)
    return found


@dataclass
class Story:
    """The inputs, with what the rules look up in them."""

    lineage: Lineage
    runs: dict[str, Run]
    # The runs of a workflow id in the order in which they started.
    by_workflow: dict[str, list[Run]]
    # All tries of a call.
    tries: dict[str, list[Call]]
    received: set[tuple[str, str, str, int]]
    sent: dict[tuple[str, str, str, int], list[Work]]
    # The ids in the signals of a history: id -> (run, event id) of each.
    signaled: dict[str, list[tuple[Run, int]]] = field(default_factory=lambda: defaultdict(list))

    @staticmethod
    def of(histories: Iterable[Run], calls: Iterable[Call], work: Iterable[Work]) -> "Story":
        lineage = Lineage.of(histories)
        by_workflow = lineage.by_workflow
        tries: dict[str, list[Call]] = defaultdict(list)
        for call in calls:
            tries[call.id].append(call)
        story = Story(lineage, lineage.runs, by_workflow, tries, set(), defaultdict(list))
        for entry in work:
            key = (entry.workflow_id, entry.run_id, entry.activity_id, entry.attempt)
            if entry.kind == "received":
                story.received.add(key)
            else:
                story.sent[key].append(entry)
        for runs in by_workflow.values():
            for run in runs:
                repeated = lineage.repeated_signals(run)
                for event in run.events:
                    if name_of(event) != "WorkflowExecutionSignaled":
                        continue
                    # What a reset has written once more nobody sent again; what a run was told, its rules look after.
                    is_sent = not attributes_of(event).external_workflow_execution.workflow_id
                    if is_sent and not repeated[signal_key(event)]:
                        signal_id = signal_id_of(attributes_of(event).input)
                        story.signaled[signal_id].append((run, event.event_id))
        return story


def _ended_ns(run: Run) -> int:
    """The time of the closing event, that of the last one if the run is open."""
    closing = [event for event in run.events if name_of(event) in CLOSING]
    return (closing or run.events)[-1].event_time.ToNanoseconds()


def _chains(story: Story) -> Iterator[Violation]:
    """Runs name each other as what continues them and what they continue; of an id one is open at a time."""
    for run in story.runs.values():
        if not run.events:
            continue

        def wrong(what: str, event_id: int = 1, run: Run = run) -> Violation:
            return Violation("chain", run.workflow_id, run.run_id, event_id, what)

        started = run.events[0].workflow_execution_started_event_attributes
        if started.workflow_id != run.workflow_id:
            yield wrong(f"the history is of workflow {started.workflow_id}")
        before_id = started.continued_execution_run_id
        if run.run_id in story.lineage.resets:
            # It has the beginning of its base.
            pass
        elif before_id:
            before = story.runs.get(before_id)
            if not before:
                yield wrong(f"it continues {before_id}, of which there is no history")
            elif getattr(closing_of(before), "new_execution_run_id", "") != run.run_id:
                yield wrong(f"it continues {before_id}, which does not name it")
            else:
                head = before.events[0].workflow_execution_started_event_attributes.first_execution_run_id
                if started.first_execution_run_id != head:
                    yield wrong(
                        f"its first run is {started.first_execution_run_id}, that of the one before {head}"
                    )
        elif started.first_execution_run_id != run.run_id:
            yield wrong(f"it continues nothing, and its first run is {started.first_execution_run_id}")
        after_id = getattr(closing_of(run), "new_execution_run_id", "")
        if after_id:
            after = story.runs.get(after_id)
            if not after:
                yield wrong(f"it is continued by {after_id}, of which there is no history", len(run.events))
            elif (
                after.events[0].workflow_execution_started_event_attributes.continued_execution_run_id
                != run.run_id
            ):
                yield wrong(f"it is continued by {after_id}, which does not name it", len(run.events))
        elif closing_of(run) is not None and name_of(run.events[-1]) == "WorkflowExecutionContinuedAsNew":
            yield wrong("it continued as new and names no run", len(run.events))
    for workflow_id, runs in story.by_workflow.items():
        for before, after in zip(runs, runs[1:]):
            if not is_closed(before) or _ended_ns(before) > begun_ns(after):
                what = f"run {before.run_id} of the same id was open when it began"
                yield Violation("chain", workflow_id, after.run_id, 1, what)


def _starts(story: Story) -> Iterator[Violation]:
    """An acknowledged start is a run; a run that continues none has a start that may have made it."""
    made: dict[str, str] = {}
    possible: Counter[str] = Counter()
    earliest_ms: dict[str, float] = {}
    for call_id, tries in story.tries.items():
        first = tries[0]
        if first.kind != "start":
            continue
        earliest = min(call.sent_ms for call in tries)
        earliest_ms[first.workflow_id] = min(earliest, earliest_ms.get(first.workflow_id, earliest))
        possible[first.workflow_id] += fate(tries) != "refused"
        runs = {call.run_id for call in tries if call.outcome == "acked"}
        if len(runs) > 1:
            yield Violation(
                "start", first.workflow_id, "", 0, f"start {call_id} is answered with runs {sorted(runs)}"
            )
        for run_id in runs:
            if run_id not in story.runs or story.runs[run_id].workflow_id != first.workflow_id:
                yield Violation(
                    "start", first.workflow_id, run_id, 0, f"acknowledged start {call_id} has no history"
                )
            if made.setdefault(run_id, call_id) != call_id:
                yield Violation(
                    "start", first.workflow_id, run_id, 0, f"made by both {made[run_id]} and {call_id}"
                )
    for workflow_id, runs in story.by_workflow.items():
        heads = [
            run
            for run in runs
            if run.events
            and run.run_id not in story.lineage.resets
            and not run.events[0].workflow_execution_started_event_attributes.continued_execution_run_id
            and not run.events[0].workflow_execution_started_event_attributes.HasField("parent_workflow_execution")
        ]
        if len(heads) > possible[workflow_id]:
            what = f"{len(heads)} first runs, and {possible[workflow_id]} starts that were not refused"
            yield Violation("start", workflow_id, heads[-1].run_id, 1, what)
        for run in heads:
            if begun_ns(run) / 1e6 < earliest_ms.get(workflow_id, 0) - CLOCK_SLACK_MS:
                yield Violation("times", workflow_id, run.run_id, 1, "it began before its start was sent")


def _signals(story: Story) -> Iterator[Violation]:
    """Acknowledged: once; unknown: at most once; refused: never; and nothing that nobody sent."""
    for call_id, tries in story.tries.items():
        if tries[0].kind != "signal":
            continue
        workflow_id = tries[0].workflow_id
        found = story.signaled.get(call_id, [])
        least, most = {"acked": (1, 1), "unknown": (0, 1), "refused": (0, 0)}[fate(tries)]
        run_id, event_id = (found[-1][0].run_id, found[-1][1]) if found else ("", 0)
        if not least <= len(found) <= most:
            what = f"signal {call_id} is {fate(tries)} and stands {len(found)} times in histories"
            yield Violation("signal", workflow_id, run_id, event_id, what)
        for run, event_id in found:
            if run.workflow_id != workflow_id:
                what = f"signal {call_id} to {workflow_id} stands here"
                yield Violation("signal", run.workflow_id, run.run_id, event_id, what)
            time_ms = (
                run.events[event_id - 1].event_time.ToMilliseconds() if event_id <= len(run.events) else 0
            )
            first_ms, last_ms = min(t.sent_ms for t in tries), max(t.ended_ms for t in tries)
            is_answered = fate(tries) == "acked"
            if time_ms < first_ms - CLOCK_SLACK_MS or (is_answered and time_ms > last_ms + CLOCK_SLACK_MS):
                yield Violation(
                    "times", workflow_id, run.run_id, event_id, f"signal {call_id} is not of its time"
                )
    for call_id, found in story.signaled.items():
        if not story.tries.get(call_id):
            run, event_id = found[0]
            what = f"a signal {call_id or 'without an id'} that no client sent"
            yield Violation("signal", run.workflow_id, run.run_id, event_id, what)


def _sender_order(story: Story) -> Iterator[Violation]:
    """Signals of one sender to one workflow stand in the order in which they were sent."""
    for workflow_id, runs in story.by_workflow.items():
        last: dict[str, int] = {}
        for run in runs:
            for event in run.events:
                if name_of(event) != "WorkflowExecutionSignaled":
                    continue
                tries = story.tries.get(signal_id_of(attributes_of(event).input))
                if not tries or not tries[0].sender:
                    continue
                sender, number = tries[0].sender, tries[0].number
                if number < last.get(sender, number):
                    what = f"signal {number} of {sender} stands after its signal {last[sender]}"
                    yield Violation("order", workflow_id, run.run_id, event.event_id, what)
                last[sender] = number


def _queries(story: Story) -> Iterator[Violation]:
    """A query sees each signal acknowledged before it was sent, and none that was sent after its answer."""
    signals: dict[str, list[tuple[str, float, float]]] = defaultdict(list)
    for call_id, tries in story.tries.items():
        if tries[0].kind == "signal":
            acked_ms = min((t.ended_ms for t in tries if t.outcome == "acked"), default=float("inf"))
            signals[tries[0].workflow_id].append((call_id, min(t.sent_ms for t in tries), acked_ms))
    for tries in story.tries.values():
        for query in tries:
            if query.kind != "query" or query.outcome != "acked":
                continue
            seen = Counter(query.seen)
            known = {call_id for call_id, _, _ in signals[query.workflow_id]}
            for call_id, sent_ms, acked_ms in signals[query.workflow_id]:
                if acked_ms < query.sent_ms and not seen[call_id]:
                    yield Violation(
                        "query", query.workflow_id, "", 0, f"query {query.id} misses signal {call_id}"
                    )
                if sent_ms > query.ended_ms and seen[call_id]:
                    yield Violation(
                        "query", query.workflow_id, "", 0, f"query {query.id} foresaw signal {call_id}"
                    )
            for call_id, count in seen.items():
                if count > 1 or call_id not in known:
                    what = f"query {query.id} saw signal {call_id} {count} times"
                    yield Violation("query", query.workflow_id, "", 0, what)


def _answers(story: Story) -> Iterator[Violation]:
    """Each recorded result or failure is one that a worker sent for that run, activity and attempt."""
    for run in story.runs.values():
        scheduled: dict[int, Any] = {}
        started: dict[int, Any] = {}
        for event in run.events:
            name, attributes = name_of(event), attributes_of(event)
            if name == "ActivityTaskScheduled":
                scheduled[event.event_id] = attributes
            if name == "ActivityTaskStarted":
                started[event.event_id] = attributes
            if name not in ("ActivityTaskCompleted", "ActivityTaskFailed"):
                continue
            by_reset = name == "ActivityTaskFailed" and attributes.failure.HasField("reset_workflow_failure_info")
            if by_reset or story.lineage.is_copy(run, event):
                continue
            opening, start = (
                scheduled.get(attributes.scheduled_event_id),
                started.get(attributes.started_event_id),
            )
            if not opening or not start:
                # That is a violation of the pairs, found in the history alone.
                continue
            key = (run.workflow_id, run.run_id, opening.activity_id, start.attempt)

            def wrong(what: str, event_id: int = event.event_id, run: Run = run) -> Violation:
                return Violation("answer", run.workflow_id, run.run_id, event_id, what)

            if key not in story.received:
                yield wrong(f"activity {opening.activity_id}: no worker received attempt {start.attempt}")
            most = opening.retry_policy.maximum_attempts
            if most and start.attempt > most:
                yield wrong(f"activity {opening.activity_id}: attempt {start.attempt} of {most}")
            if not any(_is_of(entry, name, attributes) for entry in story.sent[key]):
                yield wrong(
                    f"activity {opening.activity_id}: no worker sent this for attempt {start.attempt}"
                )


def _is_of(entry: Work, name: str, attributes: Any) -> bool:
    if name == "ActivityTaskCompleted":
        return not entry.failure and entry.result == json_of(attributes.result)
    return entry.failure == attributes.failure.message


def main(histories: str, calls: str, work: str) -> int:
    found = check(read_histories(Path(histories)), read_calls(Path(calls)), read_work(Path(work)))
    for violation in found:
        print(violation)
    print(f"{len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
