"""The servers that Temporal's own programs are run against: Everlog, or a Temporal server that says what is right."""

import argparse
import asyncio
import logging
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from cleanup import LEFT
from everlog import EVERLOG, EVERLOG_NODE, NODES, REPOSITORY
from server import Broker, Server
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig

HERE = Path(__file__).resolve().parent
# How often workers tell of themselves.
HEARTBEAT = timedelta(seconds=1)
# What a shared cluster is protected by is lifted, what is off by default is turned on, and what takes its time is hurried.
DYNAMIC = {
    "frontend.WorkerHeartbeatsEnabled": "true",
    "frontend.ListWorkersEnabled": "true",
    "frontend.namespaceRPS.visibility": "100000",
    "system.forceSearchAttributesCacheRefreshOnRead": "true",
    "system.enableActivityEagerExecution": "true",
    "history.workflowIdReuseMinimalInterval": '"0s"',
    # A deletion waits until the tasks of the close are known to be done.
    "history.transferProcessorUpdateAckInterval": '"100ms"',
    "frontend.workerVersioningDataAPIs": "true",
    "frontend.workerVersioningRuleAPIs": "true",
    # Settings of queues go the way of namespaces to other clusters, of which there are few a second.
    "frontend.rps.namespaceReplicationInducingAPIs": "10000",
    "frontend.namespaceRPS.namespaceReplicationInducingAPIs": "10000",
    # A batch of many runs takes long enough to be looked at.
    "worker.batcherRPS": "20",
}


def options(parser: argparse.ArgumentParser) -> None:
    """Which server it is."""
    parser.add_argument("--address", help="HOST:PORT of a server that runs already")
    parser.add_argument(
        "--reference",
        action="store_true",
        help="the server is Temporal's, whose lists come late; without --address one is started",
    )
    parser.add_argument("--kafka", action="store_true", help="Everlog on two nodes, with their log on a Kafka broker")


def assemble(program: str) -> Path:
    """One of Temporal's own programs."""
    answer = subprocess.run([HERE / "assemble", program], stdout=subprocess.PIPE, text=True)
    if answer.returncode:
        raise SystemExit(answer.returncode)
    return Path(answer.stdout.strip())


def command(reference: bool) -> str:
    if not reference:
        return EVERLOG
    words = [str(assemble("temporal")), "server start-dev --headless --log-level error --ip 127.0.0.1"]
    words.append("--port {port} --metrics-port {metrics_port}")
    words += [f"--dynamic-config-value '{name}={value}'" for name, value in DYNAMIC.items()]
    return " ".join(words)


@asynccontextmanager
async def serving(chosen: argparse.Namespace, folder: Path) -> AsyncIterator[list[str]]:
    """The addresses of the chosen server, one for each node; it ends with the block if it was started for it."""
    if chosen.address:
        yield [chosen.address]
        return
    commands, broker = [command(chosen.reference)], None
    if not chosen.reference:
        # It builds what has changed, which may take longer than a server may take to answer.
        subprocess.run([REPOSITORY / "everlog", "--help"], stdout=subprocess.DEVNULL, check=True)
    if chosen.kafka:
        broker = Broker(REPOSITORY / "tests" / "kafka" / "run")
        LEFT.append(broker.stop)
        bootstrap = await asyncio.to_thread(broker.ready)
        commands = [EVERLOG_NODE.replace("{name}", name) + bootstrap for name in NODES]
    nodes = [Server.new(each, folder / f"server-{number}") for number, each in enumerate(commands)]
    try:
        for node in nodes:
            LEFT.append(node.kill)
            node.start()
            print(f"# the server answers after {await node.ready():.1f} s", flush=True)
        for node in nodes:
            await node.serves_partitions()
        yield [node.address for node in nodes]
    finally:
        for node in nodes:
            node.stop()
        if broker:
            broker.stop()


def runtime() -> Runtime:
    """For workers that tell of themselves soon, and say nothing of what fails on purpose."""
    logging.disable(logging.CRITICAL)
    quiet = TelemetryConfig(logging=LoggingConfig(filter="off"))
    return Runtime(telemetry=quiet, worker_heartbeat_interval=HEARTBEAT)


def cache() -> Path:
    """Where programs and packages are kept; tests/sdk/run says so."""
    return Path(os.environ["EVERLOG_CACHE"])
