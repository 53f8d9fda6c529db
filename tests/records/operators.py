"""What commands of operators do to activities and runs, as calls and events tell it."""

import asyncio
from typing import Any

from bytes_of import as_json, body, framed, signal
from case import Report, case
from effects import REPLY, SALE, json_of, task_token, worker
from records import ids
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest, DescribeWorkflowExecutionResponse
from temporalio.client import Client
from world import World

# WORKFLOW_EXECUTION_STATUS_PAUSED
PAUSED = 8


def of_run(world: World, id: str, command: dict, status: str = "done", **headers: str) -> dict:
    """Sends a command for a run, in Avro where the id says so, and answers what became of it."""
    value = framed(ids(world).command, body(command)) if id.startswith("avro") else as_json(command)
    sent = world.send(id, value, {**REPLY, **headers})
    world.flush(sent)
    reply = world.await_reply(sent).value
    assert (reply["status"], reply["workflow_id"]) == (status, id), reply
    return reply


def part(kind: str, **what: Any) -> dict:
    return {"type": kind, "identity": "ops", kind: what}


def begun(world: World, id: str) -> None:
    """A sale waits for its activity."""
    sent = world.send(id, as_json(SALE), REPLY)
    world.flush(sent)
    assert world.await_reply(sent).value["status"] == "started"
    world.await_events(id, "ActivityTaskScheduled")


def described(world: World, id: str) -> DescribeWorkflowExecutionResponse:
    async def describe() -> DescribeWorkflowExecutionResponse:
        client = await Client.connect(world.node.address)
        execution = WorkflowExecution(workflow_id=id)
        request = DescribeWorkflowExecutionRequest(namespace="default", execution=execution)
        return await client.workflow_service.describe_workflow_execution(request)

    return asyncio.run(describe())


@case
def an_activity_is_paused_changed_reset_and_unpaused(world: World, report: Report) -> None:
    with worker(world):
        for form in ("json", "avro"):
            id = f"{form}-of-operators"
            with report.row(f"{form}: calls see the activity as commands have left it, and a worker gets it in the end"):
                begun(world, id)
                of_run(world, id, part("pause_activity", activity_id="charge", reason="the till is broken"))
                (pending,) = described(world, id).pending_activities
                manual = pending.pause_info.manual
                assert (pending.paused, manual.identity, manual.reason) == (True, "ops", "the till is broken"), pending
                changed = {"heartbeat_timeout_ms": 30_000, "retry_policy": {"maximum_attempts": 5}, "priority": {"priority_key": 1}}
                of_run(world, id, part("update_activity_options", activity_type="charge", options=changed))
                (pending,) = described(world, id).pending_activities
                options = pending.activity_options
                assert options.heartbeat_timeout.ToMilliseconds() == 30_000, options
                assert options.start_to_close_timeout.ToSeconds() == 3_600, options
                assert (options.retry_policy.maximum_attempts, options.priority.priority_key) == (5, 1), options
                of_run(world, id, part("reset_activity", all=True, keep_paused=True, restore_original=True))
                (pending,) = described(world, id).pending_activities
                assert pending.paused and pending.activity_options.retry_policy.maximum_attempts == 1, pending
                of_run(world, id, part("unpause_activity", all=True, reset_attempts=True))
                task_token(world, id)
                result = {"encoding": "json/plain", "text": '"r-19"'} if form == "avro" else "r-19"
                of_run(world, id, part("complete_activity", activity_id="charge", result=[result]))
                (done,) = world.await_events(id, "WorkflowExecutionCompleted")
                assert json_of(done["workflow_execution_completed"]["result"]) == [{"receipt": "r-19", "notes": []}], done


@case
def a_run_is_paused_changed_and_unpaused(world: World, report: Report) -> None:
    with worker(world):
        for form in ("json", "avro"):
            id = f"{form}-paused"
            with report.row(f"{form}: a paused run takes signals, and no worker gets them before it is unpaused"):
                begun(world, id)
                for _ in range(2):
                    of_run(world, id, part("pause", reason="the till is broken"), **{"command-id": "once"})
                assert of_run(world, id, part("pause"), "refused")["code"] == "busy"
                (paused,) = world.await_events(id, "WorkflowExecutionPaused")
                told = paused["workflow_execution_paused"]
                assert told == {"identity": "ops", "reason": "the till is broken", "request_id": "once"}, told
                sent = world.send(id, as_json(signal("note", input=["late"])), REPLY)
                world.flush(sent)
                assert world.await_reply(sent).value["status"] == "done"
                assert described(world, id).workflow_execution_info.status == PAUSED
                override = {"pinned": {"deployment_name": "shop", "build_id": "1.4"}}
                of_run(world, id, part("update_options", priority={"priority_key": 2}, versioning_override=override))
                of_run(world, id, part("update_options", unset_versioning_override=True))
                first, second = (
                    event["workflow_execution_options_updated"]
                    for event in world.await_events(id, "WorkflowExecutionOptionsUpdated", 2)
                )
                assert first["identity"] == "ops" and first["priority"]["priority_key"] == 2, first
                assert first["versioning_override"] and not first["unset_versioning_override"], first
                assert second["unset_versioning_override"] and second["priority"] is None, second
                of_run(world, id, part("unpause", reason="repaired"))
                assert of_run(world, id, part("unpause"), "refused")["code"] == "busy"
                (unpaused,) = world.await_events(id, "WorkflowExecutionUnpaused")
                assert unpaused["workflow_execution_unpaused"]["reason"] == "repaired", unpaused
                (signaled,) = world.await_events(id, "WorkflowExecutionSignaled")
                tasks = world.await_events(id, "WorkflowTaskCompleted", 2)
                assert signaled["event_id"] < unpaused["event_id"] < tasks[1]["event_id"], tasks
                of_run(world, id, {"type": "terminate"})


@case
def a_command_of_an_operator_that_cannot_be_is_refused(world: World, report: Report) -> None:
    rows = {
        "no activity is named": (part("pause_activity", reason="why"), "command_incomplete"),
        "activities are named twice": (part("pause_activity", activity_id="charge", all=True), "invalid_argument"),
        "a negative jitter": (part("unpause_activity", all=True, jitter_ms=-1), "invalid_argument"),
        "an activity that is not there": (part("reset_activity", activity_id="refund"), "not_found"),
        "no options": (part("update_activity_options", all=True), "command_incomplete"),
        "no time for an attempt": (
            part("update_activity_options", all=True, options={"start_to_close_timeout_ms": 0}),
            "invalid_argument",
        ),
        "a reason that is too long": (part("pause", reason="r" * 1_001), "invalid_argument"),
        "a version without a build": (
            part("update_options", versioning_override={"pinned": {"deployment_name": "shop"}}),
            "invalid_argument",
        ),
        "a run that is not paused": (part("unpause"), "busy"),
        "the part of another command": ({**part("pause"), "type": "unpause"}, "command_incomplete"),
    }
    with worker(world):
        begun(world, "not-operated")
        for name, (command, code) in rows.items():
            with report.row(name):
                assert of_run(world, "not-operated", command, "refused")["code"] == code
        with report.row("a run that is not there"):
            assert of_run(world, "none", part("pause"), "refused")["code"] == "not_found"
