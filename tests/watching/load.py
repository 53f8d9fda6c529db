"""A load that moves every metric which moves by itself: workflows that end well and ill, and calls that are refused."""

import asyncio
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import PollActivityTaskQueueRequest
from temporalio.client import Client, WorkflowFailureError
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

QUEUE = "orders"
NOBODYS_QUEUE = "nobody-polls-here"
# As many polls of a namespace may be in progress at the nodes under test.
POLLS_MAX = 40


@activity.defn
async def charge(order: int) -> int:
    if order % 4 == 1:
        raise ApplicationError("no money")
    return order


@workflow.defn
class Order:
    @workflow.run
    async def run(self, order: int) -> int:
        await workflow.sleep(timedelta(milliseconds=10))
        if order % 4 == 2:
            raise ApplicationError("out of stock")
        policy = RetryPolicy(maximum_attempts=2, initial_interval=timedelta(milliseconds=10))
        return await workflow.execute_activity(charge, order, start_to_close_timeout=timedelta(minutes=1), retry_policy=policy)


@workflow.defn
class Broken:
    """Its task fails, again and again."""

    @workflow.run
    async def run(self) -> None:
        raise RuntimeError("a mistake in the code")


async def run(client: Client) -> None:
    """All of it, once."""
    worker = Worker(client, task_queue=QUEUE, workflows=[Order, Broken], activities=[charge], workflow_runner=UnsandboxedWorkflowRunner())
    async with worker:
        for order in range(40):
            await client.start_workflow(Order.run, order, id=f"order-{order}", task_queue=QUEUE)
        broken = await client.start_workflow(Broken.run, id="broken", task_queue=QUEUE)
        for number in range(5):
            await client.start_workflow(Order.run, number, id=f"waits-{number}", task_queue=NOBODYS_QUEUE)
        for order in range(40):
            try:
                await client.get_workflow_handle(f"order-{order}").result()
            except WorkflowFailureError:
                pass
        await refused(client)
        await broken.terminate("enough")
    try:
        await client.get_workflow_handle("nobody").describe()
    except RPCError as error:
        assert error.status == RPCStatusCode.NOT_FOUND, error


async def refused(client: Client) -> None:
    """More polls than may be."""
    request = PollActivityTaskQueueRequest(namespace=client.namespace, task_queue=TaskQueue(name="idle"), identity="crowd")
    polls = [client.workflow_service.poll_activity_task_queue(request, timeout=timedelta(seconds=60)) for _ in range(POLLS_MAX + 10)]
    tasks = [asyncio.ensure_future(poll) for poll in polls]
    done, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    error = done.pop().exception()
    assert isinstance(error, RPCError) and error.status == RPCStatusCode.RESOURCE_EXHAUSTED, error
    for task in waiting:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
