"""A worker to be killed: it serves the workflow Tally, has its runs in its cache when it says so, and ends with its input."""

import asyncio
import sys
from datetime import timedelta

from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker


@workflow.defn
class Tally:
    """Counts signals until it has two."""

    def __init__(self) -> None:
        self.count = 0

    @workflow.run
    async def run(self) -> int:
        await workflow.wait_condition(lambda: self.count >= 2)
        return self.count

    @workflow.signal
    def add(self) -> None:
        self.count += 1

    @workflow.query
    def counted(self) -> int:
        return self.count


async def serve(address: str, queue: str, sticky_s: str) -> None:
    client = await Client.connect(address, namespace="default")
    # Not in the sandbox, which cannot import what stands in the program that is run.
    async with Worker(
        client,
        task_queue=queue,
        workflows=[Tally],
        workflow_runner=UnsandboxedWorkflowRunner(),
        sticky_queue_schedule_to_start_timeout=timedelta(seconds=int(sticky_s)),
    ):
        print("polls", flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
