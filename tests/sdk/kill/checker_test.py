"""Tests of the checker, on logs written by hand: silent on good ones, it finds what is planted in them."""

import copy
import json
import sys
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToJson
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import History, HistoryEvent

from checker import check
from corruptions import CORRUPTIONS, plant_each
from lineage import CRON, RETRY, WORKFLOW
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

SEEDS = 20
BEGIN_MS = 1_800_000_000_000.0


class Writer:
    """Writes histories, calls and work that fit each other; each event is 10 ms after the one before."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.calls: list[Call] = []
        self.work: list[Work] = []
        self.now_ms = BEGIN_MS
        self.numbers: dict[tuple[str, str], int] = {}

    def begin(
        self, workflow_id: str, continued: Run | None = None, initiator: int = WORKFLOW, waits: bool = False
    ) -> Run:
        run = Run(workflow_id, str(uuid.uuid5(uuid.NAMESPACE_OID, f"{workflow_id} {len(self.runs)}")), [])
        self.runs.append(run)
        first = continued.events[0].workflow_execution_started_event_attributes if continued else None
        self.event(
            run,
            "WorkflowExecutionStarted",
            workflow_id=workflow_id,
            first_execution_run_id=first.first_execution_run_id if first else run.run_id,
            continued_execution_run_id=continued.run_id if continued else "",
            initiator=initiator if continued else 0,
            attempt=first.attempt + 1 if first and initiator == RETRY else 1,
        )
        if not waits:
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


def started(writer: Writer, workflow_id: str) -> Run:
    call = writer.call("start", workflow_id)
    run = writer.begin(workflow_id)
    call.run_id = run.run_id
    return run


def json_payload(value: Any) -> Payload:
    return Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(value).encode())


def a_family(writer: Writer, workflow_id: str) -> None:
    """A parent with a child, whom it sends a signal."""
    parent = started(writer, workflow_id)
    task = writer.task(parent)
    room = f"{workflow_id}-room"
    asked = writer.event(
        parent, "StartChildWorkflowExecutionInitiated", workflow_id=room, workflow_task_completed_event_id=task
    )
    child = writer.begin(room)
    began = child.events[0].workflow_execution_started_event_attributes
    began.parent_workflow_execution.workflow_id, began.parent_workflow_execution.run_id = workflow_id, parent.run_id
    began.parent_initiated_event_id = asked
    writer.event(parent, "ChildWorkflowExecutionStarted", initiated_event_id=asked)
    told = parent.events[-1].child_workflow_execution_started_event_attributes
    told.workflow_execution.workflow_id, told.workflow_execution.run_id = room, child.run_id
    writer.event(parent, "WorkflowTaskScheduled")
    task = writer.task(parent)
    sent = writer.event(
        parent,
        "SignalExternalWorkflowExecutionInitiated",
        signal_name="paint",
        workflow_task_completed_event_id=task,
    )
    letter = parent.events[-1].signal_external_workflow_execution_initiated_event_attributes
    letter.workflow_execution.workflow_id = room
    letter.input.payloads.append(json_payload({"id": f"{room}-paint"}))
    writer.event(child, "WorkflowExecutionSignaled", signal_name="paint")
    heard = child.events[-1].workflow_execution_signaled_event_attributes
    heard.input.CopyFrom(letter.input)
    heard.external_workflow_execution.workflow_id = workflow_id
    writer.event(parent, "ExternalWorkflowExecutionSignaled", initiated_event_id=sent)
    done = writer.event(child, "WorkflowExecutionCompleted", workflow_task_completed_event_id=writer.task(child))
    child.events[done - 1].workflow_execution_completed_event_attributes.result.payloads.append(json_payload(7))
    writer.event(parent, "ChildWorkflowExecutionCompleted", initiated_event_id=asked)
    ended = parent.events[-1].child_workflow_execution_completed_event_attributes
    ended.result.payloads.append(json_payload(7))
    writer.event(parent, "WorkflowTaskScheduled")
    writer.event(parent, "WorkflowExecutionCompleted", workflow_task_completed_event_id=writer.task(parent))


def an_update(writer: Writer, run: Run, call: Call) -> None:
    """It is accepted and answered by one task."""
    writer.task(run)
    accepted = writer.event(run, "WorkflowExecutionUpdateAccepted")
    attributes = run.events[-1].workflow_execution_update_accepted_event_attributes
    attributes.protocol_instance_id = call.id
    writer.event(run, "WorkflowExecutionUpdateCompleted", accepted_event_id=accepted)
    attributes = run.events[-1].workflow_execution_update_completed_event_attributes
    attributes.meta.update_id = call.id
    attributes.outcome.success.payloads.append(json_payload(call.result))


def paid(writer: Writer, workflow_id: str, value: int) -> Call:
    call = writer.call("update", workflow_id, stage="completed")
    call.result = {"id": call.id, "value": value}
    return call


def an_account(writer: Writer, workflow_id: str) -> None:
    """It is updated, and sent back behind its first update; a signal and the second update are taken over."""
    base = started(writer, workflow_id)
    an_update(writer, base, paid(writer, workflow_id, 4))
    writer.event(base, "WorkflowTaskScheduled")
    finish = len(base.events) + 2
    second = paid(writer, workflow_id, 9)
    an_update(writer, base, second)
    signal = writer.signal(base, "a")
    order = writer.call("reset", workflow_id, number=finish, base_run_id=base.run_id)
    writer.event(base, "WorkflowExecutionTerminated")
    fresh = Run(workflow_id, str(uuid.uuid5(uuid.NAMESPACE_OID, f"{workflow_id} back")), [])
    fresh.events.extend(copy.deepcopy(base.events[: finish - 1]))
    writer.runs.append(fresh)
    order.run_id = fresh.run_id
    writer.event(
        fresh,
        "WorkflowTaskFailed",
        scheduled_event_id=finish - 2,
        started_event_id=finish - 1,
        cause=WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW,
        base_run_id=base.run_id,
        new_run_id=fresh.run_id,
    )
    fresh.events[-1].workflow_task_failed_event_attributes.failure.message = order.id
    writer.event(fresh, "WorkflowExecutionUpdateAdmitted")
    admitted = fresh.events[-1].workflow_execution_update_admitted_event_attributes
    admitted.request.meta.update_id = second.id
    writer.event(fresh, "WorkflowExecutionSignaled", signal_name="give")
    attributes = fresh.events[-1].workflow_execution_signaled_event_attributes
    attributes.input.payloads.append(json_payload({"id": signal.id}))
    writer.event(fresh, "WorkflowTaskScheduled")
    an_update(writer, fresh, second)
    refused = writer.call("update", workflow_id, "refused")
    refused.why = "a debt"
    writer.event(fresh, "WorkflowTaskScheduled")
    writer.event(fresh, "WorkflowExecutionCompleted", workflow_task_completed_event_id=writer.task(fresh))


def a_quiet_account(writer: Writer, workflow_id: str) -> None:
    """It is updated, and returns."""
    run = started(writer, workflow_id)
    an_update(writer, run, paid(writer, workflow_id, 16))
    writer.event(run, "WorkflowTaskScheduled")
    writer.event(run, "WorkflowExecutionCompleted", workflow_task_completed_event_id=writer.task(run))


def a_site(writer: Writer, workflow_id: str) -> None:
    """It is paused, takes a signal in meanwhile, and goes on."""
    run = started(writer, workflow_id)
    writer.task(run)
    pause = writer.call("pause", workflow_id)
    writer.event(run, "WorkflowExecutionPaused", request_id=pause.id)
    writer.signal(run, "a")
    unpause = writer.call("unpause", workflow_id)
    writer.event(run, "WorkflowExecutionUnpaused", request_id=unpause.id)
    writer.event(run, "WorkflowTaskScheduled")
    writer.call("unpause", workflow_id, "refused")
    writer.event(run, "WorkflowExecutionCompleted", workflow_task_completed_event_id=writer.task(run))


def a_repair(writer: Writer, workflow_id: str) -> None:
    """It fails, and is tried again."""
    run = started(writer, workflow_id)
    closing = writer.event(run, "WorkflowExecutionFailed", workflow_task_completed_event_id=writer.task(run))
    again = writer.begin(workflow_id, run, RETRY)
    run.events[closing - 1].workflow_execution_failed_event_attributes.new_execution_run_id = again.run_id
    began = again.events[0].workflow_execution_started_event_attributes
    began.continued_failure.message = "not at first"
    writer.event(again, "WorkflowExecutionCompleted", workflow_task_completed_event_id=writer.task(again))


def a_round(writer: Writer, workflow_id: str) -> None:
    """It returns, and is to come again with its result; it is ended before its time has come."""
    run = started(writer, workflow_id)
    closing = writer.event(run, "WorkflowExecutionCompleted", workflow_task_completed_event_id=writer.task(run))
    done = run.events[closing - 1].workflow_execution_completed_event_attributes
    done.result.payloads.append(json_payload(1))
    again = writer.begin(workflow_id, run, CRON, waits=True)
    done.new_execution_run_id = again.run_id
    began = again.events[0].workflow_execution_started_event_attributes
    began.last_completion_result.CopyFrom(done.result)
    writer.event(again, "WorkflowExecutionTerminated")


def good_logs() -> Writer:
    writer = Writer()
    for number in range(4):
        a_long_story(writer, f"long-{number}")
        a_failed_task(writer, f"failed-{number}")
        a_family(writer, f"family-{number}")
        an_account(writer, f"account-{number}")
        a_quiet_account(writer, f"quiet-{number}")
        a_site(writer, f"site-{number}")
        a_repair(writer, f"repair-{number}")
        a_round(writer, f"round-{number}")
    return writer


def is_silent_on_good_logs() -> list[str]:
    writer = good_logs()
    return [str(violation) for violation in check(writer.runs, writer.calls, writer.work)]


def finds_what_is_planted() -> list[str]:
    writer = good_logs()
    wrong = []
    # The seed decides on the places: in logs that were written for it, each corruption has some.
    for seed in range(SEEDS):
        planted, missed = plant_each(writer.runs, writer.calls, writer.work, seed)
        wrong += [f"seed {seed}: {what}" for what in missed]
        wrong += [f"seed {seed}: planted {planted} of {len(CORRUPTIONS)}"] * (planted != len(CORRUPTIONS))
    return wrong


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
