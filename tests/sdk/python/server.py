"""The server under test as a process of its own: started as a user would, killed, started again."""

import asyncio
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client

import patience


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class ServerFailed(Exception):
    """The server did not start; says what it printed last."""


class Broker:
    """A Kafka broker for the servers of this run, by tests/kafka/run; it ends with this process too."""

    def __init__(self, script: Path) -> None:
        self.process = subprocess.Popen(
            [script, "broker", "--temporary", "--control"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # Ctrl-C is for this process, which ends its server first.
            start_new_session=True,
        )

    def ready(self) -> str:
        """HOST:PORT, once it serves."""
        for line in self.process.stdout:
            word, _, rest = line.rstrip().partition(" ")
            if word == "ready":
                return rest
            if word == "failed":
                raise ServerFailed(f"Kafka: {rest}")
        raise ServerFailed("Kafka did not start")

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait()


@dataclass
class Server:
    """A command with {address} (or {port}), {data}, and {metrics} (or {metrics_port}) in it, and its process.

    The port and the folder stay the same over restarts.
    """

    command: str
    data: Path
    port: int
    metrics_port: int
    process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def new(command: str, data: Path) -> "Server":
        return Server(command, data, free_port(), free_port())

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.data.with_name(self.data.name + ".log")

    def start(self) -> None:
        words = {
            "address": self.address,
            "port": self.port,
            "data": self.data,
            "metrics": f"127.0.0.1:{self.metrics_port}",
            "metrics_port": self.metrics_port,
        }
        self.data.mkdir(parents=True, exist_ok=True)
        command = [part.format_map(words) for part in shlex.split(self.command)]
        with open(self.log, "ab") as log:
            # A group of its own: a kill reaches the server also when the command is a wrapper around it.
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )

    async def ready(self) -> float:
        """Seconds until the server answered a client."""
        begun, deadline = time.monotonic(), patience.Deadline()
        while True:
            try:
                async with asyncio.timeout(deadline.left_s()):
                    client = await Client.connect(self.address)
                    await client.workflow_service.describe_namespace(
                        DescribeNamespaceRequest(namespace="default")
                    )
                return time.monotonic() - begun
            except Exception as error:
                if self.process and self.process.poll() is not None:
                    why = f"the server ended with {self.process.returncode}; it said: {self.tail()}"
                    raise ServerFailed(why) from error
                if deadline.is_over():
                    why = f"no answer in {patience.most_s():.0f} s ({error}); it says: {self.tail()}"
                    raise ServerFailed(why) from error
                await asyncio.sleep(patience.LOOK_EVERY_S)

    async def serves_partitions(self) -> None:
        """Returns once some partitions are at work here: a node that joins others gets its part by and by."""

        async def has_some() -> bool:
            page = await asyncio.to_thread(self.metrics)
            samples = [line for line in page.splitlines() if line.startswith("everlog_partition_serving{")]
            # A server that is none of ours tells of none.
            return not samples or any(line.endswith(" 1") for line in samples)

        try:
            await patience.until("it has partitions", has_some)
        except patience.Late as late:
            raise ServerFailed(f"{late}; it says: {self.tail()}") from late

    def metrics(self) -> str:
        """The page, or nothing where nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=patience.most_s()) as page:
                return page.read().decode()
        except OSError:
            return ""

    def kill(self) -> None:
        """SIGKILL, as a crash."""
        self._signal(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM, SIGKILL when it does not heed that; the exit code."""
        if not self.process:
            return 0
        self._signal(signal.SIGTERM)
        return self.process.returncode

    def tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])

    def _signal(self, number: signal.Signals) -> None:
        process = self.process
        if not process:
            return
        if process.poll() is None:
            os.killpg(process.pid, number)
        try:
            process.wait(patience.most_s())
        except subprocess.TimeoutExpired:
            print(f"the server did not end after {number.name}", file=sys.stderr)
        # What the wrapper may have left in its group.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
