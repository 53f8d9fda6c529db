"""A worker to be killed: it serves the workflow Where, takes its activity in hand, never returns it, and ends with its input."""

import asyncio
import sys
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.worker import UnsandboxedWorkflowRunner, Worker


@activity.defn(name="where")
async def stall() -> str:
    print("in hand", flush=True)
    await asyncio.Event().wait()
    return "stalled"


@workflow.defn
class Where:
    """Answers where its activity ran."""

    @workflow.run
    async def run(self) -> str:
        return await workflow.execute_activity(
            "where",
            start_to_close_timeout=timedelta(seconds=3),
            retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=100)),
        )


async def serve(address: str, queue: str) -> None:
    client = await Client.connect(address, namespace="default")
    # Not in the sandbox, which cannot import what stands in the program that is run.
    runner = UnsandboxedWorkflowRunner()
    async with Worker(
        client, task_queue=queue, workflows=[Where], activities=[stall], workflow_runner=runner
    ):
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2]))
