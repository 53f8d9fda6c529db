"""Tests of the checker, on logs written by hand: silent on good ones, it finds what is planted in them."""

import json
import sys
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToJson
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import History, HistoryEvent

from checker import check
from corruptions import CORRUPTIONS, plant_each
from logs import (
    Call,
    Run,
    Work,
    read_calls,
    read_histories,
    read_work,
    write_histories,
    write_lines,
)

SEED = 7
BEGIN_MS = 1_800_000_000_000.0


class Writer:
    """Writes histories, calls and work that fit each other; each event is 10 ms after the one before."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.calls: list[Call] = []
        self.work: list[Work] = []
        self.now_ms = BEGIN_MS
        self.numbers: dict[tuple[str, str], int] = {}

    def begin(self, workflow_id: str, continued: Run | None = None) -> Run:
        run = Run(workflow_id, str(uuid.uuid5(uuid.NAMESPACE_OID, f"{workflow_id} {len(self.runs)}")), [])
        self.runs.append(run)
        first = continued.events[0].workflow_execution_started_event_attributes if continued else None
        self.event(
            run,
            "WorkflowExecutionStarted",
            workflow_id=workflow_id,
            first_execution_run_id=first.first_execution_run_id if first else run.run_id,
            continued_execution_run_id=continued.run_id if continued else "",
        )
        self.event(run, "WorkflowTaskScheduled")
        return run

    def event(self, run: Run, name: str, wait_ms: float = 10, **attributes: Any) -> int:
        """Appends an event; the id of it."""
        self.now_ms += wait_ms
        words = "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in name)
        kind = getattr(EventType, f"EVENT_TYPE{words}")
        event = HistoryEvent(event_id=len(run.events) + 1, event_type=kind)
        event.event_time.FromMilliseconds(int(self.now_ms))
        field = f"{words[1:].lower()}_event_attributes"
        # The field is there, also when none of its own fields is set.
        getattr(event, field).SetInParent()
        for key, value in attributes.items():
            setattr(getattr(event, field), key, value)
        run.events.append(event)
        return event.event_id

    def task(self, run: Run) -> int:
        """Starts and completes the scheduled workflow task; the id of its completion."""
        scheduled = len(run.events)
        while "WORKFLOW_TASK_SCHEDULED" not in EventType.Name(run.events[scheduled - 1].event_type):
            scheduled -= 1
        started = self.event(run, "WorkflowTaskStarted", scheduled_event_id=scheduled)
        return self.event(
            run, "WorkflowTaskCompleted", scheduled_event_id=scheduled, started_event_id=started
        )

    def call(self, kind: str, workflow_id: str, outcome: str = "acked", **more: Any) -> Call:
        call = Call(str(uuid.uuid4()), kind, workflow_id, self.now_ms + 1, self.now_ms + 30, outcome, **more)
        self.calls.append(call)
        return call

    def signal(self, run: Run, sender: str, outcome: str = "acked", is_recorded: bool = True) -> Call:
        key = (run.workflow_id, sender)
        self.numbers[key] = self.numbers.get(key, -1) + 1
        call = self.call("signal", run.workflow_id, outcome, sender=sender, number=self.numbers[key])
        if is_recorded:
            self.event(run, "WorkflowExecutionSignaled", signal_name="give")
            payload = Payload(metadata={"encoding": b"json/plain"}, data=json.dumps({"id": call.id}).encode())
            run.events[-1].workflow_execution_signaled_event_attributes.input.payloads.append(payload)
        self.now_ms += 30
        return call

    def activity(self, run: Run, task: int, activity_id: str, attempts: int, fails: bool = False) -> None:
        scheduled = self.event(
            run, "ActivityTaskScheduled", activity_id=activity_id, workflow_task_completed_event_id=task
        )
        for attempt in range(1, attempts + 1):
            of = (run.workflow_id, run.run_id, activity_id, attempt, self.now_ms)
            is_last = attempt == attempts
            self.work.append(Work("received", *of))
            result = (
                None if fails or not is_last else {"value": attempt, "nonce": f"{run.run_id} {activity_id}"}
            )
            self.work.append(Work("sent", *of, result=result, failure="" if result else f"failure {attempt}"))
        started = self.event(run, "ActivityTaskStarted", scheduled_event_id=scheduled, attempt=attempts)
        of = {"scheduled_event_id": scheduled, "started_event_id": started}
        if fails:
            self.event(run, "ActivityTaskFailed", **of)
            run.events[-1].activity_task_failed_event_attributes.failure.message = f"failure {attempts}"
        else:
            self.event(run, "ActivityTaskCompleted", **of)
            payload = Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(result).encode())
            run.events[-1].activity_task_completed_event_attributes.result.payloads.append(payload)
        self.event(run, "WorkflowTaskScheduled")


def a_long_story(writer: Writer, workflow_id: str) -> None:
    """Two runs in a chain, with everything in them that the checker looks at."""
    start = writer.call("start", workflow_id)
    rival = writer.call("start", workflow_id, "refused")
    run = writer.begin(workflow_id)
    start.run_id = run.run_id
    # The answer to a try of the same call was lost.
    lost = Call(**vars(start))
    lost.outcome, lost.run_id = "unknown", ""
    writer.calls.insert(writer.calls.index(rival), lost)
    writer.activity(run, writer.task(run), "1", 3)
    seen = [writer.signal(run, "a").id, writer.signal(run, "b").id]
    task = writer.task(run)
    timer = writer.event(run, "TimerStarted", timer_id="1", workflow_task_completed_event_id=task)
    run.events[-1].timer_started_event_attributes.start_to_fire_timeout.FromMilliseconds(500)
    writer.event(run, "TimerFired", 501, timer_id="1", started_event_id=timer)
    writer.event(run, "WorkflowTaskScheduled")
    # What happened in a task stands after its commands, and has kept its time.
    timer = writer.event(run, "TimerStarted", timer_id="2", workflow_task_completed_event_id=writer.task(run))
    run.events[-1].timer_started_event_attributes.start_to_fire_timeout.FromMilliseconds(60_000)
    seen.append(writer.signal(run, "a").id)
    run.events[-1].event_time.FromMilliseconds(run.events[-2].event_time.ToMilliseconds() - 15)
    writer.event(run, "WorkflowTaskScheduled")
    task = writer.task(run)
    writer.event(
        run, "TimerCanceled", timer_id="2", started_event_id=timer, workflow_task_completed_event_id=task
    )
    writer.activity(run, task, "2", 2, fails=True)
    writer.call("query", workflow_id, seen=list(seen))
    task = writer.task(run)
    before = run
    closing = writer.event(run, "WorkflowExecutionContinuedAsNew", workflow_task_completed_event_id=task)
    run = writer.begin(workflow_id, before)
    before.events[
        closing - 1
    ].workflow_execution_continued_as_new_event_attributes.new_execution_run_id = run.run_id
    seen += [writer.signal(run, "b").id, writer.signal(run, "b", "unknown").id]
    writer.signal(run, "a", "unknown", is_recorded=False)
    writer.signal(run, "a", "refused", is_recorded=False)
    seen.append(writer.signal(run, "a").id)
    task = writer.task(run)
    writer.now_ms += 50
    writer.call("query", workflow_id, seen=list(seen))
    writer.activity(run, task, "1", 1)
    writer.event(run, "WorkflowExecutionCompleted", workflow_task_completed_event_id=writer.task(run))


def a_failed_task(writer: Writer, workflow_id: str) -> None:
    """A task that failed, one that timed out on its queue, a signal between them."""
    start = writer.call("start", workflow_id)
    run = writer.begin(workflow_id)
    start.run_id = run.run_id
    started = writer.event(run, "WorkflowTaskStarted", scheduled_event_id=2)
    writer.event(run, "WorkflowTaskFailed", scheduled_event_id=2, started_event_id=started)
    writer.signal(run, "a")
    scheduled = writer.event(run, "WorkflowTaskScheduled")
    writer.event(run, "WorkflowTaskTimedOut", scheduled_event_id=scheduled, timeout_type=2)
    writer.event(run, "WorkflowTaskScheduled")
    writer.event(run, "WorkflowExecutionFailed", workflow_task_completed_event_id=writer.task(run))


def good_logs() -> Writer:
    writer = Writer()
    for number in range(4):
        a_long_story(writer, f"long-{number}")
        a_failed_task(writer, f"failed-{number}")
    return writer


def is_silent_on_good_logs() -> list[str]:
    writer = good_logs()
    return [str(violation) for violation in check(writer.runs, writer.calls, writer.work)]


def finds_what_is_planted() -> list[str]:
    writer = good_logs()
    planted, missed = plant_each(writer.runs, writer.calls, writer.work, SEED)
    # In logs that were written for it, each has a place.
    return missed + [f"planted {planted} of {len(CORRUPTIONS)}"] * (planted != len(CORRUPTIONS))


def reads_back_what_it_wrote() -> list[str]:
    writer = good_logs()
    with tempfile.TemporaryDirectory(prefix="everlog-checker-") as name:
        folder = Path(name)
        write_histories(folder / "histories", writer.runs)
        first = writer.runs[0]
        (folder / "histories" / f"{first.run_id}.binpb").unlink()
        (folder / "histories" / f"{first.run_id}.json").write_text(
            MessageToJson(History(events=first.events))
        )
        write_lines(folder / "calls.jsonl", writer.calls)
        write_lines(folder / "work.jsonl", writer.work)
        histories = read_histories(folder / "histories")
        calls, work = read_calls(folder / "calls.jsonl"), read_work(folder / "work.jsonl")
    key = lambda run: run.run_id
    same = [
        sorted(histories, key=key) == sorted(writer.runs, key=key),
        calls == writer.calls,
        work == writer.work,
    ]
    return [] if all(same) else [f"histories, calls, work the same: {same}"]


def lets_open_runs_be_open_if_told() -> list[str]:
    writer = Writer()
    start = writer.call("start", "open")
    start.run_id = writer.begin("open").run_id
    found = check(writer.runs, writer.calls, writer.work, all_closed=False)
    rules = {violation.rule for violation in check(writer.runs, writer.calls, writer.work)}
    return [str(violation) for violation in found] + [f"rules {rules}"] * (rules != {"open"})


def says_so_when_there_is_no_history() -> list[str]:
    writer = Writer()
    writer.call("start", "lost", run_id="a run")
    writer.runs.append(Run("lost", "a run", []))
    found = {violation.rule for violation in check(writer.runs, writer.calls, writer.work)}
    return [] if "first" in found else [f"rules {found}"]


TESTS: list[Callable[[], list[str]]] = [
    is_silent_on_good_logs,
    finds_what_is_planted,
    reads_back_what_it_wrote,
    lets_open_runs_be_open_if_told,
    says_so_when_there_is_no_history,
]


def main() -> int:
    failed = 0
    for test in TESTS:
        wrong = test()
        failed += bool(wrong)
        print(f"FAIL checker.{test.__name__}: {wrong[0]}" if wrong else f"ok checker.{test.__name__}")
    print(f"{len(TESTS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
