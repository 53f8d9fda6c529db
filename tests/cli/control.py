"""What an operator does to an activity or a run that is stuck."""

import expect
from activities import pends
from setting import Setting, case
from shape import RUN, TEXT, TIME, matches

SCHEDULED, PAUSED = "PENDING_ACTIVITY_STATE_SCHEDULED", "PENDING_ACTIVITY_STATE_PAUSED"
UNKNOWN = "Can't find pending activity with such ID. Invalid activityID or activity already completed"
NAMELESS = "Either Activity.Id or Activity.Type should be set on request."
OPTIONS = "EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED"
# What runs with a paused activity of this type match.
IS_PAUSED = "TemporalPauseInfo = 'property:activityType=Stumble'"


async def stumbles(at: Setting, word: str = "run") -> str:
    """A run whose activity waits an hour for its second attempt."""
    id, _ = await at.start("Stumbling", word)
    await waits(at, id, 2)
    return id


async def waits(at: Setting, id: str, attempt: int, state: str = SCHEDULED) -> dict:
    """The only pending activity of a run, once it waits for this attempt."""

    async def look() -> dict | None:
        pending = await pends(at, id, state)
        return pending if pending["attempt"] == attempt else None

    return await expect.eventually(look, f"attempt {attempt} of {id} in {state}")


@case
async def an_activity_is_paused_and_unpaused(at: Setting) -> None:
    id = await stumbles(at)
    activity = ["-w", id, "-a", "stumble"]
    (await at.cli("activity", "pause", *activity)).says("")
    expected = {
        "activityId": "stumble",
        "state": PAUSED,
        "attempt": 2,
        "heartbeatDetails": ["half the way"],
        "paused": True,
        "pauseInfo": {"pauseTime": TIME, "manual": {"identity": TEXT}},
        ...: ...,
    }
    paused = await pends(at, id, PAUSED)
    matches(paused, expected)
    (await at.cli("workflow", "describe", "-w", id)).has("  State                 Paused")
    await at.lists(f"{at.own} AND {IS_PAUSED}", [id])
    (await at.cli("activity", "pause", "-w", id, "--activity-type", "Stumble")).says("")
    expect.equal((await pends(at, id, PAUSED))["pauseInfo"], paused["pauseInfo"], "a second pause")

    (await at.cli("activity", "unpause", *activity)).says("")
    expect.that("pauseInfo" not in await waits(at, id, 3), "it has been tried again")
    await at.lists(f"{at.own} AND {IS_PAUSED}", [])
    (await at.cli("activity", "unpause", *activity)).says("")
    expect.equal((await pends(at, id, SCHEDULED))["attempt"], 3, "what is not paused stays as it is")
    await at.cli("activity", "pause", *activity)
    by_type = ["--activity-type", "Stumble", "--reset-attempts", "--reset-heartbeats"]
    (await at.cli("activity", "unpause", "-w", id, *by_type)).says("")
    await waits(at, id, 2)

    for verb, what in (("pause", "pause Activity"), ("unpause", "unpause an Activity")):
        refusal = await at.cli.refused("activity", verb, "-w", id, "-a", "nobody")
        expect.equal(refusal, f"unable to {what}: {UNKNOWN}", "an activity that is not there")
        refusal = await at.cli.refused("activity", verb, "-w", id)
        expect.equal(refusal, f"unable to {what}: {NAMELESS}", "none that is named")
    await at.cli("workflow", "terminate", "-w", id)
    refusal = await at.cli.refused("activity", "pause", *activity)
    expect.equal(refusal, "unable to pause Activity: workflow execution already completed", "of a closed run")


@case
async def an_activity_is_reset(at: Setting) -> None:
    id = await stumbles(at)
    activity = ["-w", id, "-a", "stumble"]
    await at.cli("activity", "pause", *activity)
    told = (await at.cli("activity", "reset", *activity, "--keep-paused")).properties()
    expect.equal(told, {"KeepPaused": "true", "ResetHeartbeats": "false", "ServerResponse": "true"}, "the answer")
    pending = await pends(at, id, PAUSED)
    expect.equal([pending["attempt"], pending["heartbeatDetails"]], [1, ["half the way"]], "it stays paused")
    told = await at.cli.json("activity", "reset", *activity, "--keep-paused", "--reset-heartbeats")
    matches(told, {"keepPaused": True, "resetHeartbeats": True, ...: ...})
    await at.cli("activity", "reset", "-w", id, "--activity-type", "Stumble")
    # The first attempt once more.
    expect.that("pauseInfo" not in await waits(at, id, 2), "it is unpaused")
    refusal = await at.cli.refused("activity", "reset", "-w", id, "-a", "nobody")
    expect.equal(refusal, f"unable to reset an Activity: {UNKNOWN}", "an activity that is not there")
    refusal = await at.cli.refused("activity", "reset", "-w", id)
    expect.equal(refusal, "either Activity Type or Activity Id must be provided", "none that is named")
    await at.cli("workflow", "terminate", "-w", id)


@case
async def an_activity_gets_other_options(at: Setting) -> None:
    id = await stumbles(at)
    update = ["activity", "update-options", "-w", id, "-a", "stumble"]
    timeouts = ["--schedule-to-close-timeout", "2h", "--schedule-to-start-timeout", "1h"]
    timeouts += ["--start-to-close-timeout", "30m", "--heartbeat-timeout", "30s"]
    retries = ["--retry-initial-interval", "30m", "--retry-backoff-coefficient", "1.5"]
    retries += ["--retry-maximum-interval", "40m", "--retry-maximum-attempts", "7"]
    expected = {
        "TaskQueue": at.queue,
        "ScheduleToCloseTimeout": "2h0m0s",
        "ScheduleToStartTimeout": "1h0m0s",
        "StartToCloseTimeout": "30m0s",
        "HeartbeatTimeout": "30s",
        "InitialInterval": "30m0s",
        "BackoffCoefficient": "1.5",
        "MaximumInterval": "40m0s",
        "MaximumAttempts": "7",
    }
    expect.equal((await at.cli(*update, *timeouts, *retries)).properties(), expected, "the answer")
    options = {
        "taskQueue": {"name": at.queue, ...: ...},
        "scheduleToCloseTimeout": "7200s",
        "scheduleToStartTimeout": "3600s",
        "startToCloseTimeout": "1800s",
        "heartbeatTimeout": "30s",
        "retryPolicy": {
            "initialInterval": "1800s",
            "backoffCoefficient": 1.5,
            "maximumInterval": "2400s",
            "maximumAttempts": 7,
        },
        ...: ...,
    }
    pending = await pends(at, id, SCHEDULED)
    matches(pending, {"maximumAttempts": 7, "attempt": 2, "activityOptions": options, ...: ...})
    refusal = await at.cli.refused(*update[:-1], "nobody", "--heartbeat-timeout", "1s")
    expect.equal(refusal, f"unable to update Activity options: {UNKNOWN}", "an activity that is not there")
    # The third attempt comes soon instead of in an hour, and is the last one.
    soon = ["--retry-initial-interval", "10ms", "--retry-maximum-attempts", "3"]
    told = await at.cli.json(*update, *soon)
    expect.equal([told["InitialInterval"], told["MaximumAttempts"]], [10_000_000, 3], "in JSON, in nanoseconds")
    ended = await at.cli.runs("workflow", "result", "-w", id, "-o", "json")
    expect.equal([ended.code, ended.json()["status"]], [1, "FAILED"], "how the run ends")


@case
async def a_run_gets_other_options(at: Setting) -> None:
    id, first = await at.start("Register", "run")
    await at.cli("workflow", "query", "-w", id, "--name", "values")
    update = ["workflow", "update-options", "-w", id, "--versioning-override-behavior"]
    (await at.cli(*update, "auto_upgrade")).says("Update workflow options succeeded")
    shown = (await at.cli("workflow", "describe", "-w", id)).properties()
    expect.equal(shown["OverrideBehavior"], "AutoUpgrade", "how it goes on")
    version = ["--versioning-override-deployment-name", "ours", "--versioning-override-build-id", "one"]
    await at.cli(*update, "pinned", *version)
    shown = (await at.cli("workflow", "describe", "-w", id)).properties()
    expect.equal(shown["OverrideBehavior"], "Pinned", "where it is pinned to")
    await at.cli(*update, "unspecified")
    shown = (await at.cli("workflow", "describe", "-w", id)).properties()
    expect.that("OverrideBehavior" not in shown, "without one", shown)
    expect.equal(await options_of(at, id), [True, True, False], "an event for each, with what is set")
    refusal = await at.cli.refused(*update, "pinned")
    expect.equal(refusal, "missing deployment name and/or build id with 'pinned' behavior", "no version")

    words = ["-w", id, "--type", "FirstWorkflowTask", "--reason", "again", "--versioning-override-behavior"]
    again = await at.cli.json("workflow", "reset", "with-workflow-update-options", *words, "auto_upgrade")
    matches(again, {"runId": RUN})
    expect.equal(await at.status(id, first), "TERMINATED", "the run before")
    shown = (await at.cli("workflow", "describe", "-w", id)).properties()
    expect.equal([shown["RunId"], shown["OverrideBehavior"]], [again["runId"], "AutoUpgrade"], "the new run")
    expect.equal((await options_of(at, id))[-1], True, "its last event of options")
    await at.cli("workflow", "terminate", "-w", id)
    refusal = await at.cli.refused(*update, "auto_upgrade")
    why = "failed to update workflow options: workflow execution already completed"
    expect.equal(refusal, why, "a closed run")


async def options_of(at: Setting, id: str) -> list[bool]:
    """Whether each event that changes the options of a run sets a version, in their order."""
    events = (await at.cli.json("workflow", "show", "-w", id))["events"]
    changes = [event for event in events if event["eventType"] == OPTIONS]
    return ["versioningOverride" in each["workflowExecutionOptionsUpdatedEventAttributes"] for each in changes]
