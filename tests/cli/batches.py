"""Batches: the commands that take a query, and `temporal batch`."""

import re

import expect
from control import IS_PAUSED, PAUSED, SCHEDULED, stumbles, waits
from setting import Setting, case
from shape import NUMBER, RUN, TEXT, TIME, matches

BUSY = "Max concurrent batch operations is reached"


async def begins(at: Setting, *words: str) -> str:
    """Starts a batch in JSON; its job. A Temporal server may not know yet that the one before has ended."""
    answer = await at.cli.runs(*words, "--yes", "-o", "json")
    if at.shared.reference and answer.code and BUSY in answer.errors:

        async def free() -> bool:
            nonlocal answer
            answer = await at.cli.runs(*words, "--yes", "-o", "json")
            return not answer.code or BUSY not in answer.errors

        await expect.eventually(free, "the batch before has ended")
    expect.equal(answer.code, 0, f"{answer.command}: {answer.errors}")
    matches(answer.json(), {"batchJobId": RUN})
    return answer.json()["batchJobId"]


async def ends(at: Setting, job: str) -> dict:
    """The description of a job once it has ended."""

    async def look() -> dict | None:
        told = await at.cli.json("batch", "describe", "--job-id", job)
        return told if told["state"] != "BATCH_OPERATION_STATE_RUNNING" else None

    return await expect.eventually(look, f"the end of job {job}")


async def works(at: Setting, kind: str, count: int, *words: str) -> str:
    """A batch to its end, which is as it should be; its job."""
    job = await begins(at, *words, "--reason", f"because of {kind}")
    done = {
        "operationType": f"BATCH_OPERATION_TYPE_{kind}",
        "jobId": job,
        "state": "BATCH_OPERATION_STATE_COMPLETED",
        "startTime": TIME,
        "closeTime": TIME,
        "totalOperationCount": str(count),
        "completeOperationCount": str(count),
        "identity": TEXT,
        "reason": f"because of {kind}",
    }
    matches(await ends(at, job), done)
    return job


@case
async def queries_steer_many_runs(at: Setting) -> None:
    async with at.batches():
        ids = [(await at.start("Register", f"{number}"))[0] for number in range(4)]
        await at.lists(at.own, ids)
        job = await works(at, "SIGNAL", 4, "workflow", "signal", "-q", at.own, "--name", "put", "-i", "9")
        for id in ids:
            told = await at.cli.json("workflow", "query", "-w", id, "--name", "values")
            expect.equal(told, {"queryResult": [[9]]}, f"what {id} was told")
        shown = (await at.cli("batch", "describe", "--job-id", job)).properties()
        counts = {"CompletedCount": "4/4", "FailureCount": "0/4"}
        matches(shown, {"State": "Completed", "Type": "Signal", "StartTime": TEXT, "CloseTime": TEXT} | counts)

        first, second, third, fourth = (f'WorkflowId = "{id}"' for id in ids)
        await works(at, "CANCEL", 1, "workflow", "cancel", "-q", first)
        await works(at, "TERMINATE", 1, "workflow", "terminate", "-q", second)
        reset = ["workflow", "reset", "-q", third, "--type", "FirstWorkflowTask"]
        await works(at, "RESET", 1, *reset)
        told = await at.cli.runs("workflow", "result", "-w", ids[0], "-o", "json")
        expect.equal(told.json()["status"], "CANCELED", "a run that a batch has cancelled")
        expect.equal(await at.status(ids[1]), "TERMINATED", "one that it has terminated")
        values = await at.cli.json("workflow", "query", "-w", ids[2], "--name", "values")
        expect.equal(values, {"queryResult": [[9]]}, "one that it has reset")
        await at.lists(at.own, [*ids, ids[2]])
        await at.lists(f'{at.own} AND ExecutionStatus = "Running"', [ids[2], ids[3]])

        # What is closed is no longer cancelled, signalled or terminated.
        await works(at, "TERMINATE", 1, "workflow", "terminate", "-q", f"{first} OR {second} OR {fourth}")
        await works(at, "DELETE", 2, "workflow", "delete", "-q", f"{first} OR {second}")
        await at.lists(at.own, [ids[2], ids[2], ids[3]])
        refusal = await at.cli.refused("workflow", "describe", "-w", ids[1])
        expect.that("workflow not found" in refusal, "a run that a batch has deleted", refusal)
        await works(at, "DELETE", 3, "workflow", "delete", "-q", at.own)
        await at.lists(at.own, [])


@case
async def queries_steer_many_activities(at: Setting) -> None:
    ids = [await stumbles(at, f"{number}") for number in range(3)]
    for id in ids[:2]:
        await at.cli("activity", "pause", "-w", id, "-a", "stumble")
    async with at.batches():
        await at.lists(f"{at.own} AND {IS_PAUSED}", ids[:2])
        stumble = ["--activity-type", "Stumble"]
        reset = ["activity", "reset", "-q", f"{at.own} AND {IS_PAUSED}", *stumble, "--keep-paused"]
        job = await works(at, "RESET_ACTIVITY", 2, *reset)
        shown = (await at.cli("batch", "describe", "--job-id", job)).properties()
        expect.equal([shown["Type"], shown["CompletedCount"]], ["ResetActivity", "2/2"], "what was done")
        for id in ids[:2]:
            await waits(at, id, 1, PAUSED)
        await waits(at, ids[2], 2, SCHEDULED)
        # An unpaused activity is no longer found, so the runs are named.
        unpause = ["activity", "unpause", "-q", f"WorkflowId IN ('{ids[0]}', '{ids[1]}')", *stumble]
        job = await works(at, "UNPAUSE_ACTIVITY", 2, *unpause)
        shown = (await at.cli("batch", "describe", "--job-id", job)).properties()
        expect.equal(shown["Type"], "UnpauseActivity", "what was done")
        for id in ids:
            await waits(at, id, 2, SCHEDULED)
        await at.lists(f"{at.own} AND {IS_PAUSED}", [])
        # With a query this program sends no options of activities.
        update = ["activity", "update-options", "-q", at.own, *stumble, "--retry-maximum-attempts", "9", "--yes"]
        refusal = await at.cli.refused(*update)
        expect.that(refusal.startswith("failed starting batch operation: "), "options by a query", refusal)
        await works(at, "TERMINATE", 3, "workflow", "terminate", "-q", at.own)


@case
async def queries_change_options_of_many_runs(at: Setting) -> None:
    ids = [(await at.start("Register", f"{number}"))[0] for number in range(3)]
    for id in ids:
        await at.cli("workflow", "query", "-w", id, "--name", "values")
    behavior = ["--versioning-override-behavior", "auto_upgrade"]

    async def overrides() -> list[str | None]:
        told = [(await at.cli("workflow", "describe", "-w", id)).properties() for id in ids]
        return [each.get("OverrideBehavior") for each in told]

    async with at.batches():
        await at.lists(at.own, ids)
        first = f'WorkflowId = "{ids[0]}"'
        reset = ["workflow", "reset", "with-workflow-update-options", "-q", first, "--type", "FirstWorkflowTask"]
        await works(at, "RESET", 1, *reset, *behavior)
        expect.equal(await overrides(), ["AutoUpgrade", None, None], "options of what a batch has reset")
        running = f'{at.own} AND ExecutionStatus = "Running"'
        await at.lists(running, ids)
        job = await works(at, "UPDATE_EXECUTION_OPTIONS", 3, "workflow", "update-options", "-q", running, *behavior)
        shown = (await at.cli("batch", "describe", "--job-id", job)).properties()
        expect.equal(shown["Type"], "UpdateExecutionOptions", "what was done")
        expect.equal(await overrides(), ["AutoUpgrade"] * 3, "options of what it has changed")
        await works(at, "TERMINATE", 3, "workflow", "terminate", "-q", running)


@case
async def jobs_are_listed_and_terminated(at: Setting) -> None:
    async with at.batches():
        # A Temporal server works at its own pace, whatever is asked for.
        ids = await at.many(200 if at.shared.reference else 30)
        await at.lists(at.own, ids)
        signal = ["workflow", "signal", "-q", at.own, "--name", "put", "-i", "1", "--rps", "1"]
        job = await begins(at, *signal)
        running = {
            "operationType": "BATCH_OPERATION_TYPE_SIGNAL",
            "jobId": job,
            "state": "BATCH_OPERATION_STATE_RUNNING",
            "startTime": TIME,
            "identity": TEXT,
            "reason": TEXT,
            ...: ...,
        }
        matches(await at.cli.json("batch", "describe", "--job-id", job), running)
        its_run = f'TemporalNamespaceDivision = "TemporalBatcher" AND WorkflowId = "{job}"'
        await at.lists(f'{its_run} AND ExecutionStatus = "Running"', [job])
        refusal = await at.cli.refused(*signal, "--yes")
        expect.that(BUSY in refusal, "one at a time", refusal)
        terminate = ["batch", "terminate", "--job-id", job, "--reason", "no more"]
        (await at.cli(*terminate)).says(f"Terminated Batch Job '{job}'")
        told = await ends(at, job)
        expect.equal(told["state"], "BATCH_OPERATION_STATE_FAILED", "a job that is terminated")
        shown = (await at.cli("batch", "describe", "--job-id", job)).properties()
        expect.equal([shown["State"], shown["Type"]], ["Failed", "Signal"], "its description")
        await at.lists(f'{its_run} AND ExecutionStatus = "Running"', [])
        expect.equal(await at.cli.refused(*terminate), f"could not find Batch Job '{job}'", "a second time")
        last = await works(at, "TERMINATE", len(ids), "workflow", "terminate", "-q", at.own)

        async def newest() -> list[dict]:
            jobs = await at.cli.json("batch", "list", "--limit", "2")
            return [{"job": each["jobId"], "state": each["state"].split("_")[-1]} for each in jobs]

        expected = [{"job": last, "state": "COMPLETED"}, {"job": job, "state": "FAILED"}]
        await at.settles(newest, expected, "the jobs, the newest first")
        rows = (await at.cli("batch", "list", "--limit", "2")).table()
        expect.equal([[row["JobId"], row["State"]] for row in rows], [[last, "Completed"], [job, "Failed"]], "a table")
        # A job is none of the runs that people see.
        await at.lists(f'WorkflowId = "{job}"', [])


@case
async def what_no_batch_is_is_refused(at: Setting) -> None:
    id, _ = await at.start("Register", "run", queue=at.idle)
    await at.lists(at.own, [id])
    terminate = ["workflow", "terminate", "-q", at.own]
    answer = await at.cli.runs(*terminate, stdin="no\n")
    prompt = "Start batch against approximately 1 workflow(s)? y/N"
    expect.that(answer.text.startswith(prompt), "how many it would be", answer.text)
    expect.equal([answer.code, answer.message()], [1, "user denied confirmation"], "somebody who says no")
    refusal = await at.cli.refused("workflow", "terminate", "-q", "Nobody = 1", "--yes")
    expect.that("column name 'Nobody' is not a valid search attribute" in refusal, "a bad query", refusal)
    nobody = at.id("nobody")
    for words in (["describe"], ["terminate", "--reason", "none"]):
        refusal = await at.cli.refused("batch", *words, "--job-id", nobody)
        expect.equal(refusal, f"could not find Batch Job '{nobody}'", "a job that is not there")
    expect.equal(await at.status(id), "RUNNING", "the run")
    async with at.batches():
        answer = await at.cli(*terminate, "--yes")
        (job,) = re.findall(r"^Started batch for job ID: (\S+)$", answer.text, re.MULTILINE)
        expect.that(answer.text.startswith(prompt), "how many it is", answer.text)
        told = await ends(at, job)
        matches(told, {"reason": TEXT, "completeOperationCount": "1", "totalOperationCount": NUMBER, ...: ...})
        expect.that(told["reason"].startswith("Requested from CLI by"), "a reason that nobody gave", told)
    expect.equal(await at.status(id), "TERMINATED", "the run at last")
