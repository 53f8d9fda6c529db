"""`temporal activity`, and what is told of queues and workers."""

import expect
from setting import Setting, case
from shape import RUN, TEXT, TIME, matches

NOTE = "Note: Long content may be truncated. Use --output json for full details."


@case
async def an_activity_is_completed_and_failed(at: Setting) -> None:
    approved, _ = await at.start("Approval", "approved")
    denied, _ = await at.start("Approval", "denied")
    for id in (approved, denied):
        await pends(at, id, "PENDING_ACTIVITY_STATE_STARTED")
    end = ["--activity-id", "approval"]
    (await at.cli("activity", "complete", "-w", approved, *end, "--result", '"yes"')).says("")
    told = await at.cli.json("workflow", "result", "-w", approved)
    expect.equal([told["status"], told["result"]], ["COMPLETED", "yes"], "an activity that is completed")
    (await at.cli("activity", "fail", "-w", denied, *end, "--reason", "no", "--detail", '"why"')).says("")
    told = await at.cli.runs("workflow", "result", "-w", denied, "-o", "json")
    failure = told.json()["closeEvent"]["workflowExecutionFailedEventAttributes"]["failure"]
    expect.equal([told.code, failure["message"]], [1, "Activity task failed"], "an activity that is failed")
    cause = failure["cause"]
    expect.equal([cause["message"], cause["applicationFailureInfo"]["details"]], ["no", ["why"]], "its cause")
    nobody = at.id("nobody")
    refusal = await at.cli.refused("activity", "complete", "-w", nobody, *end, "--result", "1")
    expect.equal(refusal, f"unable to complete Activity: workflow not found for ID: {nobody}", "of nobody")


async def pends(at: Setting, id: str, state: str) -> dict:
    """The only pending activity of a run, once it is in this state."""

    async def look() -> dict | None:
        told = await at.cli.json("workflow", "describe", "-w", id)
        found = [each for each in told.get("pendingActivities", []) if each["state"] == state]
        return found[0] if found else None

    return await expect.eventually(look, f"an activity of {id} in {state}")


@case
async def a_pending_activity_is_described(at: Setting) -> None:
    id, _ = await at.start("Stumbling", "run")

    async def failed_once() -> bool:
        return (await pends(at, id, "PENDING_ACTIVITY_STATE_SCHEDULED")).get("attempt") == 2

    await expect.eventually(failed_once, "a second attempt")
    pending = {
        "activityId": "stumble",
        "activityType": {"name": "Stumble"},
        "state": "PENDING_ACTIVITY_STATE_SCHEDULED",
        "attempt": 2,
        "maximumAttempts": 5,
        "heartbeatDetails": ["half the way"],
        "lastHeartbeatTime": TIME,
        "scheduledTime": TIME,
        "lastFailure": {"message": "not yet", "applicationFailureInfo": {"type": "Early"}, ...: ...},
        "lastWorkerIdentity": TEXT,
        ...: ...,
    }
    matches(await pends(at, id, "PENDING_ACTIVITY_STATE_SCHEDULED"), pending)
    text = await at.cli("workflow", "describe", "-w", id)
    text.has("Pending Activities: 1")
    for line in ("ActivityId            stumble", "State                 Scheduled", "Attempt               2"):
        text.has(f"  {line}")


@case
async def a_queue_is_described(at: Setting) -> None:
    ids = await at.many(3)
    await at.cli("workflow", "terminate", "-w", ids[0])
    describe = ["task-queue", "describe", "-t"]
    text = await at.cli(*describe, at.idle)

    async def backlog() -> dict[str, int]:
        stats = (await at.cli.json(*describe, at.idle))["stats"]
        return {row["taskQueueType"]: row["approximateBacklogCount"] for row in stats}

    # The task of the run that has ended may still be counted.
    expect.that((await backlog())["workflow"] in (2, 3), "what waits", await backlog())
    rows = {row["TaskQueueType"]: row for row in text.table("Task Queue Statistics:")}
    expect.equal([rows[kind]["BuildID"] for kind in ("activity", "workflow")], ["UNVERSIONED"] * 2, "its kinds")
    expect.equal(text.table("Pollers:"), [], "who polls it")

    async def by_both() -> dict[str, dict] | None:
        polled = (await at.cli.json(*describe, at.queue))["pollers"] or []
        kinds = {each["taskQueueType"]: each for each in polled}
        return kinds if len(kinds) > 1 else None

    by_kind = await expect.eventually(by_both, "polls of both kinds")
    poller = {"buildId": "UNVERSIONED", "identity": TEXT, "lastAccessTime": TIME, "ratePerSecond": 100000}
    matches(by_kind, {kind: poller | {"taskQueueType": kind} for kind in ("activity", "workflow")})
    legacy = await at.cli(*describe, at.queue, "--legacy-mode")
    expect.that(legacy.table("Pollers:"), "who polls it, as older servers say it")
    told = await at.cli("task-queue", "config", "get", "-t", at.queue, "--task-queue-type", "workflow")
    told.says("No configuration found for task queue")


@case
async def a_queue_has_its_partitions_on_nodes(at: Setting) -> None:
    told = await at.cli.json("task-queue", "list-partition", "-t", at.queue)
    for kind in ("activity", "workflow"):
        first = told[f"{kind}TaskQueuePartitions"][0]
        matches(first, {"key": at.queue, "ownerHostName": TEXT})
    text = await at.cli("task-queue", "list-partition", "-t", at.queue)
    for heading in ("Workflow Task Queue Partitions", "Activity Task Queue Partitions"):
        text.has(heading)
    expect.that(at.queue in text.text, "the queue itself", text.text)


@case
async def a_queue_is_configured(at: Setting) -> None:
    config = ["task-queue", "config"]
    of_activities = ["-t", at.id("queue"), "--task-queue-type", "activity"]
    limits = ["--queue-rps-limit", "5", "--queue-rps-limit-reason", "busy"]
    limits += ["--fairness-key-rps-limit-default", "2.5", "--fairness-key-rps-limit-reason", "fair"]
    (await at.cli(*config, "set", *of_activities, *limits)).has("Successfully updated task queue configuration")

    def limit(rate: float, reason: str) -> dict:
        metadata = {"reason": reason, "updateIdentity": TEXT, "updateTime": TIME}
        return {"rateLimit": {"requestsPerSecond": rate}, "metadata": metadata}

    both = {"queueRateLimit": limit(5, "busy"), "fairnessKeysRateLimitDefault": limit(2.5, "fair")}
    matches(await at.cli.json(*config, "get", *of_activities), both)
    rows = {row["Setting"]: row["Value"] for row in (await at.cli(*config, "get", *of_activities)).table(NOTE)}
    expect.equal(rows["Queue Rate Limit"], "5.00 rps", "the limit of the queue")
    over = ["--queue-rps-limit", "default", "--queue-rps-limit-reason", "over"]
    told = (await at.cli.json(*config, "set", *of_activities, *over))["config"]
    without = {"metadata": {"reason": "over", "updateIdentity": TEXT, "updateTime": TIME}}
    matches(told, {"queueRateLimit": without, "fairnessKeysRateLimitDefault": limit(2.5, "fair")})
    of_workflows = ["-t", at.id("queue"), "--task-queue-type", "workflow", "--queue-rps-limit", "1"]
    refusal = await at.cli.refused(*config, "set", *of_workflows)
    expect.equal(refusal, "setting rate limit on workflow task queues is not allowed", "of workflow tasks")


@case
async def build_ids_are_kept_in_sets(at: Setting) -> None:
    queue = ["-t", at.id("queue")]
    update = ["task-queue", "update-build-ids"]
    done = "Successfully updated task queue build IDs"
    (await at.cli(*update, "add-new-default", *queue, "--build-id", "1.0")).says(done)
    compatible = ["--build-id", "1.1", "--existing-compatible-build-id", "1.0"]
    (await at.cli(*update, "add-new-compatible", *queue, *compatible)).says(done)
    (await at.cli(*update, "add-new-default", *queue, "--build-id", "2.0")).says(done)
    (await at.cli(*update, "promote-set", *queue, "--build-id", "1.0")).says(done)
    (await at.cli(*update, "promote-id-in-set", *queue, "--build-id", "1.0")).says(done)
    refusal = await at.cli.refused(*update, "promote-set", *queue, "--build-id", "3.0")
    expect.that(refusal.endswith("targeted version 3.0 not found"), "an id that is unknown", refusal)
    newer = {"buildIds": ["2.0"], "defaultForSet": "2.0"}
    default = {"buildIds": ["1.1", "1.0"], "defaultForSet": "1.0", "isDefaultSet": True}
    told = await at.cli.json("task-queue", "get-build-ids", *queue)
    expect.that(len(told) == 2, "two sets", told)
    matches(told[0], newer | {...: ...})
    matches(told[1], default)
    asked = ["task-queue", "get-build-id-reachability", *queue, "--build-id", "1.0"]
    expect.equal(
        await at.cli.json(*asked),
        [{"buildId": "1.0", "taskQueue": queue[1], "reachability": ["NewWorkflows"]}],
        "what new runs reach",
    )


@case
async def workers_are_listed_and_described(at: Setting) -> None:
    only = ["-q", f"TaskQueue = '{at.queue}'"]

    async def told() -> list:
        return await at.cli.json("worker", "list", *only)

    (info,) = await expect.eventually(told, "a worker that tells of itself")
    heartbeat = {
        "workerInstanceKey": RUN,
        "workerIdentity": TEXT,
        "taskQueue": at.queue,
        "sdkName": "temporal-python",
        "sdkVersion": TEXT,
        "status": "WORKER_STATUS_RUNNING",
        "startTime": TIME,
        "heartbeatTime": TIME,
        ...: ...,
    }
    matches(info, {"workerHeartbeat": heartbeat})
    key = info["workerHeartbeat"]["workerInstanceKey"]
    (row,) = (await at.cli("worker", "list", *only)).table()
    expect.equal([row["WorkerInstanceKey"], row["Status"], row["TaskQueue"]], [key, "Running", at.queue], "its row")
    describe = ["worker", "describe", "--worker-instance-key"]
    matches(await at.cli.json(*describe, key), {"workerHeartbeat": heartbeat | {"workerInstanceKey": key}})
    shown = (await at.cli(*describe, key)).properties()
    expect.equal([shown["Status"], shown["SdkName"]], ["Running", "temporal-python"], "its description")
    expect.equal(await at.cli.refused(*describe, at.id()), f"Worker {at.id()} not found", "nobody")
