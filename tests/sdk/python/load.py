"""A thousand workflows at once: all end with their results, and none twice."""

import asyncio
import time
from datetime import timedelta

from temporalio import activity, workflow

import expect
from case import case
from world import World

RUNS = 1000


@activity.defn
async def square(n: int) -> int:
    return n * n


@workflow.defn
class SquareAndAdd:
    """The square of its number, by an activity, and what a signal gives it, after a timer."""

    def __init__(self) -> None:
        self.given: list[int] = []

    @workflow.run
    async def run(self, n: int) -> int:
        result = await workflow.execute_activity(square, n, start_to_close_timeout=timedelta(seconds=60))
        await asyncio.sleep(0.5)
        await workflow.wait_condition(lambda: bool(self.given))
        return result + sum(self.given)

    @workflow.signal
    def give(self, n: int) -> None:
        self.given.append(n)


@case(alone=True)
async def a_thousand_workflows_at_once(world: World) -> None:
    begun = time.monotonic()
    slots = asyncio.Semaphore(100)
    async with world.worker(SquareAndAdd, activities=[square], max_concurrent_activities=200):

        async def one(n: int) -> int:
            async with slots:
                handle = await world.start(SquareAndAdd.run, n)
                await handle.signal(SquareAndAdd.give, 1)
            return await handle.result()

        results = await asyncio.gather(*(one(n) for n in range(RUNS)))
    print(f"# {RUNS} workflows in {time.monotonic() - begun:.1f} s", flush=True)
    expect.equal(results, [n * n + 1 for n in range(RUNS)], "the results")
