"""A worker to be killed: it serves the workflow Tally, and has its runs in its cache when it says so."""

import asyncio
import sys

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


async def serve(address: str, queue: str) -> None:
    client = await Client.connect(address, namespace="default")
    # Not in the sandbox, which cannot import what stands in the program that is run.
    async with Worker(
        client, task_queue=queue, workflows=[Tally], workflow_runner=UnsandboxedWorkflowRunner()
    ):
        print("polls", flush=True)
        await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2]))
