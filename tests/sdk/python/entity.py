"""Entity workflows: one run chain per thing of the world, changed by signals, asked by queries."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCStatusCode

import expect
from case import case
from history import chain, shape
from world import World

# After so many changes a shelf goes on in a new run.
CHANGES_PER_RUN = 20


@dataclass
class Shelf:
    """A shelf of a warehouse: what lies on it, and what was done to it."""

    stock: dict[str, int] = field(default_factory=dict)
    checked: list[str] = field(default_factory=list)
    changes: int = 0
    last: int = -1
    out_of_order: int = 0
    runs: int = 1
    status: str = "OPEN"


@dataclass
class Change:
    """So many pieces of an item put on (or taken off) the shelf; numbers grow with each change sent."""

    number: int
    item: str
    pieces: int


@activity.defn
async def weigh(item: str) -> str:
    await asyncio.sleep(0.02)
    return f"{item} weighed"


@workflow.defn
class ShelfEntity:
    """Lives until it is cleared away; its state goes with it from run to run."""

    @workflow.init
    def __init__(self, carried: Shelf | None = None) -> None:
        # Handlers may run before `run` does: the state must be in place already.
        self.shelf = carried or Shelf()
        self.changes_here = 0

    @workflow.run
    async def run(self, carried: Shelf | None = None) -> Shelf:
        await workflow.wait_condition(lambda: self.is_over() or self.is_full())
        await workflow.wait_condition(workflow.all_handlers_finished)
        if self.is_over():
            return self.shelf
        self.shelf.runs += 1
        workflow.continue_as_new(self.shelf)

    def is_over(self) -> bool:
        return self.shelf.status == "CLEARED"

    def is_full(self) -> bool:
        return self.changes_here >= CHANGES_PER_RUN or workflow.info().is_continue_as_new_suggested()

    @workflow.signal
    def put(self, change: Change) -> None:
        if change.number <= self.shelf.last:
            self.shelf.out_of_order += 1
        self.shelf.last = change.number
        self.shelf.stock[change.item] = self.shelf.stock.get(change.item, 0) + change.pieces
        self.shelf.changes += 1
        self.changes_here += 1

    @workflow.signal
    async def check(self, item: str) -> None:
        answer = await workflow.execute_activity(weigh, item, start_to_close_timeout=timedelta(seconds=10))
        self.shelf.checked.append(answer)
        self.changes_here += 1

    @workflow.signal
    def clear(self) -> None:
        self.shelf.status = "CLEARED"

    @workflow.query
    def look(self) -> Shelf:
        return self.shelf


def serving(world: World, **options: Any):
    return world.worker(ShelfEntity, activities=[weigh], **options)


async def cleared(world: World, handle: WorkflowHandle[Any, Any]) -> Shelf:
    """The end of a shelf."""
    current = world.client.get_workflow_handle_for(ShelfEntity.run, handle.id)
    await current.signal(ShelfEntity.clear)
    return await current.result()


@case()
async def is_started_once(world: World) -> None:
    async with serving(world):
        first = await world.start(ShelfEntity.run)
        error = await expect.fails(WorkflowAlreadyStartedError, world.start(ShelfEntity.run, id=first.id))
        expect.equal(error.run_id, first.result_run_id, "the refusal names the run")
        same = await world.start(
            ShelfEntity.run, id=first.id, id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING
        )
        expect.equal(same.result_run_id, first.result_run_id, "a start that takes what is there")
        await cleared(world, first)


@case()
async def applies_signals_in_order(world: World) -> None:
    async with serving(world):
        handle = await world.start(ShelfEntity.run)
        current = world.client.get_workflow_handle_for(ShelfEntity.run, handle.id)
        for n in range(CHANGES_PER_RUN - 1):
            await current.signal(ShelfEntity.put, Change(n, "screw" if n % 2 else "nail", n))
        shelf = await current.query(ShelfEntity.look)
        expect.equal(
            (shelf.changes, shelf.last, shelf.out_of_order), (19, 18, 0), "changes, last, out of order"
        )
        expect.equal(shelf.stock, {"nail": 90, "screw": 81}, "the stock")
        await cleared(world, handle)


async def has_runs(handle: WorkflowHandle[Any, Any], count: int) -> bool:
    return (await handle.query(ShelfEntity.look)).runs >= count


@case()
async def carries_its_state_from_run_to_run(world: World) -> None:
    async with serving(world):
        handle = await world.start(ShelfEntity.run)
        current = world.client.get_workflow_handle_for(ShelfEntity.run, handle.id)
        for n in range(120):
            await current.signal(ShelfEntity.put, Change(n, "bolt", 1))
            if n % 10 == 9:
                await current.signal(ShelfEntity.check, f"lot {n}")
            if n % 40 == 39:
                # A flood without a pause would keep the run from its continue-as-new.
                await expect.eventually(lambda so_far=n // 40 + 2: has_runs(current, so_far), "another run")
        shelf = await cleared(world, handle)
        expect.equal(
            (shelf.stock, shelf.changes, shelf.out_of_order), ({"bolt": 120}, 120, 0), "every change once"
        )
        expect.equal(
            sorted(shelf.checked), sorted(f"lot {n} weighed" for n in range(9, 120, 10)), "every check once"
        )
    runs = [run async for run in chain(world.client, handle.id, handle.result_run_id)]
    expect.that(len(runs) == shelf.runs >= 3, "runs", (len(runs), shelf.runs))
    for run in runs[1:]:
        started = run.events[0].workflow_execution_started_event_attributes
        expect.equal(started.first_execution_run_id, handle.result_run_id, "the first run")
    expect.equal({shape(run)[-1] for run in runs[:-1]}, {"WorkflowExecutionContinuedAsNew"}, "their ends")


@case()
async def answers_after_its_end(world: World) -> None:
    async with serving(world):
        handle = await world.start(ShelfEntity.run)
        await handle.signal(ShelfEntity.put, Change(0, "nut", 5))
        await cleared(world, handle)
        current = world.client.get_workflow_handle_for(ShelfEntity.run, handle.id)
        shelf = await current.query(ShelfEntity.look)
        expect.equal((shelf.status, shelf.stock), ("CLEARED", {"nut": 5}), "what it was")
        await expect.refused(RPCStatusCode.NOT_FOUND, current.signal(ShelfEntity.put, Change(1, "nut", 1)))
        again = await world.start(ShelfEntity.run, id=handle.id)
        expect.equal((await again.query(ShelfEntity.look)).stock, {}, "the next one of this id begins anew")
        await cleared(world, again)


@case()
async def is_cancelled_and_times_out(world: World) -> None:
    async with serving(world):
        cancelled = await world.start(ShelfEntity.run)
        expiring = await world.start(ShelfEntity.run, execution_timeout=timedelta(seconds=2))
        await cancelled.cancel()
        for handle, status in [
            (cancelled, WorkflowExecutionStatus.CANCELED),
            (expiring, WorkflowExecutionStatus.TIMED_OUT),
        ]:
            await expect.fails(WorkflowFailureError, handle.result())
            expect.equal((await handle.describe()).status, status, "the status")
            await expect.refused(RPCStatusCode.NOT_FOUND, handle.signal(ShelfEntity.clear))


async def put_with_start(world: World, workflow_id: str, change: Change) -> WorkflowHandle[Any, Any]:
    return await world.start(ShelfEntity.run, id=workflow_id, start_signal="put", start_signal_args=[change])


@case()
async def is_signalled_with_its_start_or_while_it_runs(world: World) -> None:
    async with serving(world):
        first = await put_with_start(world, world.id(), Change(0, "peg", 1))
        second = await put_with_start(world, first.id, Change(1, "peg", 2))
        expect.equal(second.result_run_id, first.result_run_id, "the running one is signalled")
        shelf = await cleared(world, first)
        expect.equal((shelf.stock, shelf.out_of_order), ({"peg": 3}, 0), "both changes")


@case()
async def takes_changes_of_many_senders(world: World) -> None:
    async with serving(world):
        workflow_id = world.id()

        async def send(sender: int) -> None:
            for n in range(12):
                await put_with_start(world, workflow_id, Change(n, f"of {sender}", 1))

        await asyncio.gather(*(send(sender) for sender in range(6)))
        current = world.client.get_workflow_handle_for(ShelfEntity.run, workflow_id)
        await current.signal(ShelfEntity.clear)
        shelf = await current.result()
        expect.equal(shelf.stock, {f"of {sender}": 12 for sender in range(6)}, "every change once")
