"""Workers: small caches, replaced in mid-run, killed with work in hand, and several on one queue."""

import asyncio
import os
import subprocess
import sys
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client

import expect
import stalling_worker
from case import case
from history import events_named, shape
from world import NAMESPACE, World


@activity.defn
async def add_one(n: int) -> int:
    return n + 1


@activity.defn
async def where() -> str:
    return str(os.getpid())


@workflow.defn
class Steps:
    """Takes a step of each kind for each signal: an activity, a timer, a signal waited for."""

    def __init__(self) -> None:
        self.signals = 0

    @workflow.run
    async def run(self, rounds: int) -> int:
        total = 0
        for n in range(1, rounds + 1):
            total = await workflow.execute_activity(
                add_one, total, start_to_close_timeout=timedelta(seconds=10)
            )
            await asyncio.sleep(0.02)
            await workflow.wait_condition(lambda: self.signals >= n)
        return total

    @workflow.signal
    def step(self) -> None:
        self.signals += 1

    @workflow.query
    def taken(self) -> int:
        return self.signals


async def walk_through(world: World, runs: int, rounds: int) -> None:
    """Signals some runs in turn, so that each of them is wanted when the others were served in between."""
    handles = [await world.start(Steps.run, rounds) for _ in range(runs)]
    for _ in range(rounds):
        for handle in handles:
            await handle.signal(Steps.step)
        expect.that(await handles[0].query(Steps.taken) > 0, "a query in between")
    results = await asyncio.gather(*(handle.result() for handle in handles))
    expect.equal(results, [rounds] * runs, "the results")


@case()
async def without_a_cache_each_task_is_a_replay(world: World) -> None:
    async with world.worker(
        Steps, activities=[add_one], max_cached_workflows=0, max_concurrent_workflow_task_polls=1
    ):
        await walk_through(world, 5, 5)


@case()
async def with_a_cache_of_two_ten_runs_push_each_other_out(world: World) -> None:
    async with world.worker(Steps, activities=[add_one], max_cached_workflows=2):
        await walk_through(world, 10, 5)


@case()
async def two_on_one_queue_share_the_runs(world: World) -> None:
    other = await Client.connect(world.address, namespace=NAMESPACE)
    async with (
        world.worker(Steps, activities=[add_one]),
        world.worker(Steps, activities=[add_one], client=other),
    ):
        await walk_through(world, 10, 4)


@case()
async def replaced_in_mid_run_the_next_one_goes_on(world: World) -> None:
    handles = [await world.start(Steps.run, 4) for _ in range(5)]
    for n in range(4):
        async with world.worker(Steps, activities=[add_one]):
            for handle in handles:
                await handle.signal(Steps.step)
            for handle in handles:
                await world.until_event(handle, "TimerFired", n + 1)
    async with world.worker(Steps, activities=[add_one]):
        results = await asyncio.gather(*(handle.result() for handle in handles))
    expect.equal(results, [4] * 5, "the results")


@case()
async def a_task_for_one_that_went_goes_to_another(world: World) -> None:
    async with world.worker(Steps, activities=[add_one]):
        handle = await world.start(Steps.run, 2)
        await handle.signal(Steps.step)
        await world.until_event(handle, "TimerStarted", 2)
    await world.until_event(handle, "TimerFired", 2)
    await handle.signal(Steps.step)
    async with world.worker(Steps, activities=[add_one]):
        # The run was bound to the first one's sticky queue.
        expect.equal(await handle.result(), 2, "the result")


@case(slow=True)
async def killed_with_an_activity_in_hand_the_next_one_repeats_it(world: World) -> None:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = await asyncio.create_subprocess_exec(
        sys.executable, stalling_worker.__file__, world.address, world.queue, **pipes
    )
    try:
        handle = await world.start(stalling_worker.Where.run)
        line = await process.stdout.readline()
        expect.equal(line.decode().strip(), "in hand", "the first worker has the activity")
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
    async with world.worker(stalling_worker.Where, activities=[where]):
        expect.equal(await handle.result(), str(os.getpid()), "it ran in this process")
    history = await world.history(handle)
    expect.that(events_named(history, "ActivityTaskStarted")[0].attempt >= 2, "at a later attempt")
    expect.equal(shape(history).count("ActivityTaskCompleted"), 1, "with one result")
