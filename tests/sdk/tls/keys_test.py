"""Clients with API keys, over TLS by a private authority: keys_test.py SERVER-COMMAND [CASE...]

Prints a line per case, as tests/sdk/run counts them. EVERLOG_FULL=1: a key is away for as long as a worker can bear it.
"""

import asyncio
import hashlib
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
sys.path += [str(TESTS / part) for part in ("temporal", "sdk/python", "sdk/kill", "patience")]

import patience  # noqa: E402
from authority import Authority  # noqa: E402
from cases import is_ready, passes, run_in_folder  # noqa: E402
from cleanup import LEFT  # noqa: E402
from clients import Go, Refused, Trust, succeed  # noqa: E402
from greeting import Greeting, greet  # noqa: E402
from server import Server  # noqa: E402
from servers import assemble  # noqa: E402
from temporalio.client import Client, WorkflowHandle  # noqa: E402
from temporalio.service import RPCError, RPCStatusCode, TLSConfig  # noqa: E402
from temporalio.worker import Worker  # noqa: E402

NAMES = "DNS:localhost,IP:127.0.0.1"
QUEUE = "greetings"
GREETING = "Hello, world!"
DENIED = "Request unauthorized."
# A worker of Python bears denials for a minute.
AWAY_S = 50 if os.environ.get("EVERLOG_FULL") else 5
# The file of keys is looked at once in a second.
NOTICED_S = 1.5


def key(name: str) -> str:
    return "elk_" + hashlib.sha256(name.encode()).hexdigest()[:43]


class Keys:
    """The file of the server's keys."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[str, str] = {}

    def put(self, name: str, grants: str, expires: datetime | None = None) -> None:
        line = f"{name} {grants} {hashlib.sha256(key(name).encode()).hexdigest()}"
        if expires:
            line += f" {expires.strftime('%Y-%m-%dT%H:%M:%SZ')}"
        self.lines[name] = line
        self.write()

    def remove(self, name: str) -> None:
        del self.lines[name]
        self.write()

    def write(self) -> None:
        # As a whole, so that nobody reads half of it.
        written = self.path.with_suffix(".new")
        written.write_text("\n".join(self.lines.values()) + "\n")
        written.replace(self.path)


class Cases:
    def __init__(self, server: Server, authority: Path, keys: Keys, go: Go) -> None:
        self.server, self.authority, self.keys, self.go = server, authority, keys, go

    async def a_worker_works_and_starts_nothing(self) -> None:
        async with self.working(await self.client("worker")):
            started = await self.start(await self.client("writer"), "works")
            assert await started.result() == GREETING
        await self.denied(self.start(await self.client("worker"), "starts-nothing"))

    async def a_reader_reads_and_starts_nothing(self) -> None:
        reader = await self.client("reader")
        async for _run in reader.list_workflows("WorkflowType = 'Greeting'"):
            break
        await self.denied(self.start(reader, "reads"))

    async def who_has_no_key_or_an_unknown_one_is_refused(self) -> None:
        await self.denied(self.start(await self.client(None), "nobody"))
        await self.denied(self.start(await self.client("stranger"), "stranger"))

    async def another_namespace_is_refused_whether_or_not_it_exists(self) -> None:
        for namespace in ("other", "nowhere"):
            await self.denied(self.start(await self.client("writer", namespace), "elsewhere"))

    async def go_works_with_a_key(self) -> None:
        options = [f"-ca={self.authority}", f"-api-key={key('writer')}"]
        assert await succeed(str(self.go.program), *options, self.server.address) == GREETING
        try:
            await succeed(str(self.go.program), f"-ca={self.authority}", f"-api-key={key('stranger')}", self.server.address)
        except Refused as refused:
            assert DENIED in str(refused), refused
        else:
            raise AssertionError("a stranger works")

    async def the_command_line_works_with_a_key(self) -> None:
        temporal = str(assemble("temporal"))
        common = ["--address", self.server.address, "--tls-ca-path", str(self.authority), "--api-key"]
        start = ["workflow", "start", "--type", "Greeting", "--task-queue", "nobody", "--workflow-id", "by-cli"]
        await succeed(temporal, *start, *common, key("writer"))
        await succeed(temporal, "workflow", "describe", "--workflow-id", "by-cli", *common, key("reader"))
        create = ["operator", "namespace", "create", "--namespace", "of-the-cli"]
        await succeed(temporal, *create, *common, key("root"))
        # Each sees what it may read.
        listing = ["operator", "namespace", "list"]
        assert "of-the-cli" in await succeed(temporal, *listing, *common, key("root"))
        assert "of-the-cli" not in await succeed(temporal, *listing, *common, key("writer"))
        for words, name in ((start, "reader"), ([*create[:-1], "another"], "writer")):
            try:
                await succeed(temporal, *words, *common, key(name))
            except Refused as refused:
                assert DENIED in str(refused), refused
            else:
                raise AssertionError(f"{name} may {words[0]}")

    async def typescript_works_with_a_key(self) -> None:
        await self.all_of("typescript")

    async def java_works_with_a_key(self) -> None:
        await self.all_of("java")

    async def a_key_is_replaced_while_its_worker_polls(self) -> None:
        self.keys.put("old", "default:worker")
        await patience.pass_s(NOTICED_S)
        working, writer = await self.client("old"), await self.client("writer")
        async with self.working(working):
            results = [await self.start(writer, f"replaced-{number}") for number in range(5)]
            self.keys.put("new", "default:worker")
            await patience.pass_s(NOTICED_S)
            working.api_key = key("new")
            self.keys.remove("old")
            results += [await self.start(writer, f"replaced-{number}") for number in range(5, 10)]
            await patience.pass_s(NOTICED_S)
            results += [await self.start(writer, f"replaced-{number}") for number in range(10, 15)]
            for started in results:
                assert await started.result() == GREETING
        self.keys.remove("new")

    async def a_key_that_has_expired_is_renewed_and_its_worker_goes_on(self) -> None:
        now = datetime.now(UTC)
        self.keys.put("short", "default:worker", now + timedelta(seconds=NOTICED_S + 2))
        await patience.pass_s(NOTICED_S)
        working, writer = await self.client("short"), await self.client("writer")
        async with self.working(working):
            assert await (await self.start(writer, "before")).result() == GREETING
            await patience.pass_s(AWAY_S)
            waiting = await self.start(writer, "meanwhile")
            self.keys.put("short", "default:worker")
            assert await waiting.result() == GREETING
            assert await (await self.start(writer, "after")).result() == GREETING

    async def client(self, name: str | None, namespace: str = "default") -> Client:
        tls = TLSConfig(server_root_ca_cert=self.authority.read_bytes())
        shown = key(name) if name else None
        return await Client.connect(self.server.address, namespace=namespace, tls=tls, api_key=shown)

    @asynccontextmanager
    async def working(self, client: Client) -> AsyncIterator[None]:
        async with Worker(client, task_queue=QUEUE, workflows=[Greeting], activities=[greet]):
            yield

    async def start(self, client: Client, workflow_id: str) -> WorkflowHandle:
        return await client.start_workflow(Greeting.run, "world", id=workflow_id, task_queue=QUEUE)

    async def all_of(self, language: str) -> None:
        """All programs of a language, which end when they are done."""
        secured = {"EVERLOG_TEST_CA_FILE": str(self.authority), "EVERLOG_TEST_API_KEY": key("root")}
        program = Path(__file__).resolve().parents[1] / language / "run"
        process = await asyncio.create_subprocess_exec(
            program, self.server.address, stdout=asyncio.subprocess.PIPE, env={**os.environ, **secured}
        )
        LEFT.append(lambda: process.returncode is None and process.terminate())
        told, _ = await process.communicate()
        lines = told.decode().splitlines()
        failed = [line for line in lines if line.startswith("FAIL ")]
        assert process.returncode == 0 and not failed, failed or lines[-5:]
        print(f"# {language}: {lines[-1]}", flush=True)

    async def denied(self, call) -> None:
        try:
            await call
        except RPCError as error:
            assert error.status == RPCStatusCode.PERMISSION_DENIED, error
            assert error.message == DENIED, error
        else:
            raise AssertionError("it is not denied")


# What needs other tools: by their names only.
BY_NAME = ["the_command_line_works_with_a_key", "typescript_works_with_a_key", "java_works_with_a_key"]
CASES = [name for name, value in vars(Cases).items() if name.count("_") > 2 and asyncio.iscoroutinefunction(value)]


def serve(command: str, folder: Path) -> tuple[Server, Path, Keys]:
    authority = Authority.new(folder, "authority")
    shown = authority.certify("server", "serverAuth", NAMES)
    keys = Keys(folder / "keys")
    keys.put("root", "temporal-system:admin")
    keys.put("writer", "default:write")
    keys.put("reader", "default:read")
    keys.put("worker", "default:worker")
    settings = {
        "TLS__CERTIFICATE_FILE": shown.certificate,
        "TLS__KEY_FILE": shown.key,
        "AUTH__ENABLED": "true",
        "AUTH__API_KEYS_FILE": keys.path,
    }
    variables = [f"EVERLOG_{name}={value}" for name, value in settings.items()]
    server = Server.new(" ".join(["env", *variables, command]), folder / "server")
    LEFT.append(server.kill)
    server.start()
    return server, authority.certificate, keys


async def run(command: str, wanted: list[str], folder: Path) -> bool:
    server, authority, keys = serve(command, folder)
    await patience.until("the server is ready", lambda: is_ready(server))
    passed = []
    async with Go.built() as go:
        cases = Cases(server, authority, keys, go)
        for case in wanted or [case for case in CASES if case not in BY_NAME]:
            # A whole language has a limit of its own for each of its cases.
            most_s = None if case.startswith(("typescript", "java")) else patience.most_s()
            passed.append(await passes(f"keys.{case}", asyncio.wait_for(getattr(cases, case)(), most_s)))
    return all(passed)


if __name__ == "__main__":
    # A worker's threads may still wait for a server that is gone; the verdict is printed.
    os._exit(run_in_folder(lambda folder: run(sys.argv[1], sys.argv[2:], folder)))
