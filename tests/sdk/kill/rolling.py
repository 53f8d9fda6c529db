"""Replaces three nodes on one Kafka by another release and back while clients of the Python and the Go SDK start, signal and
read workflows.

rolling.py FORMER PRESENT: the programs of two releases. Each step replaces one node after the other, by SIGKILL and SIGTERM in turn:
former -> present -> former -> present, then the level of decisions is raised, and a former node must get nothing.
Every start that was acknowledged must end with the right result.
"""

import asyncio
import itertools
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from datetime import timedelta
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python"), str(HERE.parents[1] / "patience")]

from temporalio import activity, workflow  # noqa: E402
from temporalio.client import Client  # noqa: E402
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig  # noqa: E402
from temporalio.service import RPCError, RPCStatusCode  # noqa: E402
from temporalio.worker import Worker  # noqa: E402

import patience  # noqa: E402
from cleanup import LEFT, end_on_signals  # noqa: E402
from server import Broker, Server, free_port  # noqa: E402

NODES = ["one", "two", "three"]
QUEUE = "rolling"
# Writers, each with one workflow after the other.
WRITERS = 6


@activity.defn
async def doubled(value: int) -> int:
    return 2 * value


@workflow.defn(sandboxed=False)
class Step:
    """A timer, an activity, and a signal that has to come."""

    def __init__(self) -> None:
        self.signalled = False

    @workflow.run
    async def run(self, value: int) -> int:
        await workflow.sleep(0.2)
        result = await workflow.execute_activity(
            doubled, value, start_to_close_timeout=timedelta(seconds=5)
        )
        await workflow.wait_condition(lambda: self.signalled)
        return result

    @workflow.signal
    def go_on(self) -> None:
        self.signalled = True


class Load:
    """Clients at all nodes, and what was acknowledged to them."""

    def __init__(self, clients: list[Client]) -> None:
        self.clients = clients
        self.acked: list[tuple[str, int]] = []
        self.acked_at = time.monotonic()
        self.longest_gap_s = 0.0
        self.stopped = False

    async def insist(self, call):
        """Calls at one node after the other until one acknowledges."""
        deadline = patience.Deadline()
        for client in itertools.cycle(self.clients):
            try:
                answer = await asyncio.wait_for(call(client), 10)
            except RPCError as error:
                if error.status == RPCStatusCode.ALREADY_EXISTS:
                    answer = None
                elif deadline.is_over():
                    raise
                else:
                    await asyncio.sleep(0.1)
                    continue
            except (TimeoutError, RuntimeError):
                if deadline.is_over():
                    raise
                continue
            now = time.monotonic()
            self.longest_gap_s = max(self.longest_gap_s, now - self.acked_at)
            self.acked_at = now
            return answer

    async def write(self, writer: int) -> None:
        for number in itertools.count():
            if self.stopped:
                return
            workflow_id = f"rolling-{writer}-{number}"
            await self.insist(
                lambda client: client.start_workflow(
                    Step.run, number, id=workflow_id, task_queue=QUEUE, request_eager_start=False
                )
            )
            self.acked.append((workflow_id, number))
            await self.insist(lambda client: client.get_workflow_handle(workflow_id).signal(Step.go_on))
            await asyncio.sleep(0.05)

    async def wrong(self) -> list[str]:
        wrong = []
        for workflow_id, number in self.acked:
            result = await self.insist(lambda client: client.get_workflow_handle(workflow_id).result())
            if result != 2 * number:
                wrong.append(f"{workflow_id}: {result}")
        return wrong


class GoLoad:
    """The same with Temporal's Go SDK, by a program of its own."""

    def __init__(self, folder: Path, addresses: list[str]) -> None:
        program = folder / "rolling-go"
        subprocess.run(["go", "build", "-o", program, "./rolling"], cwd=HERE.parent / "go", check=True)
        self.process = subprocess.Popen([program, *addresses], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        LEFT.append(self.process.kill)

    def end(self) -> list[str]:
        """Ends it, and waits for its results; what is wrong."""
        said, _ = self.process.communicate(timeout=4 * patience.most_s())
        print(f"# {said.strip()}", flush=True)
        return [] if self.process.returncode == 0 else [f"the load of the Go SDK: {said}"]


def command(program: str, name: str, brokers: str, prefix: str, cluster_port: int) -> str:
    variables = {
        "EVERLOG_SERVER__NAME": name,
        "EVERLOG_SERVER__ADDRESS": "{address}",
        "EVERLOG_SERVER__DATA_DIR": "{data}",
        "EVERLOG_SERVER__METRICS_ADDRESS": "{metrics}",
        "EVERLOG_HTTP__ADDRESS": "127.0.0.1:0",
        "EVERLOG_CLUSTER__ADDRESS": f"127.0.0.1:{cluster_port}",
        **log(brokers, prefix),
    }
    words = [f"{name}={value}" for name, value in variables.items()]
    return " ".join(["env", *words, shlex.quote(program), "serve"])


def log(brokers: str, prefix: str) -> dict[str, str]:
    return {
        "EVERLOG_KAFKA__BOOTSTRAP_SERVERS": brokers,
        "EVERLOG_KAFKA__PREFIX": prefix,
        "EVERLOG_KAFKA__PARTITIONS": "12",
        "EVERLOG_KAFKA__GROUP_PARTITIONS": "4",
        "EVERLOG_KAFKA__REPLICATION": "1",
    }


def upgrade(program: str, brokers: str, prefix: str, *words: str) -> subprocess.CompletedProcess:
    variables = [f"{name}={value}" for name, value in log(brokers, prefix).items()]
    run = ["env", *variables, program, "cluster", "upgrade", *words]
    return subprocess.run(run, capture_output=True, text=True, timeout=2 * patience.most_s())


def page(server: Server, path: str) -> str:
    try:
        url = f"http://127.0.0.1:{server.metrics_port}{path}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return f"{answer.status} {answer.read().decode()}"
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}"
    except OSError as error:
        return f"- {error}"


async def until_ready(server: Server) -> None:
    async def is_ready() -> bool:
        return (await asyncio.to_thread(page, server, "/health/ready")).startswith("200")

    await patience.until("the node is ready", is_ready)


async def main(former: str, present: str, folder: Path) -> int:
    broker = Broker(HERE.parents[1] / "kafka" / "run")
    LEFT.append(broker.stop)
    try:
        return await roll(former, present, broker.ready(), folder)
    finally:
        broker.stop()


async def roll(former: str, present: str, brokers: str, folder: Path) -> int:
    prefix = "rolling."
    servers = {name: Server.new("", folder / name) for name in NODES}
    ports = {name: free_port() for name in NODES}
    failures: list[str] = []

    def of(name: str, program: str) -> str:
        return command(program, name, brokers, prefix, ports[name])

    run = ["env", *(f"{name}={value}" for name, value in log(brokers, prefix).items()), former, "topics", "create"]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
    for name, server in servers.items():
        LEFT.append(server.kill)
        server.command = of(name, former)
        server.start()
    try:
        for server in servers.values():
            await until_ready(server)
        clients = [await Client.connect(server.address) for server in servers.values()]
        load = Load(clients)
        workers = [Worker(client, task_queue=QUEUE, workflows=[Step], activities=[doubled]) for client in clients]
        running = [asyncio.ensure_future(worker.run()) for worker in workers]
        writers = [asyncio.ensure_future(load.write(writer)) for writer in range(WRITERS)]
        go = await asyncio.to_thread(GoLoad, folder, [server.address for server in servers.values()])

        latest = re.search(r"knows levels up to (\d+)", upgrade(present, brokers, prefix, "--to-level", "1000000").stderr)[1]
        refused = upgrade(present, brokers, prefix, "--to-level", latest)
        print(f"# upgrade among former nodes: {refused.returncode} {refused.stdout.strip()}", flush=True)
        if refused.returncode != 3:
            failures.append(f"raised among former nodes: {refused}")
        for step, program in enumerate([present, former, present]):
            for number, (name, server) in enumerate(servers.items()):
                (server.kill if (step + number) % 2 else server.stop)()
                server.command = of(name, program)
                server.start()
                await until_ready(server)
            print(f"# step {step}: {len(load.acked)} acknowledged, gap {load.longest_gap_s:.1f} s", flush=True)
        print(upgrade(present, brokers, prefix).stdout, flush=True)
        raised = upgrade(present, brokers, prefix, "--to-level", latest)
        print(f"# {raised.returncode} {raised.stdout.strip()}{raised.stderr.strip()}", flush=True)
        if raised.returncode:
            failures.append(f"not raised: {raised}")
        # A former node now gets nothing.
        servers["three"].kill()
        servers["three"].command = of("three", former)
        servers["three"].start()
        before = len(load.acked)
        deadline = patience.Deadline()
        while len(load.acked) < before + 100 and not deadline.is_over():
            await asyncio.sleep(patience.LOOK_EVERY_S)
        ready = page(servers["three"], "/health/ready")
        print(f"# a former node: {ready.strip()}", flush=True)
        if ready.startswith("200"):
            failures.append("a former node is ready behind a level that it does not know")
        print(upgrade(present, brokers, prefix).stdout, flush=True)
        servers["three"].kill()
        servers["three"].command = of("three", present)
        servers["three"].start()
        await until_ready(servers["three"])

        load.stopped = True
        await asyncio.gather(*writers)
        failures += await load.wrong() + await asyncio.to_thread(go.end)
        for task in running:
            task.cancel()
    finally:
        for server in servers.values():
            server.kill()
    for failure in failures:
        print(f"FAIL {failure}")
    print(f"{len(load.acked)} acknowledged workflows, longest gap {load.longest_gap_s:.1f} s, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter="off"))))
    with tempfile.TemporaryDirectory(prefix="everlog-rolling-") as place:
        LEFT.append(lambda: shutil.rmtree(place, ignore_errors=True))
        end_on_signals()
        sys.exit(asyncio.run(main(*sys.argv[1:3], Path(place))))
