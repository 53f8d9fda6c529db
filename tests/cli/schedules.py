"""`temporal schedule`."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import expect
from setting import COLOUR, WEIGHT, Setting, case
from shape import TEXT, TIME, matches

# Noon of Mondays, in what it is described as.
MONDAYS = {"second": "0", "minute": "0", "hour": "12", "dayOfMonth": "1-31", "month": "1-12", "dayOfWeek": "1"}
FRIDAYS = {"second": "0", "minute": "5", "hour": "17", "dayOfMonth": "1-31", "month": "1-12", "dayOfWeek": "5"}
EVERY = {"every": "5h 0m 0s", "offset": "15m 0s"}
NEVER = "workflow execution already completed"


def starts(at: Setting, id: str, type: str = "Register") -> list[str]:
    """What a schedule does: runs under this id, that nobody works at."""
    return ["--type", type, "-t", at.idle, "-w", id]


@asynccontextmanager
async def schedule(at: Setting, *words: str, word: str = "schedule") -> AsyncIterator[str]:
    """A schedule made by the interface, and its end; its runs are terminated."""
    id = at.id(word)
    await at.cli("schedule", "create", "-s", id, *words)
    try:
        yield id
    finally:
        described = await at.cli.runs("schedule", "describe", "-s", id, "-o", "json")
        if not described.code:
            for run in recent(described.json()):
                await at.cli.runs("workflow", "terminate", "-w", run["startWorkflowResult"]["workflowId"])
            (await at.cli("schedule", "delete", "-s", id)).says("Schedule deleted")


async def until(at: Setting, id: str, what: str, so: Callable[[dict], Any]) -> dict:
    """The description in JSON as soon as this is so of it."""

    async def look() -> dict | None:
        told = await at.cli.json("schedule", "describe", "-s", id)
        return told if so(told) else None

    return await expect.eventually(look, what)


def recent(told: dict) -> list[dict]:
    return told["info"].get("recentActions", [])


def ids(told: dict) -> list[str]:
    return [each["startWorkflowResult"]["workflowId"] for each in recent(told)]


def calendar(shown: dict[str, str]) -> dict[str, Any]:
    """A calendar in JSON, from what is shown of it as text."""
    found = {}
    for name, value in shown.items():
        start, _, end = value.partition("-")
        numbers = {"start": int(start), "end": int(end or start), "step": 1}
        found[name] = [{key: number for key, number in numbers.items() if number}]
    return found


@case
async def what_is_made_is_described(at: Setting) -> None:
    run = at.id("run")
    friday = json.dumps({"dayOfWeek": "Fri", "hour": "17", "minute": "5", "comment": "late"})
    words = ["--cron", "0 12 * * MON", "--calendar", friday, "--interval", "5h/15m", "--jitter", "5s"]
    words += ["--time-zone", "Europe/Berlin", "--start-time", "2031-01-01T00:00:00Z"]
    words += ["--overlap-policy", "BufferAll", "--catchup-window", "1h", "--pause-on-failure"]
    words += ["--remaining-actions", "5", "--notes", "hello", "--schedule-memo", 'of="it"']
    words += ["--schedule-search-attribute", f'{COLOUR}="red"', "-i", "1", "--run-timeout", "1h", "--memo", "of=[2]"]
    words += ["--search-attribute", f"{WEIGHT}=7"]
    async with schedule(at, *starts(at, run), *words) as id:
        shown = (await at.cli("schedule", "describe", "-s", id)).properties()
        action = json.loads(shown["Action"])
        expect.equal([action["ID"], action["Workflow"], action["TaskQueue"]], [run, "Register", at.idle], "its action")
        expect.equal(json.loads(shown["Spec"]), [MONDAYS, FRIDAYS | {"comment": "late"}, EVERY], "its spec")
        expected = {
            "ScheduleId": id,
            "Jitter": "5s",
            "TimeZoneName": "Europe/Berlin",
            "OverlapPolicy": "BufferAll",
            "CatchupWindow": "1h 0m 0s",
            "PauseOnFailure": "true",
            "Notes": "hello",
            "Paused": "false",
            "LimitedActions": "true",
            "RemainingActions": "5",
            "RunningWorkflows": "[]",
            "LastUpdateAt": "a long while ago",
            "ActionCounts": '{"Total":0,"MissedCatchupWindow":0,"SkippedOverlap":0}',
            "Memo": '{"fields":{"of":"it"}}',
        }
        matches(shown, expected | {"NextRunTime": TEXT, "CreatedAt": TEXT, ...: ...})

        told = await at.cli.json("schedule", "describe", "-s", id)
        late = calendar(FRIDAYS) | {"comment": "late"}
        spec = {
            "structuredCalendar": [calendar(MONDAYS), late],
            "interval": [{"interval": "18000s", "phase": "900s"}],
            "startTime": "2031-01-01T00:00:00Z",
            "jitter": "5s",
            "timezoneName": "Europe/Berlin",
        }
        policies = {"overlapPolicy": "SCHEDULE_OVERLAP_POLICY_BUFFER_ALL", "catchupWindow": "3600s", "pauseOnFailure": True}
        state = {"notes": "hello", "limitedActions": True, "remainingActions": "5"}
        start = {
            "workflowId": run,
            "workflowType": {"name": "Register"},
            "taskQueue": {"name": at.idle, "kind": "TASK_QUEUE_KIND_NORMAL"},
            "input": {"payloads": [{"metadata": {"encoding": "anNvbi9wbGFpbg=="}, "data": "MQ=="}]},
            "workflowRunTimeout": "3600s",
            "workflowTaskTimeout": "10s",
            "memo": {"fields": {"of": {"metadata": {"encoding": "anNvbi9wbGFpbg=="}, "data": "WzJd"}}},
            "searchAttributes": {"indexedFields": {WEIGHT: ...}},
            ...: ...,
        }
        action = {"startWorkflow": start}
        made = {"spec": spec, "action": action, "policies": policies, "state": state}
        matches(told["schedule"], made)
        matches(told["info"], {"futureActionTimes": [TIME] * 5, "createTime": TIME})
        red = {"metadata": {"encoding": "anNvbi9wbGFpbg==", "type": "S2V5d29yZA=="}, "data": "InJlZCI="}
        matches(told["searchAttributes"], {"indexedFields": {COLOUR: red}})
        matches(told["memo"], {"fields": {"of": {"metadata": ..., "data": "Iml0Ig=="}}})
        matches(told, {name: ... for name in ("schedule", "info", "memo", "searchAttributes", "conflictToken")})


@case
async def schedules_are_listed(at: Setting) -> None:
    colour = ["--schedule-search-attribute", f'{COLOUR}="{at.prefix}"']
    own = f'{COLOUR} = "{at.prefix}"'
    first = ["--interval", "5h/15m", "--notes", "hello", "--schedule-memo", 'of="it"', *colour]
    second = ["--cron", "0 12 * * MON", "--paused", "--notes", "not yet", *colour]
    async with (
        schedule(at, *starts(at, at.id("run")), *first, word="first") as one,
        schedule(at, *starts(at, at.id("run"), "Greeting"), *second, word="second") as two,
    ):

        async def listed(query: str) -> list[str]:
            return sorted(each["scheduleId"] for each in await at.cli.json("schedule", "list", "-q", query))

        async def lists(query: str, *expected: str) -> None:
            await at.settles(lambda: listed(query), sorted(expected), query)

        await lists(own, one, two)
        await lists(f"{own} AND TemporalSchedulePaused = true", two)
        await lists(f'ScheduleId = "{one}"', one)
        await lists(f'{own} AND ScheduleId = "{at.id("nobody")}"')
        rows = {row["ScheduleId"]: row for row in (await at.cli("schedule", "list", "-q", own)).table()}
        matches(rows[one], {"ScheduleId": one, "Action": '{"Workflow":"Register"}', "Paused": "false", "NextRunTime": TEXT})
        matches(rows[two], {"ScheduleId": two, "Action": '{"Workflow":"Greeting"}', "Paused": "true", "NextRunTime": TEXT})
        rows = {row["ScheduleId"]: row for row in (await at.cli("schedule", "list", "-l", "-q", own)).table()}
        specs = {name: json.loads(row["Spec"]) for name, row in rows.items()}
        expect.equal(specs, {one: [EVERY], two: [MONDAYS]}, "with their specs")
        expect.equal([rows[one]["Notes"], rows[two]["Notes"]], ["hello", "not yet"], "with their notes")
        (found,) = await at.cli.json("schedule", "list", "-q", f'ScheduleId = "{two}"')
        spec = {"structuredCalendar": [calendar(MONDAYS)]}
        info = {"spec": spec | {"jitter": "0s"}, "workflowType": {"name": "Greeting"}, "notes": "not yet", "paused": True}
        matches(found["info"], info | {"futureActionTimes": [TIME, ...]})
        every = {row["ScheduleId"] for row in (await at.cli("schedule", "list")).table()}
        expect.that({one, two} <= every, "in the list of all", every)

        await at.cli("schedule", "toggle", "-s", two, "--unpause", "--reason", "now")
        await lists(f"{own} AND TemporalSchedulePaused = true")
    await lists(own)
    nothing = await at.cli("schedule", "list", "-q", own)
    expect.equal(nothing.table(), [], "none")
    refusal = await at.cli.refused("schedule", "list", "-q", 'WorkflowType = "x"')
    expect.that("cannot filter on" in refusal, "what schedules are not found by", refusal)


@case
async def actions_are_asked_for(at: Setting) -> None:
    run = at.id("run")
    async with schedule(at, *starts(at, run), "--interval", "1h", "--paused") as id:
        toggle = ["schedule", "toggle", "-s", id]
        for flag, paused, reason in (("--unpause", False, "go on"), ("--pause", True, "no more"), ("--pause", True, "never")):
            (await at.cli(*toggle, flag, "--reason", reason)).says("")
            shown = (await at.cli("schedule", "describe", "-s", id)).properties()
            expect.equal([shown["Paused"], shown["Notes"]], [str(paused).lower(), reason], flag)
        await at.cli(*toggle, "--pause")
        shown = (await at.cli("schedule", "describe", "-s", id)).properties()
        expect.equal(shown["Notes"], "(no reason provided)", "without a reason")
        for flags in ([], ["--pause", "--unpause"]):
            refusal = await at.cli.refused(*toggle, *flags)
            expect.equal(refusal, "exactly one of --pause or --unpause is required", "which of both")

        (await at.cli("schedule", "trigger", "-s", id)).says("Trigger request sent")
        told = await until(at, id, "an action", recent)
        action = {
            "scheduleTime": TIME,
            "actualTime": TIME,
            "startWorkflowResult": {"workflowId": TEXT, "runId": TEXT},
            "startWorkflowStatus": "WORKFLOW_EXECUTION_STATUS_RUNNING",
        }
        matches(recent(told), [action])
        (triggered,) = ids(told)
        expect.that(triggered.startswith(f"{run}-"), "the id of its run", triggered)
        expect.equal(told["info"]["runningWorkflows"], [recent(told)[0]["startWorkflowResult"]], "what is running")
        shown = (await at.cli("schedule", "describe", "-s", id)).properties()
        expect.equal(shown["RunningWorkflows"], f"[{triggered}]", "what is running, as text")

        await at.cli("schedule", "trigger", "-s", id)
        await until(at, id, "a start left out", lambda told: told["info"].get("overlapSkipped") == "1")
        shown = (await at.cli("schedule", "describe", "-s", id)).properties()
        counts = {"Total": 1, "MissedCatchupWindow": 0, "SkippedOverlap": 1}
        expect.equal(json.loads(shown["ActionCounts"]), counts, "what was left out")

        backfill = ["schedule", "backfill", "-s", id, "--start-time", "2026-01-01T00:30:00Z"]
        backfill += ["--end-time", "2026-01-01T03:00:00Z", "--overlap-policy", "AllowAll"]
        (await at.cli(*backfill)).says("Backfill request sent")
        told = await until(at, id, "actions", lambda told: told["info"]["actionCount"] == "4")
        times = [f"{run}-2026-01-01T0{hour}:00:00Z" for hour in (1, 2, 3)]
        expect.equal(sorted(ids(told)[1:]), times, "what would have been started")
        await at.lists(f'TemporalScheduledById = "{id}"', ids(told))
        for other in times:
            await at.cli("workflow", "terminate", "-w", other)
        terminate = ["schedule", "trigger", "-s", id, "--overlap-policy", "TerminateOther"]
        await at.cli(*terminate)
        told = await until(at, id, "another action", lambda told: told["info"]["actionCount"] == "5")
        expect.equal(await at.status(triggered), "TERMINATED", "what gave way")


@case
async def schedules_are_updated_and_deleted(at: Setting) -> None:
    run = at.id("run")
    make = [*starts(at, run), "--cron", "0 12 * * MON"]
    async with schedule(at, *make, "--notes", "hello", "--schedule-memo", 'of="it"', "-i", "1") as id:
        again = await at.cli.refused("schedule", "create", "-s", id, *make)
        expect.equal(again, "schedule with this ID is already registered", "a second one")
        change = ["--interval", "1h", "--end-time", "2031-01-01T00:00:00Z", "--overlap-policy", "AllowAll", "-i", "2"]
        (await at.cli("schedule", "update", "-s", id, *starts(at, run, "Greeting"), *change)).says("")
        shown = (await at.cli("schedule", "describe", "-s", id)).properties()
        expect.equal(json.loads(shown["Spec"]), [{"every": "1h 0m 0s"}], "a new spec")
        expect.equal([shown["OverlapPolicy"], shown["CatchupWindow"]], ["AllowAll", "365d 0h 0m 0s"], "new policies")
        expect.equal(shown["Memo"], '{"fields":{"of":"it"}}', "what an update keeps")
        expect.that("Notes" not in shown, "what it does not", shown)
        expect.that(shown["LastUpdateAt"] != "a long while ago", "when it was updated", shown)
        told = await at.cli.json("schedule", "describe", "-s", id)
        action = told["schedule"]["action"]["startWorkflow"]
        expect.equal([action["workflowType"]["name"], action["input"]["payloads"][0]["data"]], ["Greeting", "Mg=="], "an action")
        matches(told["info"], {"futureActionTimes": [TIME] * 10, "createTime": TIME, "updateTime": TIME})
        (await at.cli("schedule", "delete", "-s", id)).says("Schedule deleted")
        expect.equal(await at.cli.refused("schedule", "describe", "-s", id), "schedule not found", "a deleted one")
        backfill = ["backfill", "--start-time", "2026-01-01T00:00:00Z", "--end-time", "2026-01-01T01:00:00Z"]
        for words in (["delete"], ["trigger"], ["toggle", "--pause"], backfill, ["update", *make]):
            refusal = await at.cli.refused("schedule", *words, "-s", id)
            known = ["schedule not found"] + [NEVER] * at.shared.reference
            expect.that(refusal in known, f"schedule {words[0]}", refusal)
        # Its id is free again.
        await at.cli("schedule", "create", "-s", id, *make)


@case
async def what_no_schedule_is_is_refused(at: Setting) -> None:
    create = ["schedule", "create", "-s", at.id("bad"), *starts(at, at.id("run"))]
    rows = [
        (["--cron", "0 25 * * *"], "Invalid schedule spec: Hour is not in range [0-23]"),
        (["--cron", "0 0 * *"], "Invalid schedule spec: CronString does not have 5-7 fields"),
        (["--calendar", '{"hour": "1/2/3"}'], "Invalid schedule spec: Hour has too many slashes"),
        (["--interval", "1h/2h"], "Invalid schedule spec: phase cannot be greater than Interval"),
        (["--interval", "10ms"], "Invalid schedule spec: interval is too small"),
        (["--interval", "1h", "--time-zone", "Nowhere"], "Invalid schedule spec: unknown time zone Nowhere"),
        (["--interval", "1h", "--schedule-search-attribute", "Nobody=1"], "Nobody"),
    ]
    for words, why in rows:
        refusal = await at.cli.refused(*create, *words)
        expect.that(why in refusal, why, refusal)
    refusal = await at.cli.refused("schedule", "describe", "-s", at.id("bad"))
    expect.that("not found" in refusal, "nothing was made", refusal)
