"""A worker for the cases: a sale waits for its activity, which nobody here does."""

import asyncio
import sys
from datetime import timedelta

from temporalio import workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.worker import UnsandboxedWorkflowRunner, Worker


@workflow.defn(name="Sale")
class Sale:
    def __init__(self) -> None:
        self.notes: list[str] = []

    @workflow.signal
    def note(self, text: str) -> None:
        self.notes.append(text)

    @workflow.update
    def add_item(self, goods: str) -> list[str]:
        self.notes.append(goods)
        return self.notes

    @add_item.validator
    def sells(self, goods: str) -> None:
        if goods == "stones":
            raise ValueError("we sell no stones")

    @workflow.run
    async def run(self, goods: str) -> dict:
        receipt = await workflow.execute_activity(
            "charge",
            goods,
            activity_id="charge",
            task_queue="till",
            start_to_close_timeout=timedelta(hours=1),
            retry_policy=RetryPolicy(maximum_attempts=1),
        )
        return {"receipt": receipt, "notes": self.notes}


@workflow.defn(name="Order")
class Order(Sale):
    @workflow.run
    async def run(self, order: dict) -> dict:
        return await super().run(order["id"])


async def main(address: str) -> None:
    client = await Client.connect(address)
    workers = [
        Worker(client, task_queue=queue, workflows=[kind], workflow_runner=UnsandboxedWorkflowRunner())
        for queue, kind in (("sales", Sale), ("orders", Order))
    ]
    await asyncio.gather(*(worker.run() for worker in workers))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
