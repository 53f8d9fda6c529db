"""Payloads and histories of size: large values byte for byte, many events, paged forwards and backwards."""

import asyncio
import hashlib
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import (
    GetWorkflowExecutionHistoryRequest,
    GetWorkflowExecutionHistoryReverseRequest,
)
from temporalio.client import WorkflowHandle
from temporalio.service import RPCStatusCode

import expect
from case import case
from history import events_named
from world import NAMESPACE, World

LARGE_BYTES = 1_900_000


@activity.defn
async def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@activity.defn
async def repeat(data: bytes, times: int) -> bytes:
    return data * times


@workflow.defn
class Carry:
    """Takes bytes in, through an activity each way, and gives bytes back."""

    def __init__(self) -> None:
        self.signalled = b""

    @workflow.run
    async def run(self, data: bytes) -> bytes:
        timeout = timedelta(seconds=20)
        if (
            await workflow.execute_activity(digest, data, start_to_close_timeout=timeout)
            != hashlib.sha256(data).hexdigest()
        ):
            return b"changed on the way"
        await workflow.wait_condition(lambda: bool(self.signalled))
        return await workflow.execute_activity(
            repeat, args=[self.signalled[:1000], LARGE_BYTES // 1000], start_to_close_timeout=timeout
        )

    @workflow.signal
    def give(self, data: bytes) -> None:
        self.signalled = data

    @workflow.query
    def held(self) -> bytes:
        return self.signalled


@workflow.defn
class Mirror:
    @workflow.run
    async def run(self, value: Any) -> Any:
        return value


@workflow.defn
class Count:
    """Counts signals and timers, to make a long history."""

    def __init__(self) -> None:
        self.count = 0

    @workflow.run
    async def run(self, enough: int) -> int:
        for _ in range(5):
            await asyncio.gather(*(workflow.sleep(timedelta(milliseconds=1)) for _ in range(20)))
        await workflow.wait_condition(lambda: self.count >= enough)
        return self.count

    @workflow.signal
    def tick(self, n: int) -> None:
        self.count += 1


def pattern(size_bytes: int) -> bytes:
    """Bytes that do not compress and are the same each time."""
    blocks = (hashlib.sha256(str(n).encode()).digest() for n in range(size_bytes // 32 + 1))
    return b"".join(blocks)[:size_bytes]


@case()
async def of_nearly_two_megabytes_pass_unchanged(world: World) -> None:
    data = pattern(LARGE_BYTES)
    async with world.worker(Carry, activities=[digest, repeat]):
        handle = await world.start(Carry.run, data)
        await handle.signal(Carry.give, data[::-1])
        expect.that(await handle.query(Carry.held) == data[::-1], "the signal, by a query")
        result = await handle.result()
    expect.that(result == data[::-1][:1000] * (LARGE_BYTES // 1000), "the result", len(result))
    started = (await world.history(handle)).events[0].workflow_execution_started_event_attributes
    expect.that(started.input.payloads[0].data == data, "the input in the history")


@case()
async def over_the_limit_are_refused(world: World) -> None:
    data = pattern(2 * 1024 * 1024 + 1000)
    await expect.refused(RPCStatusCode.INVALID_ARGUMENT, world.start(Carry.run, data))
    handle = await world.start(Carry.run, b"small")
    await expect.refused(RPCStatusCode.INVALID_ARGUMENT, handle.signal(Carry.give, data))
    expect.equal(len((await world.history(handle)).events), 2, "nothing was written")


@case()
async def of_every_kind_pass_unchanged(world: World) -> None:
    values = [
        None,
        "",
        "\u0000\U0001f600 ünï",
        0,
        -(2**53),
        1.5e300,
        True,
        [],
        {},
        [[[]]],
        {"ключ": ["값"]},
        b"",
        bytes(range(256)),
    ]
    async with world.worker(Mirror):
        handles = [await world.start(Mirror.run, value) for value in values]
        results = await asyncio.gather(*(handle.result() for handle in handles))
    expect.equal(results, values, "the values")


async def long_history(world: World) -> WorkflowHandle:
    """A closed run with more than 600 events."""
    async with world.worker(Count):
        handle = await world.start(Count.run, 300)
        for n in range(300):
            await handle.signal(Count.tick, n)
        expect.equal(await handle.result(), 300, "all were counted")
    return handle


async def page_through(
    world: World, handle: WorkflowHandle, request: Any, call: Any
) -> tuple[list[HistoryEvent], int]:
    request.namespace = NAMESPACE
    request.execution.workflow_id = handle.id
    request.execution.run_id = handle.result_run_id
    events: list[HistoryEvent] = []
    pages = 0
    while True:
        page = await call(request)
        expect.that(not getattr(page, "raw_history", None), "no raw history")
        events += page.history.events
        pages += 1
        if not page.next_page_token:
            return events, pages
        request.next_page_token = page.next_page_token


@case()
async def a_long_history_comes_in_pages(world: World) -> None:
    handle = await long_history(world)
    service = world.client.workflow_service
    forward, pages = await page_through(
        world, handle, GetWorkflowExecutionHistoryRequest(), service.get_workflow_execution_history
    )
    expect.that(len(forward) > 600, "many events", len(forward))
    expect.equal([e.event_id for e in forward], list(range(1, len(forward) + 1)), "each event once, in order")
    few, pages = await page_through(
        world,
        handle,
        GetWorkflowExecutionHistoryRequest(maximum_page_size=7),
        service.get_workflow_execution_history,
    )
    expect.that(few == forward and pages > 10, "small pages hold the same", pages)
    backward, pages = await page_through(
        world,
        handle,
        GetWorkflowExecutionHistoryReverseRequest(maximum_page_size=100),
        service.get_workflow_execution_history_reverse,
    )
    expect.that(backward[::-1] == forward and pages > 1, "backwards it is the same", (len(backward), pages))
    signaled = events_named(await world.history(handle), "WorkflowExecutionSignaled")
    expect.equal(len(signaled), 300, "each signal once")


@case()
async def a_long_history_is_replayed_from_its_pages(world: World) -> None:
    handle = await world.start(Count.run, 360)
    for n in range(300):
        await handle.signal(Count.tick, n)
    async with world.worker(Count):
        await world.until_event(handle, "TimerFired", 100)
    # The next worker knows nothing: it gets a first page with its task, and fetches the rest.
    async with world.worker(Count, max_cached_workflows=0, max_concurrent_workflow_task_polls=1):
        for n in range(60):
            await handle.signal(Count.tick, n)
        expect.equal(await handle.result(), 360, "all were counted")


@case()
async def a_page_of_another_run_is_refused(world: World) -> None:
    first = await world.start(Mirror.run, 1)
    second = await world.start(Mirror.run, 2)
    request = GetWorkflowExecutionHistoryRequest(
        namespace=NAMESPACE, maximum_page_size=1, wait_new_event=True
    )
    request.execution.workflow_id = first.id
    page = await world.client.workflow_service.get_workflow_execution_history(request)
    expect.that(bool(page.next_page_token), "there is more to come")
    request.execution.workflow_id = second.id
    request.execution.run_id = second.result_run_id
    request.next_page_token = page.next_page_token
    refusal = world.client.workflow_service.get_workflow_execution_history(request)
    await expect.refused(RPCStatusCode.INVALID_ARGUMENT, refusal)
    request.next_page_token = b"not a token"
    refusal = world.client.workflow_service.get_workflow_execution_history(request)
    await expect.refused(RPCStatusCode.INVALID_ARGUMENT, refusal)
