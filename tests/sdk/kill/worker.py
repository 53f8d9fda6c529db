"""A worker process of the kill test: serves the errands, and logs each activity attempt it gets and answers.

worker.py ADDRESS QUEUE LOG
"""

import asyncio
import dataclasses
import json
import logging
import os
import signal
import sys
import time
from typing import Any

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import FailureError
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
    Worker,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from affairs import AFFAIRS
from logs import Work
from workload import ACTIVITIES, RunErrand


class WorkLog(Interceptor):
    """A line when an attempt is received, and one before its answer leaves."""

    def __init__(self, path: str) -> None:
        self.out = open(path, "a", buffering=1, encoding="utf-8")

    def write(self, kind: str, **answer: Any) -> None:
        info = activity.info()
        entry = Work(
            kind,
            info.workflow_id,
            info.workflow_run_id,
            info.activity_id,
            info.attempt,
            time.time() * 1000,
            **answer,
        )
        self.out.write(json.dumps(dataclasses.asdict(entry)) + "\n")

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        log = self

        class Inbound(ActivityInboundInterceptor):
            async def execute_activity(self, input: ExecuteActivityInput) -> Any:
                log.write("received")
                try:
                    result = await super().execute_activity(input)
                except FailureError as error:
                    log.write("sent", failure=error.message)
                    raise
                log.write("sent", result=result)
                return result

        return Inbound(next)


async def serve(address: str, queue: str, log: str) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    client = await Client.connect(address, namespace="default")
    async with Worker(
        client,
        task_queue=queue,
        workflows=[RunErrand, *AFFAIRS],
        activities=ACTIVITIES,
        interceptors=[WorkLog(log)],
        workflow_runner=SandboxedWorkflowRunner(SandboxRestrictions.default.with_passthrough_all_modules()),
        max_concurrent_activities=100,
    ):
        print("serving", flush=True)
        await ended.wait()


if __name__ == "__main__":
    # That the server goes away is what this test is about.
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter="off"))))
    logging.disable(logging.CRITICAL)
    asyncio.run(serve(*sys.argv[1:]))
    # Threads of the SDK may still wait for the server, and trip over an interpreter that is going away.
    os._exit(0)
