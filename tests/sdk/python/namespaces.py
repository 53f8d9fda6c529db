"""Namespaces: what is in one is nothing to another, and of one that was deleted nothing is left, though its name is used again."""

import asyncio
import uuid
from datetime import timedelta
from typing import Any

from google.protobuf.duration_pb2 import Duration
from temporalio import activity, workflow
from temporalio.api.enums.v1 import NamespaceState, TaskQueueType
from temporalio.api.namespace.v1 import UpdateNamespaceInfo
from temporalio.api.operatorservice.v1 import DeleteNamespaceRequest
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DeprecateNamespaceRequest,
    DescribeNamespaceRequest,
    DescribeTaskQueueRequest,
    ListNamespacesRequest,
    PollWorkflowTaskQueueRequest,
    PollWorkflowTaskQueueResponse,
    RegisterNamespaceRequest,
    UpdateNamespaceRequest,
)
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleIntervalSpec,
    ScheduleSpec,
    WorkflowHandle,
)
from temporalio.common import WorkflowIDReusePolicy
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker

import expect
from case import case
from world import RUNNER, World


@workflow.defn
class Counter:
    """Counts what it is sent until it is told to stop; a timer of it never fires."""

    def __init__(self) -> None:
        self.count = 0
        self.stopped = False

    @workflow.run
    async def run(self) -> str:
        hour = asyncio.create_task(asyncio.sleep(3_600))
        await workflow.wait_condition(lambda: self.stopped)
        hour.cancel()
        return f"{workflow.info().namespace} {self.count}"

    @workflow.update
    async def add(self, number: int) -> str:
        self.count += number
        return f"{workflow.info().namespace} {self.count}"

    @workflow.query
    def counted(self) -> int:
        return self.count

    @workflow.signal
    def stop(self) -> None:
        self.stopped = True


@workflow.defn
class Echo:
    """Is over at once."""

    @workflow.run
    async def run(self, word: str) -> str:
        return word


@workflow.defn
class Asker:
    """Waits for an activity that somebody else completes."""

    @workflow.run
    async def run(self) -> str:
        return await workflow.execute_activity(given_away, start_to_close_timeout=timedelta(minutes=1))


TOKENS: dict[str, bytes] = {}


@activity.defn
async def given_away() -> str:
    TOKENS[activity.info().workflow_namespace] = activity.info().task_token
    activity.raise_complete_async()


def within(world: World, namespace: str) -> tuple[Client, Client]:
    """Clients in a namespace, for callers and for workers."""
    clients = world.client, world.workers_client
    return Client(clients[0].service_client, namespace=namespace), Client(
        clients[1].service_client, namespace=namespace
    )


async def described(world: World, namespace: str) -> tuple[str, int]:
    """UUID and state; none and 0 where it is not known."""
    request = DescribeNamespaceRequest(namespace=namespace)
    try:
        answer = await world.client.workflow_service.describe_namespace(request)
    except RPCError as error:
        expect.equal(error.status.name, "NOT_FOUND", f"the answer to a description of {namespace}")
        return "", 0
    return answer.namespace_info.id, answer.namespace_info.state


async def register(world: World, namespace: str) -> str:
    """Makes a namespace and waits until it can be used at every node; its UUID."""
    day = Duration(seconds=86_400)
    request = RegisterNamespaceRequest(namespace=namespace, workflow_execution_retention_period=day)
    await world.client.workflow_service.register_namespace(request)
    for client in within(world, namespace):

        async def is_known(client: Client = client) -> bool:
            nobody = client.get_workflow_handle("nobody")
            error = await expect.fails(RPCError, nobody.describe())
            return error.status == RPCStatusCode.NOT_FOUND and not error.message.startswith("Namespace")

        await expect.eventually(is_known, f"{namespace} can be used")
    identity, state = await described(world, namespace)
    expect.equal(state, NamespaceState.NAMESPACE_STATE_REGISTERED, "the state of a new namespace")
    return identity


async def delete(world: World, namespace: str) -> str:
    """Deletes a namespace: what it is called since then."""
    request = DeleteNamespaceRequest(namespace=namespace)
    answer = await world.client.operator_service.delete_namespace(request)
    return answer.deleted_namespace


async def answer(call: Any) -> str:
    """How a call is answered: the name of its status."""
    try:
        await call
    except RPCError as error:
        return error.status.name
    return "OK"


async def poll(client: Client, queue: str) -> PollWorkflowTaskQueueResponse:
    request = PollWorkflowTaskQueueRequest(namespace=client.namespace, task_queue=TaskQueue(name=queue))
    return await client.workflow_service.poll_workflow_task_queue(request)


async def is_polled(client: Client, queue: str) -> bool:
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )
    return bool((await client.workflow_service.describe_task_queue(request)).pollers)


def worker(client: Client, queue: str, **options: Any) -> Worker:
    workflows = [Counter, Echo, Asker]
    return Worker(client, task_queue=queue, workflows=workflows, workflow_runner=RUNNER, **options)


async def counters(client: Client, queue: str) -> list[WorkflowHandle[Any, str]]:
    """Five runs that are open and have counted something."""
    handles = [await client.start_workflow(Counter.run, id=f"open-{n}", task_queue=queue) for n in range(5)]
    for handle in handles:
        await handle.execute_update(Counter.add, 7, id="update-1")
    return handles


async def schedule(client: Client, queue: str) -> None:
    """A schedule that starts a run each second, and has begun to."""
    action = ScheduleActionStartWorkflow(Echo.run, "old", id="scheduled", task_queue=queue)
    spec = ScheduleSpec(intervals=[ScheduleIntervalSpec(timedelta(seconds=1))])
    handle = await client.create_schedule("each-second", Schedule(action=action, spec=spec))

    async def has_acted() -> bool:
        return (await handle.describe()).info.num_actions > 0

    await expect.eventually(has_acted, "the schedule acts")


async def has_no_schedule(client: Client) -> None:
    await expect.refused(RPCStatusCode.NOT_FOUND, client.get_schedule_handle("each-second").describe())
    listed = [found.id async for found in await client.list_schedules()]
    expect.equal(listed, [], "the schedules")
    started = await client.count_workflows("TemporalScheduledById = 'each-second'")
    expect.equal(started.count, 0, "the runs of a schedule")


@case(slow=True)
async def nothing_is_left_of_a_deleted_one(world: World) -> None:
    namespace = f"gone-{uuid.uuid4()}"
    first_id = await register(world, namespace)
    client, workers_client = within(world, namespace)
    working = worker(workers_client, "queue")
    work = asyncio.create_task(working.run())
    handles = await counters(client, "queue")
    for number in range(5):
        echoed = client.execute_workflow(Echo.run, "old", id=f"closed-{number}", task_queue="queue")
        expect.equal(await echoed, "old", "a result")
    await schedule(client, "queue")
    results = [asyncio.create_task(answer(handle.result())) for handle in handles[:1]]
    waiting = asyncio.create_task(answer(poll(client, "nobody's")))
    await expect.eventually(lambda: is_polled(client, "nobody's"), "the poll waits")

    deleted = await delete(world, namespace)
    expect.equal(deleted, f"{namespace}-deleted-{first_id[:5]}", "the name of what is deleted")
    await gone(world, namespace, deleted)
    expect.that(await waiting in ("OK", "NOT_FOUND", "FAILED_PRECONDITION"), "the poll that waited ends")
    await asyncio.gather(*results, return_exceptions=True)
    # Its polls are refused by now: it may have ended by itself.
    await asyncio.gather(working.shutdown(), work, return_exceptions=True)

    second_id = await register(world, namespace)
    expect.that(second_id != first_id, "the new one is another")
    for workflow_id in ("open-0", "closed-0"):
        error = await expect.refused(
            RPCStatusCode.NOT_FOUND, client.get_workflow_handle(workflow_id).describe()
        )
        expect.that(not error.message.startswith("Namespace"), "it is the run that is not there", error.message)
    async with worker(workers_client, "queue"):
        for number in range(5):
            for workflow_id in (f"open-{number}", f"closed-{number}"):
                handle = await client.start_workflow(
                    Echo.run,
                    "new",
                    id=workflow_id,
                    task_queue="queue",
                    id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                )
                expect.equal(await handle.result(), "new", "the result of the new run")
    await has_no_schedule(client)
    await delete(world, namespace)


async def gone(world: World, namespace: str, deleted: str) -> None:
    """The old name is that of nothing, and the new one that of something which takes nothing."""
    for number in range(2):
        old, new = within(world, namespace)[number], within(world, deleted)[number]

        async def is_unknown(client: Client = old) -> bool:
            start = client.start_workflow(Echo.run, "late", id="late", task_queue="queue")
            return await answer(start) == "NOT_FOUND"

        await expect.eventually(is_unknown, f"{namespace} is not known")
        # A Temporal server forgets it once nothing is left.
        refusals = ("FAILED_PRECONDITION", "NOT_FOUND")
        for call in (
            new.start_workflow(Echo.run, "late", id="late", task_queue="queue"),
            new.get_workflow_handle("open-0").signal(Counter.stop),
            new.get_workflow_handle("open-0").describe(),
            new.get_workflow_handle("closed-0").fetch_history(),
            poll(new, "queue"),
        ):
            status = await answer(call)
            expect.that(status in refusals, "the answer to a call in what is deleted", status)
    request = ListNamespacesRequest(page_size=1_000)
    listed = await world.client.workflow_service.list_namespaces(request)
    names = [found.namespace_info.name for found in listed.namespaces]
    expect.that(namespace not in names and deleted not in names, "it is listed no more", names)
    _, state = await described(world, deleted)
    states = (NamespaceState.NAMESPACE_STATE_UNSPECIFIED, NamespaceState.NAMESPACE_STATE_DELETED)
    expect.that(state in states, "the state of what is deleted", state)


@case(slow=True)
async def equal_names_in_two_are_of_two(world: World) -> None:
    names = [f"{word}-{uuid.uuid4()}" for word in ("left", "right")]
    for namespace in names:
        await register(world, namespace)
    clients = [within(world, namespace) for namespace in names]
    (left, left_workers), (right, right_workers) = clients
    async with (
        worker(left_workers, "queue", activities=[given_away]),
        worker(right_workers, "queue", activities=[given_away]),
    ):
        handles = [
            await client.start_workflow(Counter.run, id="run", task_queue="queue") for client in (left, right)
        ]
        for number, handle in enumerate(handles, 1):
            for _ in range(2):
                # An update's id counts once, in its run.
                told = await handle.execute_update(Counter.add, number, id="update-1")
                expect.equal(told, f"{names[number - 1]} {number}", "what the update came to")
        expect.equal([await handle.query(Counter.counted) for handle in handles], [1, 2], "what was counted")
        await handles[0].signal(Counter.stop)
        expect.equal(await handles[0].result(), f"{names[0]} 1", "the result of the left run")
        status = (await handles[1].describe()).status
        expect.equal(status.name if status else "", "RUNNING", "the right run goes on")
        await tokens(left, right, names[0])
    for namespace in names:
        await delete(world, namespace)


async def tokens(left: Client, right: Client, namespace: str) -> None:
    """A task's token is worth nothing in another namespace."""
    handle = await left.start_workflow(Asker.run, id="asker", task_queue="queue")

    async def token() -> bytes | None:
        return TOKENS.get(namespace)

    task_token = await expect.eventually(token, "the activity has begun")
    foreign = right.get_async_activity_handle(task_token=task_token)
    for call in (foreign.complete("stolen"), foreign.fail(RuntimeError("stolen")), foreign.heartbeat()):
        error = await expect.refused(RPCStatusCode.INVALID_ARGUMENT, call)
        expect.equal(
            error.message, "Operation requested with a token from a different namespace.", "the refusal"
        )
    await left.get_async_activity_handle(task_token=task_token).complete("own")
    expect.equal(await handle.result(), "own", "the result")


@case()
async def a_deprecated_one_goes_on_and_takes_no_starts(world: World) -> None:
    namespace = world.id("deprecated")
    id = await register(world, namespace)
    caller, workers = within(world, namespace)
    options = {"id": world.id("counter"), "task_queue": world.queue}
    handle = await caller.start_workflow(Counter.run, **options)
    for _ in range(2):
        await world.client.workflow_service.deprecate_namespace(DeprecateNamespaceRequest(namespace=namespace))

    async def start(client: Client = caller, **options: Any) -> str:
        """How a start is answered."""
        try:
            await client.start_workflow(Echo.run, "", id=world.id("echo"), task_queue=world.queue, **options)
        except RPCError as error:
            return f"{error.status.name}: {error.message}"
        return ""

    state = NamespaceState.NAMESPACE_STATE_DEPRECATED
    refusal = "FAILED_PRECONDITION: Namespace has invalid state: Deprecated. Must be Registered."
    for client in (caller, workers):

        async def is_known(client: Client = client) -> bool:
            return await start(client) == refusal

        await expect.eventually(is_known, "it takes no starts, at any node")
    expect.equal(await start(start_signal="stop"), refusal, "a start with a signal")
    expect.equal(await described(world, namespace), (id, state), "what is told of it")
    async with Worker(workers, task_queue=world.queue, workflows=[Counter], workflow_runner=RUNNER):
        expect.equal(await handle.execute_update(Counter.add, 2), f"{namespace} 2", "what runs goes on")
        await handle.signal(Counter.stop)
        expect.equal(await handle.result(), f"{namespace} 2", "to its end")
    back = UpdateNamespaceInfo(state=NamespaceState.NAMESPACE_STATE_REGISTERED)
    request = UpdateNamespaceRequest(namespace=namespace, update_info=back)
    error = await expect.fails(RPCError, world.client.workflow_service.update_namespace(request))
    expect.equal(error.message, "Invalid namespace state update.", "it stays so")
