"""The worker of the sample Entity Workflow (tests/samples/python/entity), until SIGTERM.

The variables TEMPORAL_* say where the server is.
"""

import asyncio
import os
import signal
from datetime import timedelta

from activities import validate_profile
from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.worker import Worker
from workflows import UserAccountWorkflow


async def main() -> None:
    stopped = asyncio.Event()
    for sent in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(sent, stopped.set)
    client = await Client.connect(**ClientConfig.load_client_connect_config())
    worker = Worker(
        client,
        task_queue=os.environ.get("TASK_QUEUE", "accounts"),
        workflows=[UserAccountWorkflow],
        activities=[validate_profile],
        # Activities that run have so long to end; less than terminationGracePeriodSeconds.
        graceful_shutdown_timeout=timedelta(seconds=20),
    )
    async with worker:
        await stopped.wait()


if __name__ == "__main__":
    asyncio.run(main())
