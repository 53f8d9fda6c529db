"""What commands do: every kind, once however often they come, at their moment, and nothing of what was aborted."""

import asyncio
import base64
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from bytes_of import as_json, body, framed, signal, start, update
from case import Report, case
from confluent_kafka import Producer
from patience import Deadline, Late, most_s, spans_s, until_blocking
from records import ids
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import PollActivityTaskQueueRequest
from temporalio.client import Client, ScheduleDescription
from temporalio.service import RPCError, RPCStatusCode
from world import Sent, World

DAY_MS = 86_400_000
# What a batch of records unpacks to, and is still read.
BOMB_BYTES = 12 << 20
# What a batch unpacks to, and is not read.
HUGE_BYTES = 140 << 20
REPLY = {"reply-topic": "everlog.replies"}
SALE = {"type": "start", "start": {"workflow_type": "Sale", "task_queue": "sales", "input": ["tea"]}}
# It has no time of its own for a year.
SCHEDULE = {
    "type": "create_schedule",
    "create_schedule": {
        "schedule": {
            "spec": {"intervals": [{"interval_ms": 400 * 86_400_000}]},
            "workflow_id": "sale",
            "start": {"workflow_type": "Quiet", "task_queue": "nobody"},
        }
    },
}


def now_ms() -> int:
    return int(time.time() * 1000)


def milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def is_between(from_ms: int, moment: datetime, to_ms: int) -> None:
    """All clocks are one here, but for how they are rounded."""
    assert from_ms - 1_000 <= milliseconds(moment) <= to_ms + 1_000, (from_ms, moment, to_ms)


def json_of(payloads: list[dict]) -> list:
    return [json.loads(payload["text"]) for payload in payloads]


def passed(world: World, sent: Sent) -> None:
    """Returns when all before a record of this partition, and the record, was decided."""
    mark = world.send("mark", as_json(signal("mark")), {"reply-topic": "everlog.replies"}, sent.partition)
    world.flush(mark)
    world.await_reply(mark)


@contextmanager
def worker(world: World) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, Path(__file__).with_name("worker.py"), world.node.address])
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def task_token(world: World, workflow_id: str) -> bytes:
    """Takes the activity of a sale from the queue `till`, and leaves it undone, as it leaves those of other sales."""

    async def poll() -> bytes:
        client = await Client.connect(world.node.address)
        queue = TaskQueue(name="till")
        request = PollActivityTaskQueueRequest(namespace="default", task_queue=queue, identity="till-1")
        deadline = Deadline()
        while not deadline.is_over():
            task = await client.workflow_service.poll_activity_task_queue(request)
            if task.task_token and task.workflow_execution.workflow_id == workflow_id:
                return task.task_token
        raise Late(f"an activity of {workflow_id}")

    return asyncio.run(poll())


@case
def every_kind_of_command_takes_effect_in_json_and_in_avro(world: World, report: Report) -> None:
    text = lambda value: {"encoding": "json/plain", "text": json.dumps(value)}
    schema_id = ids(world).command

    def order(id: str, command: dict, headers: dict | None = None) -> Sent:
        """In Avro where the Workflow Id says so."""
        value = framed(schema_id, body(avro(command))) if id.startswith("avro") else as_json(command)
        sent = world.send(id, value, {**REPLY, "correlation-id": id, **(headers or {})})
        world.flush(sent)
        return sent

    def avro(command: dict) -> dict:
        """The same with payloads as records."""
        told = json.loads(json.dumps(command))
        for part in told.values():
            if isinstance(part, dict):
                for name in {"input", "result"} & part.keys():
                    part[name] = [text(value) for value in part[name]]
                if "token" in part:
                    part["token"] = base64.b64decode(part["token"])
        return told

    def outcome(sent: Sent, status: str) -> dict:
        reply = world.await_reply(sent)
        assert reply.value["status"] == status, reply.value
        assert reply.key == sent.key and reply.value["workflow_id"] == sent.key.decode(), reply
        assert reply.value["namespace"] == "default", reply.value
        assert reply.headers.get("correlation-id") == dict(sent.headers)["correlation-id"], reply.headers
        return reply.value

    def result(id: str) -> dict:
        (done,) = world.await_events(id, "WorkflowExecutionCompleted")
        return json_of(done["workflow_execution_completed"]["result"])[0]

    with worker(world):
        for form in ("json", "avro"):
            with report.row(f"{form}: start, signal, complete an activity by its id"):
                run_id = outcome(order(f"{form}-1", SALE), "started")["run_id"]
                outcome(order(f"{form}-1", signal("note", input=["first"])), "done")
                task_token(world, f"{form}-1")
                by_id = {"activity_id": "charge", "result": ["r-17"]}
                outcome(order(f"{form}-1", {"type": "complete_activity", "complete_activity": by_id}), "done")
                assert result(f"{form}-1") == {"receipt": "r-17", "notes": ["first"]}
                assert world.history(f"{form}-1")[0]["run_id"] == run_id
            with report.row(f"{form}: signal with start, complete an activity by its token"):
                both = {**SALE, **signal("note", input=["with it"]), "type": "signal_with_start"}
                outcome(order(f"{form}-2", both), "started")
                found = outcome(order(f"{form}-2", both, {"command-id": "again"}), "found")
                token = base64.b64encode(task_token(world, f"{form}-2")).decode()
                by_token = {"token": token, "result": ["r-18"]}
                done = {"type": "complete_activity", "complete_activity": by_token}
                outcome(order(f"{form}-2", {**done, "run_id": found["run_id"]}), "done")
                assert result(f"{form}-2") == {"receipt": "r-18", "notes": ["with it", "with it"]}
            with report.row(f"{form}: fail an activity by its id and by its token"):
                outcome(order(f"{form}-3", SALE), "started")
                task_token(world, f"{form}-3")
                failure = {"activity_id": "charge", "message": "declined", "error_type": "Declined"}
                outcome(order(f"{form}-3", {"type": "fail_activity", "fail_activity": failure}), "done")
                (failed,) = world.await_events(f"{form}-3", "WorkflowExecutionFailed")
                told = failed["workflow_execution_failed"]["failure"][-1]
                assert (told["message"], told["error_type"]) == ("declined", "Declined"), told
                outcome(order(f"{form}-4", SALE), "started")
                token = base64.b64encode(task_token(world, f"{form}-4")).decode()
                failure = {"token": token, "message": "declined", "non_retryable": True}
                outcome(order(f"{form}-4", {"type": "fail_activity", "fail_activity": failure}), "done")
                world.await_events(f"{form}-4", "WorkflowExecutionFailed")
            with report.row(f"{form}: an update's outcome comes when it is answered, to everyone who asked"):
                run_id = outcome(order(f"{form}-u", SALE), "started")["run_id"]
                told = outcome(order(f"{form}-u", update("u-1", "scones")), "completed")
                assert (told["run_id"], told["update_id"]) == (run_id, "u-1"), told
                assert json_of(told["result"]) == [["scones"]], told
                again = outcome(order(f"{form}-u", update("u-1", "cream"), {"command-id": "again"}), "completed")
                assert json_of(again["result"]) == [["scones"]], again
                told = outcome(order(f"{form}-u", update("u-2", "stones")), "failed")
                assert told["failure"][0]["message"] == "we sell no stones", told
                both = {**SALE, **update("u-3", "tea"), "type": "update_with_start"}
                both["start"] = {**SALE["start"], "conflict_policy": "UseExisting"}
                assert outcome(order(f"{form}-u", both), "completed")["run_id"] == run_id
                assert json_of(outcome(order(f"{form}-v", both), "completed")["result"]) == [["tea"]]
                outcome(order(f"{form}-u", {"type": "terminate"}), "done")
                late = outcome(order(f"{form}-u", update("u-9", "late")), "refused")
                assert late["code"] == "not_found", late
            with report.row(f"{form}: cancel and terminate"):
                started = outcome(order(f"{form}-5", SALE), "started")
                outcome(order(f"{form}-5", {"type": "cancel", "cancel": {"reason": "changed my mind"}}), "done")
                world.await_events(f"{form}-5", "WorkflowExecutionCancelRequested")
                outcome(order(f"{form}-6", SALE), "started")
                command = {"type": "terminate", "terminate": {"reason": "enough"}}
                outcome(order(f"{form}-6", command), "done")
                (ended,) = world.await_events(f"{form}-6", "WorkflowExecutionTerminated")
                assert ended["workflow_execution_terminated"]["reason"] == "enough", ended
                refused = outcome(order(f"{form}-6", command), "refused")
                assert refused["code"] == "not_found" and refused["reason"], refused
                taken = outcome(order(f"{form}-7", SALE), "started")
                refused = outcome(order(f"{form}-7", SALE), "refused")
                assert refused["code"] == "already_started", refused
                assert (refused["run_id"], started["first_run_id"]) == (taken["run_id"], started["run_id"])


def of_schedule(world: World, id: str, command: dict, status: str = "done", **headers: str) -> dict:
    """Sends a command for a schedule, in Avro where the id says so, and answers what became of it."""
    value = framed(ids(world).command, body(command)) if id.startswith("avro") else as_json(command)
    sent = world.send(id, value, {**REPLY, **headers})
    world.flush(sent)
    reply = world.await_reply(sent)
    assert (reply.value["status"], reply.value["workflow_id"], reply.key) == (status, id, sent.key), reply
    return reply.value


def patch(**what: Any) -> dict:
    return {"type": "patch_schedule", "patch_schedule": what}


def described(world: World, id: str) -> ScheduleDescription:
    async def describe() -> ScheduleDescription:
        client = await Client.connect(world.node.address)
        return await client.get_schedule_handle(id).describe()

    return asyncio.run(describe())


@case
def a_schedule_of_a_record_fires_at_its_times_and_calls_see_it(world: World, report: Report) -> None:
    with report.row("a schedule fires, is paused, triggered and described"):
        id, made = "each-second", json.loads(json.dumps(SCHEDULE))
        made["create_schedule"]["schedule"] |= {
            "spec": {"cron": ["* * * * * * *"]},
            "policies": {"overlap": "AllowAll"},
            "state": {"remaining_actions": 2, "notes": "twice"},
        }
        created = of_schedule(world, id, made)
        workflow_id = f"temporal-sys-scheduler:{id}"
        fired = [event["schedule_fired"] for event in world.await_events(workflow_id, "ScheduleFired", 2)]
        assert [event["action"] for event in fired] == [1, 2] and not any(event["is_manual"] for event in fired), fired
        first, second = (milliseconds(event["nominal_time"]) for event in fired)
        assert (second - first, first % 1_000) == (1_000, 0), fired
        for run in fired:
            assert run["workflow_id"] == f"sale-{run['nominal_time']:%Y-%m-%dT%H:%M:%SZ}", run
            (begun,) = world.await_events(run["workflow_id"], "WorkflowExecutionStarted")
            assert begun["run_id"] == run["run_id"], begun
        seen = described(world, id)
        assert (seen.info.num_actions, seen.schedule.state.remaining_actions, seen.schedule.state.note) == (2, 0, "twice"), seen
        running = {execution.workflow_id for execution in seen.info.running_actions}
        assert running == {run["workflow_id"] for run in fired}, seen
        for _ in range(2):
            of_schedule(world, id, patch(pause="for repairs", trigger={}), **{"command-id": "once"})
        (manual,) = [e["schedule_fired"] for e in world.await_events(workflow_id, "ScheduleFired", 3)][2:]
        assert manual["is_manual"], manual
        seen = described(world, id)
        assert (seen.info.num_actions, seen.schedule.state.paused, seen.schedule.state.note) == (3, True, "for repairs"), seen
        made["update_schedule"] = {"schedule": made.pop("create_schedule")["schedule"] | {"workflow_id": "other"}}
        updated = of_schedule(world, id, made | {"type": "update_schedule"})
        assert updated["conflict_token"] > created["conflict_token"], updated
        assert described(world, id).schedule.action.id == "other"
        of_schedule(world, id, {"type": "delete_schedule"})
        try:
            raise AssertionError(f"it is still there: {described(world, id)}")
        except RPCError as error:
            assert error.status == RPCStatusCode.NOT_FOUND, error


@case
def a_command_for_a_schedule_that_cannot_be_is_refused(world: World, report: Report) -> None:
    def made(**what: Any) -> dict:
        schedule = SCHEDULE["create_schedule"]["schedule"]
        return {"type": "create_schedule", "create_schedule": {"schedule": schedule | what}}

    times = {"backfills": [{"start_time": 0, "end_time": 0}] * 101}
    rows = {
        "a notation that is none": (made(spec={"cron": ["whenever"]}), "invalid_argument"),
        "a time zone that is none": (made(spec={"cron": ["@daily"], "time_zone": "Nowhere/Land"}), "invalid_argument"),
        "too many entries": (made(spec={"cron": ["@daily"] * 1_001}), "invalid_argument"),
        "notes that are too long": (made(state={"notes": "n" * 1_001}), "invalid_argument"),
        "a policy that is none": (made(policies={"overlap": "Never"}), "invalid_argument"),
        "no start": (made(start=None), "command_incomplete"),
        "an unknown field": (made(when="now"), "not_json"),
        "a patch without a schedule": (patch(trigger={}), "not_found"),
        "the part of another command": (made() | {"type": "update_schedule"}, "command_incomplete"),
        "a start in the place of schedules": (SALE, "invalid_argument"),
    }
    for name, (command, code) in rows.items():
        with report.row(name):
            id = "temporal-sys-scheduler:none" if command is SALE else "none"
            assert of_schedule(world, id, command, "refused")["code"] == code
    with report.row("too many backfills"):
        of_schedule(world, "crowded", made())
        assert of_schedule(world, "crowded", patch(**times), "refused")["code"] == "invalid_argument"
        of_schedule(world, "crowded", {"type": "delete_schedule"})


@case
def a_schedule_is_made_changed_and_deleted_and_tells_what_becomes_of_its_actions(world: World, report: Report) -> None:
    for form in ("json", "avro"):
        with report.row(f"{form}: a schedule's life, its tokens and its events"):
            id, made = f"{form}-schedule", json.loads(json.dumps(SCHEDULE))
            made["create_schedule"]["schedule"]["workflow_id"] = f"{form}-of-a-schedule"
            first = of_schedule(world, id, made, **{"command-id": "made"})
            assert of_schedule(world, id, made, **{"command-id": "made"})["conflict_token"] == first["conflict_token"]
            assert of_schedule(world, id, made, "refused")["code"] == "already_started"
            of_schedule(world, id, patch(trigger={}))
            (fired,) = world.await_events(f"temporal-sys-scheduler:{id}", "ScheduleFired")
            of_schedule(world, id, patch(trigger={}))
            replaced = {"schedule": made["create_schedule"]["schedule"], "conflict_token": first["conflict_token"]}
            update = {"type": "update_schedule", "update_schedule": replaced}
            paused = of_schedule(world, id, patch(pause="for repairs"))
            assert of_schedule(world, id, update, "refused")["code"] == "outdated"
            replaced["conflict_token"] = paused["conflict_token"]
            of_schedule(world, id, update)
            of_schedule(world, id, {"type": "delete_schedule"})
            assert of_schedule(world, id, {"type": "delete_schedule"}, "refused")["code"] == "not_found"
            world.await_events(f"temporal-sys-scheduler:{id}", "ScheduleClosed")
            events = world.history(f"temporal-sys-scheduler:{id}")
            told = [(event["event_id"], event["type"], event["schedule_id"]) for event in events]
            kinds = ["ScheduleCreated", "ScheduleFired", "ScheduleSkipped", "SchedulePaused", "ScheduleUpdated", "ScheduleUnpaused",
                     "ScheduleClosed"]  # fmt: skip
            assert told == [(at, kind, id) for at, kind in enumerate(kinds, 1)], told
            assert {event["run_id"] for event in events} == {first["run_id"]}, events
            assert events[0]["schedule_created"]["conflict_token"] == first["conflict_token"], events[0]
            assert events[2]["schedule_skipped"]["reason"] == "Overlap", events[2]
            run = fired["schedule_fired"]
            (begun,) = world.await_events(run["workflow_id"], "WorkflowExecutionStarted")
            assert begun["run_id"] == run["run_id"], begun


@case
def a_record_in_any_partition_finds_the_owner_of_its_key(world: World, report: Report) -> None:
    with report.row("K4 a foreign partitioner"):
        first = world.send("anywhere", as_json(start()), REPLY, partition=0)
        world.flush(first)
        world.await_reply(first)
        world.flush(*(world.send("anywhere", as_json(signal(f"p{n % 4}")), partition=n % 4) for n in range(40)))
        world.await_events("anywhere", "WorkflowExecutionSignaled", 40)


@case
def clocks_and_headers_of_the_sender_decide_nothing(world: World, report: Report) -> None:
    for row, what, shift_ms in [
        ("K14", "a timestamp of 2001", 1_000_000_000_000 - now_ms()),
        ("K28", "a clock 5 minutes behind", -300_000),
        ("K28", "a clock 5 minutes ahead", 300_000),
    ]:
        with report.row(f"{row} {what}"):
            id, before_ms = f"clock-{shift_ms}", now_ms()
            world.flush(world.send(id, as_json(start()), time_ms=before_ms + shift_ms))
            (event,) = world.await_events(id, "WorkflowExecutionStarted")
            is_between(before_ms, event["time"], now_ms())
    with report.row("K14 a timestamp a day ahead: the broker's topic refuses it or the command takes effect"):
        before_ms = now_ms()
        sent = world.send("clock-day", as_json(start()), time_ms=before_ms + DAY_MS)
        world.flush()
        if sent.error:
            assert "timestamp" in sent.error.lower(), sent.error
        else:
            (event,) = world.await_events("clock-day", "WorkflowExecutionStarted")
            is_between(before_ms, event["time"], now_ms())
    with report.row("K15 no headers, or such as nobody knows"):
        world.flush(world.send("bare", as_json(start())), world.send("odd", as_json(start()), {"x": None, "y": b"\xff"}))
        world.await_events("bare", "WorkflowExecutionStarted")
        world.await_events("odd", "WorkflowExecutionStarted")
    with report.row("K16 a principal that somebody writes himself is the sender's own"):
        world.flush(world.send("forged", as_json(start()), {"principal": "admin", "traceparent": "nonsense"}))
        world.await_events("forged", "WorkflowExecutionStarted")


@case
def a_command_id_counts_once_however_often_it_comes(world: World, report: Report) -> None:
    with report.row("K17 one start of five, from every partition"):
        headers = {**REPLY, "command-id": "once"}
        starts = [world.send("twin", as_json(start()), headers, n % 4) for n in range(5)]
        world.flush(*starts)
        outcomes = [world.await_reply(sent).value for sent in starts]
        assert len({outcome["run_id"] for outcome in outcomes}) == 1, outcomes
        assert [outcome["status"] for outcome in outcomes].count("refused") == 0, outcomes
    with report.row("K17 one signal of five, and five without an id"):
        same = [world.send("twin", as_json(signal("same")), {**REPLY, "command-id": "s"}, n % 4) for n in range(5)]
        other = [world.send("twin", as_json(signal("other")), REPLY, n % 4) for n in range(5)]
        world.flush(*same, *other)
        for sent in same + other:
            assert world.await_reply(sent).value["status"] == "done"
        world.await_events("twin", "WorkflowExecutionSignaled", 6)
        names = [event["workflow_execution_signaled"]["signal_name"] for event in world.history("twin")
                 if event["type"] == "WorkflowExecutionSignaled"]  # fmt: skip
        assert (names.count("same"), names.count("other")) == (1, 5), names
    with report.row("K17 the same start after the end of its run makes no second one"):
        end = world.send("twin", as_json({"type": "terminate"}), REPLY)
        world.flush(end)
        world.await_reply(end)
        again = world.send("twin", as_json(start()), {**REPLY, "command-id": "once"})
        world.flush(again)
        outcome = world.await_reply(again).value
        run_ids = {event["run_id"] for event in world.history("twin")}
        assert len(run_ids) == 1 and outcome["run_id"] in run_ids, outcome
    with report.row("K17 a signal for the closed run is refused"):
        late = world.send("twin", as_json(signal("late")), REPLY)
        world.flush(late)
        assert world.await_rejection(late).value["code"] == "not_found"


@case
def what_was_aborted_was_never_said(world: World, report: Report) -> None:
    with report.row("K21 aborted transactions are invisible, committed ones whole"):
        settings = {"bootstrap.servers": world.bootstrap, "transactional.id": "shop"}
        producer = Producer(settings)
        producer.init_transactions(most_s())
        for batch in range(10):
            producer.begin_transaction()
            outcome = "kept" if batch % 2 else "aborted"
            for n in range(20):
                world.send(f"{outcome}-{batch}-{n}", as_json(start()), producer=producer)
            if batch % 2:
                producer.commit_transaction(most_s())
            else:
                producer.flush(most_s())
                producer.abort_transaction(most_s())
        last = [world.send(f"after-{n}", as_json(start()), partition=n) for n in range(4)]
        world.flush(*last)
        for n in range(4):
            world.await_events(f"after-{n}", "WorkflowExecutionStarted")
        for batch in range(1, 10, 2):
            for n in range(20):
                world.await_events(f"kept-{batch}-{n}", "WorkflowExecutionStarted")
        aborted = [read.key for read in world.events.records if read.key.startswith(b"aborted-")]
        assert not aborted, aborted


@case
def large_and_compressed_records_are_bounded(world: World, report: Report) -> None:
    with report.row("K20 a record just below the limit takes effect"):
        large = "x" * ((1 << 20) - 200)
        world.flush(world.send("large", as_json(start(input=[large]))))
        (event,) = world.await_events("large", "WorkflowExecutionStarted")
        assert json_of(event["workflow_execution_started"]["input"]) == [large]
    with report.row("K20 12 and 140 MiB in a few KiB are refused within bounds of memory"):
        producer = Producer({
            "bootstrap.servers": world.bootstrap, "compression.type": "zstd",
            "message.max.bytes": 200_000_000, "queue.buffering.max.kbytes": 1_000_000,
        })  # fmt: skip
        before = world.node.memory_bytes()
        bombs = [world.send("bomb", b"{" + b" " * BOMB_BYTES, partition=n % 4, producer=producer) for n in range(40)]
        assert producer.flush(most_s()) == 0
        for sent in bombs:
            told = world.await_rejection(sent)
            assert told.value["code"] == "too_large", told.value["code"]
            assert told.value["value_bytes"] == BOMB_BYTES + 1
            assert len(told.value["value"]) <= 1 << 20
        huge = world.send("bomb", b" " * HUGE_BYTES, partition=0, producer=producer)
        assert producer.flush(most_s()) == 0
        behind = world.send("bomb", b"no order", partition=0)
        world.flush(behind)
        told = world.await_rejection(huge)
        assert (told.value["code"], told.value["value"]) == ("too_large", None), told.value
        assert "does not unpack" in told.value["reason"], told.value["reason"]
        assert world.await_rejection(behind).value["value"] == b"no order"
        print(f"#    memory before and after: {before >> 20} and {world.node.memory_bytes() >> 20} MiB")
        assert world.node.memory_bytes() - before < 512 << 20
    with report.row("K20 a batch of 1,000 records in one compressed record batch takes effect whole"):
        producer = Producer({
            "bootstrap.servers": world.bootstrap, "compression.type": "gzip", "linger.ms": 200,
        })  # fmt: skip
        world.flush(world.send("batch", as_json(start()), partition=0))
        for n in range(1000):
            padded = signal(f"b{n}", input=["x" * 2000])
            world.send("batch", as_json(padded), partition=0, producer=producer)
        assert producer.flush(most_s()) == 0
        events = world.await_events("batch", "WorkflowExecutionSignaled", 1000)
        names = [event["workflow_execution_signaled"]["signal_name"] for event in events]
        assert names == [f"b{n}" for n in range(1000)], names[:10]


@case
def a_delayed_command_comes_at_its_moment(world: World, report: Report) -> None:
    def at(moment_ms: int) -> dict[str, str]:
        return {**REPLY, "deliver-at": str(moment_ms)}

    with report.row("later: what is due comes at once"):
        sent = world.send("due", as_json(start()), at(now_ms() - 60_000))
        world.flush(sent)
        assert world.await_reply(sent).value["status"] == "started"
    with report.row("later: not before its moment, and in the order of the moments"):
        due_ms = now_ms() + 2_000
        second = world.send("later", as_json(signal("second")), at(due_ms + 300), 1)
        first = world.send("later", as_json(start()), at(due_ms), 1)
        world.flush(first, second)
        reply = world.await_reply(first).value
        assert reply["status"] == "started" and milliseconds(reply["time"]) >= due_ms, reply
        assert world.await_reply(second).value["status"] == "done"
        (event,) = world.await_events("later", "WorkflowExecutionStarted")
        assert milliseconds(event["time"]) >= due_ms, (event["time"], due_ms)
    with report.row("later: 364 days are taken, and outlive kill -9; 367 days are refused"):
        far = [world.send(f"far-{n}", as_json(start()), at(now_ms() + 364 * DAY_MS), n) for n in range(4)]
        too_far = world.send("too-far", as_json(start()), at(now_ms() + 367 * DAY_MS))
        world.flush(too_far, *far)
        told = world.await_rejection(too_far).value
        assert told["code"] == "header" and "year" in told["reason"], told
        for span_s in spans_s("a kill before the moment", 5):
            due_ms = now_ms() + round(1_000 * span_s)
            soon = [world.send(f"soon-{due_ms}-{n}", as_json(start()), at(due_ms), n) for n in range(4)]
            world.flush(*soon)
            for sent in soon:
                passed(world, sent)
            world.node.kill()
            is_in_time = now_ms() < due_ms
            world.node.start()
            for n, sent in enumerate(soon):
                outcome = world.await_reply(sent).value
                assert outcome["status"] == "started" and milliseconds(outcome["time"]) >= due_ms, outcome
                assert len(world.await_events(f"soon-{due_ms}-{n}", "WorkflowExecutionStarted")) == 1
            if is_in_time:
                break
        places = {(read.value["partition"], read.value["offset"]) for read in world.rejections.records}
        assert not places & {sent.place for sent in far}


@case
def a_foreign_record_among_the_events_is_known_by_its_headers(world: World, report: Report) -> None:
    with report.row("K26 ours carry a writer's headers, a foreign one does not, and we go on"):
        genuine = world.events.wait("an event", lambda records: [read for read in records if read.value])
        assert all(read.headers for read in genuine), "every event has headers"
        producer = world.producer()
        producer.produce(world.topic("events"), genuine[0].raw, b"forged-event", partition=0)
        producer.flush(most_s())
        found = lambda records: [read for read in records if read.key == b"forged-event"]
        (forged,) = world.events.wait("the forged one", found)
        assert not forged.headers.keys() & genuine[0].headers.keys(), forged.headers
        world.flush(world.send("after-forged", as_json(start())))
        world.await_events("after-forged", "WorkflowExecutionStarted")


@case
def a_hot_key_keeps_no_other_waiting_for_long(world: World, report: Report) -> None:
    with report.row("K27 10,000 commands and more for one workflow: all are accounted for, others get through meanwhile"):
        first = world.send("hot", as_json(start()), REPLY, partition=0)
        world.flush(first)
        world.await_reply(first)
        begun = time.monotonic()
        hot: list[Sent] = []

        def flood(count: int) -> None:
            for _ in range(count):
                hot.append(world.send("hot", as_json(signal(f"h{len(hot)}")), partition=0))
            world.flush(*hot[-count:])

        flood(10_000)
        others = [world.send(f"cool-{n}", as_json(start()), REPLY, partition=1 + n % 3) for n in range(30)]
        world.flush(*others)
        asked = {sent.place for sent in others}

        def get_through() -> bool:
            answered = {(read.value["partition"], read.value["offset"]) for read in list(world.replies.records)}
            if not asked <= answered:
                # It goes on for as long as they wait.
                flood(200)
            return asked <= answered

        until_blocking("the others are answered", get_through)
        others_s = time.monotonic() - begun
        for sent in others:
            assert world.await_reply(sent).value["status"] == "started"
        places = {sent.place for sent in hot}

        def accounted() -> bool:
            events = sum(event["type"] == "WorkflowExecutionSignaled" for event in world.history("hot"))
            refused = [read.value for read in list(world.rejections.records)
                       if (read.value["partition"], read.value["offset"]) in places]  # fmt: skip
            assert all(value["code"] in ("busy", "invalid_argument") for value in refused), refused[0]
            return events + len(refused) == len(hot)

        until_blocking("all are accounted for", accounted)
        all_s = time.monotonic() - begun
        print(f"#    the others were answered after {others_s:.1f} s, all {len(hot)} were done after {all_s:.1f} s")
