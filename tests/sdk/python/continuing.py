"""Continue-as-new: many times, with what is handed on, with signals on the way, until time is over."""

import asyncio
import time
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import (
    ApplicationError,
)
from temporalio.service import RPCStatusCode

import expect
import history as histories
import patience
from case import case
from history import shape
from world import World


@dataclass
class Lap:
    left: int
    done: int = 0
    heard: int = 0
    firsts: str = ""


@workflow.defn
class Relay:
    """Continues as new until no laps are left; hands on what it has heard and which run was first."""

    def __init__(self) -> None:
        self.heard = 0

    @workflow.run
    async def run(self, lap: Lap) -> Lap:
        first = workflow.info().first_execution_run_id
        if lap.firsts not in ("", first):
            raise ApplicationError(f"first run is {first}, was {lap.firsts}")
        lap = replace(lap, firsts=first, heard=lap.heard + self.heard)
        if not lap.left:
            return lap
        await workflow.wait_condition(workflow.all_handlers_finished)
        workflow.continue_as_new(replace(lap, left=lap.left - 1, done=lap.done + 1))

    @workflow.signal
    def hear(self) -> None:
        self.heard += 1


@workflow.defn
class Refill:
    """Continues as new once with other options than it was started with."""

    @workflow.run
    async def run(self, again: bool) -> dict[str, Any]:
        info = workflow.info()
        if again:
            workflow.continue_as_new(
                False,
                memo={"colour": "green"},
                run_timeout=timedelta(seconds=77),
                task_timeout=timedelta(seconds=7),
            )
        return {
            "memo": dict(workflow.memo()),
            "run_timeout": info.run_timeout.total_seconds() if info.run_timeout else None,
            "task_timeout": info.task_timeout.total_seconds(),
            "execution_timeout": info.execution_timeout.total_seconds() if info.execution_timeout else None,
            "continued": info.continued_run_id is not None,
        }


@workflow.defn
class Spin:
    """Continues as new for ever, slowly."""

    @workflow.run
    async def run(self) -> None:
        await asyncio.sleep(0.4)
        workflow.continue_as_new()


@case(slow=True)
async def continues_as_new_fifty_times(world: World) -> None:
    async with world.worker(Relay):
        handle = await world.start(Relay.run, Lap(50))
        lap = await handle.result()
        expect.equal(
            (lap["left"], lap["done"]) if isinstance(lap, dict) else (lap.left, lap.done), (0, 50), "laps"
        )
    runs = [run async for run in histories.chain(world.client, handle.id, handle.result_run_id)]
    expect.equal(len(runs), 51, "the runs")
    for before, after in zip(runs, runs[1:]):
        started = after.events[0].workflow_execution_started_event_attributes
        expect.equal(started.continued_execution_run_id, before.run_id, "the run before")
        expect.equal(started.first_execution_run_id, handle.first_execution_run_id, "the first run")
        expect.equal(started.original_execution_run_id, after.run_id, "its own run")
    expect.equal(
        (await world.describe(handle.id)).workflow_execution_info.execution.run_id, runs[-1].run_id, "current"
    )


@case()
async def keeps_every_signal_over_continue_as_new(world: World) -> None:
    async with world.worker(Relay):
        handle = await world.start(Relay.run, Lap(4))
        current = world.client.get_workflow_handle(handle.id)
        sent = 0
        try:
            for _ in range(400):
                await current.signal(Relay.hear)
                sent += 1
                # A flood without a pause would keep the runs from continuing.
                await patience.pass_s(0.01)
        except Exception as error:
            expect.equal(getattr(error, "status", error), RPCStatusCode.NOT_FOUND, "a refusal after the end")
        await handle.result()
    recorded = 0
    async for run in histories.chain(world.client, handle.id, handle.result_run_id):
        recorded += shape(run).count("WorkflowExecutionSignaled")
    expect.equal(recorded, sent, "each acknowledged signal stands in a history")


@case()
async def continue_as_new_takes_what_it_is_given(world: World) -> None:
    async with world.worker(Refill):
        options = {
            "memo": {"colour": "red"},
            "run_timeout": timedelta(seconds=55),
            "execution_timeout": timedelta(seconds=66),
        }
        plain = await world.execute(Refill.run, False, **options)
        expected = {"memo": {"colour": "red"}, "run_timeout": 55, "task_timeout": 10, "execution_timeout": 66}
        expect.equal(plain, expected | {"continued": False}, "as started")
        changed = await world.execute(Refill.run, True, **options)
        expect.that(changed["run_timeout"] in (77, 66), "the run timeout, at most the execution's", changed)
        del changed["run_timeout"]
        expected = {
            "memo": {"colour": "green"},
            "task_timeout": 7,
            "execution_timeout": 66,
            "continued": True,
        }
        expect.equal(changed, expected, "as continued")


@case()
async def an_execution_timeout_ends_a_chain_of_runs(world: World) -> None:
    async with world.worker(Spin):
        for span_s in patience.spans_s("it continues as new in time", 3):
            begun = time.monotonic()
            handle = await world.start(Spin.run, execution_timeout=timedelta(seconds=span_s))
            await expect.fails(WorkflowFailureError, handle.result())
            expect.that(time.monotonic() - begun >= span_s - 0.05, "not before its time is over")
            runs = [run async for run in histories.chain(world.client, handle.id, handle.result_run_id)]
            if len(runs) >= 2:
                break
    expect.equal(shape(runs[-1])[-1], "WorkflowExecutionTimedOut", "the end of the last run")
    ends = {
        run.events[
            0
        ].workflow_execution_started_event_attributes.workflow_execution_expiration_time.ToMilliseconds()
        for run in runs
    }
    expect.equal(len(ends), 1, "all runs have the same expiration")
