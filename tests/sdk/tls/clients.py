"""What each client does with a server, and what it says where it cannot."""

import asyncio
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from authority import Certified
from greeting import Greeting, greet
from temporalio.client import Client
from temporalio.service import TLSConfig
from temporalio.worker import Worker

HERE = Path(__file__).resolve().parent


@dataclass
class Trust:
    """Whom a client trusts, under which name it expects the server, and what it shows. Without an authority it speaks no TLS."""

    authority: Path | None
    name: str = ""
    shows: Certified | None = None


class Refused(Exception):
    """What the client says of a server that it cannot use."""


class Python:
    """The SDK of Python: a worker and a run."""

    async def greets(self, address: str, trust: Trust) -> str:
        try:
            client = await Client.connect(address, tls=self.tls(trust))
        except Exception as error:
            raise Refused(str(error)) from error
        queue = f"greetings-{os.urandom(4).hex()}"
        async with Worker(client, task_queue=queue, workflows=[Greeting], activities=[greet]):
            return await client.execute_workflow(Greeting.run, "world", id=queue, task_queue=queue)

    @staticmethod
    def tls(trust: Trust) -> TLSConfig | bool:
        if not trust.authority:
            return False
        shown = trust.shows
        return TLSConfig(
            server_root_ca_cert=trust.authority.read_bytes(),
            domain=trust.name or None,
            client_cert=shown.certificate.read_bytes() if shown else None,
            client_private_key=shown.key.read_bytes() if shown else None,
        )


class Go:
    """The SDK of Go: a worker and a run, in a program of its own."""

    def __init__(self, program: Path) -> None:
        self.program = program

    @staticmethod
    @asynccontextmanager
    async def built() -> AsyncIterator["Go"]:
        with tempfile.TemporaryDirectory(prefix="everlog-sdk-tls-") as folder:
            program = Path(folder) / "greeting"
            await succeed("go", "build", "-C", str(HERE / "go"), "-o", str(program), ".")
            yield Go(program)

    async def greets(self, address: str, trust: Trust) -> str:
        options = {"ca": trust.authority, "name": trust.name}
        if trust.shows:
            options |= {"certificate": trust.shows.certificate, "key": trust.shows.key}
        words = [f"-{name}={value}" for name, value in options.items() if value]
        return await succeed(str(self.program), *words, address)


class Cli:
    """The program `temporal`: it starts a run, and finds it."""

    def __init__(self, program: Path) -> None:
        self.program = program

    async def greets(self, address: str, trust: Trust) -> str:
        options = {"--tls-ca-path": trust.authority, "--tls-server-name": trust.name}
        if trust.shows:
            options |= {"--tls-cert-path": trust.shows.certificate, "--tls-key-path": trust.shows.key}
        words = [str(word) for pair in options.items() if pair[1] for word in pair]
        return await self(*words, "--address", address)

    async def __call__(self, *words: str, environment: dict[str, str] | None = None) -> str:
        name = f"greetings-{os.urandom(4).hex()}"
        start = ["workflow", "start", "--type", "Greeting", "--task-queue", name, "--workflow-id", name]
        told = await succeed(str(self.program), *start, *words, environment=environment)
        return "Hello, world!" if name in told else told


async def succeed(*command: str, environment: dict[str, str] | None = None) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | (environment or {})
    )
    out, error = await process.communicate()
    if process.returncode:
        raise Refused(error.decode(errors="replace") or out.decode(errors="replace"))
    return out.decode().strip()
