"""Runs the named suites against a server and prints a line per case; see README.md."""

import argparse
import asyncio
import importlib
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cleanup import LEFT, end_on_signals
from everlog import EVERLOG, EVERLOG_NODE, EVERLOG_ON_KAFKA, NODES, REPOSITORY

HERE = Path(__file__).resolve().parent
SDK = HERE.parent

PYTHON_SUITES = [
    "activities",
    "activity_cancellation",
    "activity_completion",
    "activity_control",
    "timers",
    "signals",
    "queries",
    "updates",
    "lifecycle",
    "endings",
    "delays",
    "continuing",
    "reset",
    "run_control",
    "builds",
    "children",
    "retries",
    "schedules",
    "policies",
    "markers",
    "metadata",
    "headers",
    "tracing",
    "workers",
    "queues",
    "namespaces",
    "nondeterminism",
    "payloads",
    "shapes",
    "entity",
    "load",
    "visibility",
    "schedule_client",
    "schedule_times",
    "schedule_actions",
    "refused",
]
OTHER_SUITES = ["go", "checker", "tls", "keys", "kill"]
# By their names only.
LANGUAGE_SUITES = ["typescript", "java"]
# The suite tls without a name: those that need no program of Temporal's own.
TLS_CLIENTS = ["python", "go"]
SAMPLES = REPOSITORY / "tests" / "samples"
SAMPLE_LANGUAGES = ["python", "typescript", "go", "java"]
# A program's last line, and what Maven paints.
TOTAL = re.compile(r"\d+ passed, \d+ failed.*")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests/sdk/run", description=__doc__)
    parser.add_argument(
        "--server", default=EVERLOG, help="command with {address} (or {port}), {data}, {metrics}"
    )
    parser.add_argument(
        "--address", help="HOST:PORT of a server that runs already (the kill suite is skipped)"
    )
    parser.add_argument(
        "--reference",
        action="store_true",
        help="a real Temporal server, which is started if none is named: skip what is Everlog's own",
    )
    parser.add_argument(
        "--kafka", action="store_true", help="Everlog with its log on a Kafka broker that is started for it"
    )
    parser.add_argument(
        "--nodes", action="store_true", help="with --kafka: two nodes, clients at one and workers at the other"
    )
    parser.add_argument("--seed", type=int, help="of the kill suite")
    parser.add_argument("--verbose", action="store_true", help="print the traces of failures")
    known = PYTHON_SUITES + OTHER_SUITES + LANGUAGE_SUITES
    suites = f"{' '.join(known)}, MODULE.CASE, tls.CLIENT, samples, or samples.LANGUAGE"
    parser.add_argument("suites", nargs="*", help=suites)
    chosen = parser.parse_args()
    if chosen.nodes and not chosen.kafka:
        parser.error("nodes share a log on Kafka only: --nodes needs --kafka")
    samples = ["samples", *(f"samples.{language}" for language in SAMPLE_LANGUAGES)]
    for suite in chosen.suites:
        if suite.split(".")[0] not in known and suite not in samples:
            parser.error(f"no suite {suite!r}")
    return chosen


async def run(options: argparse.Namespace, folder: Path) -> int:
    tests = REPOSITORY / "tests"
    sys.path[:0] = [str(HERE), str(SDK / "kill"), str(tests / "patience"), str(tests / "temporal")]
    from case import Report
    import servers
    from server import Broker, Server, ServerFailed

    if not options.verbose:
        be_quiet()
    report = Report()
    wanted = options.suites or PYTHON_SUITES + OTHER_SUITES
    if options.reference and options.server == EVERLOG and not options.address:
        options.server = servers.command(reference=True)
    if options.server == EVERLOG and not options.address and wanted != ["checker"]:
        # It builds what has changed, which may take longer than a server may take to answer.
        subprocess.run([REPOSITORY / "everlog", "--help"], stdout=subprocess.DEVNULL, check=True)
    if options.kafka:
        broker = Broker(REPOSITORY / "tests" / "kafka" / "run")
        LEFT.append(broker.stop)
        brokers = broker.ready()
        options.server = EVERLOG_ON_KAFKA + brokers
    of_python = [s for s in wanted if s.split(".")[0] in PYTHON_SUITES]
    programs = [s for s in ["go", *LANGUAGE_SUITES] if s in wanted]
    samples = [s for s in SAMPLE_LANGUAGES if "samples" in wanted or f"samples.{s}" in wanted]
    servers = []
    address = workers_address = options.address
    try:
        if not address and (of_python or programs or samples):
            commands = [options.server]
            if options.nodes:
                commands = [EVERLOG_NODE.replace("{name}", name) + brokers for name in NODES]
            for number, command in enumerate(commands):
                server = Server.new(command, folder / f"server-{number}")
                LEFT.append(server.kill)
                servers.append(server)
                server.start()
                print(f"# the server answers after {await server.ready():.1f} s", flush=True)
            for server in servers:
                await server.serves_partitions()
            address, workers_address = servers[0].address, servers[-1].address
        if of_python:
            await run_python(options, (address, workers_address), of_python, report)
        for language in programs:
            command = [str(SDK / language / "run"), address]
            late = {"LISTS_COME_LATE": "1"} if options.reference else {}
            await run_program(report, language, command, with_packages(folder) | late)
        if samples:
            await run_samples(report, (address, workers_address), samples, folder)
        if "checker" in wanted:
            await run_program(report, "checker", [sys.executable, str(SDK / "kill" / "checker_test.py")])
    except ServerFailed as error:
        report.fail("server", str(error))
    finally:
        for server in servers:
            server.stop()
    tls_clients = [s.removeprefix("tls.") for s in wanted if s.startswith("tls.")]
    tls_clients += TLS_CLIENTS * ("tls" in wanted)
    if tls_clients and not options.reference and not options.address:
        command = [sys.executable, str(SDK / "tls" / "tls_test.py"), options.server, *tls_clients]
        await run_program(report, "tls", command)
    keys = [s.removeprefix("keys").removeprefix(".") for s in wanted if s.split(".")[0] == "keys"]
    if keys and not options.reference and not options.address:
        command = [sys.executable, str(SDK / "tls" / "keys_test.py"), options.server, *filter(None, keys)]
        await run_program(report, "keys", command)
    if "kill" in wanted:
        if options.address:
            report.skip("kill", "needs a server of its own: --server")
        else:
            seed = ["--seed", str(options.seed)] if options.seed is not None else []
            reference = ["--reference"] * options.reference
            program = str(SDK / "kill" / "kill_test.py")
            command = [sys.executable, program, "--server", options.server, *seed, *reference]
            await run_program(report, "kill", command)
    if options.kafka:
        broker.stop()
    return report.close()


async def run_python(
    options: argparse.Namespace, addresses: tuple[str, str], wanted: list[str], report
) -> None:
    from case import run_cases
    from world import Connection

    begun = time.monotonic()
    for suite in dict.fromkeys(s.split(".")[0] for s in wanted):
        importlib.import_module(suite)
    connection = await Connection.open(*addresses, options.reference)
    await run_cases(connection, wanted, report, options.verbose)
    if report.unreplayable:
        report.fail("replay.every_history", f"{len(report.unreplayable)} of {report.replayed}")
    else:
        children = report.replayed_children
        report.ok("replay.every_history", f"{report.replayed} histories, {children} of children")
    print(f"# the Python suites took {time.monotonic() - begun:.0f} s", flush=True)


def be_quiet() -> None:
    """Most cases make things fail on purpose: the SDK's own words about that say nothing here."""
    from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig

    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter="off"))))
    logging.disable(logging.CRITICAL)


async def run_samples(report, addresses: tuple[str, str], languages: list[str], folder: Path) -> None:
    """The programs of tests/samples, at each address in turn, and their histories; with packages from the cache."""
    work, histories = folder / "samples", folder / "histories"
    (work / "python").mkdir(parents=True)
    # They ask for the packages that this program has.
    (work / "python" / ".venv").symlink_to(sys.prefix)
    environment = with_packages(folder) | {"SAMPLES_WORK": str(work), "HISTORIES": str(histories)}
    for number, language in enumerate(languages):
        command = [str(SAMPLES / "run-all"), addresses[number % len(addresses)], language]
        await run_program(report, f"samples.{language}", command, environment, f"samples.{language}: ")
    compare = [sys.executable, str(SAMPLES / "histories"), "compare", str(histories)]
    await run_program(report, "samples.histories", compare, prefix="samples.histories: ")


def with_packages(folder: Path) -> dict[str, str]:
    """The environment of programs that work in the folder, and that npm and Maven keep packages for in the cache."""
    cache = Path(os.environ["EVERLOG_CACHE"])
    return {
        **os.environ,
        "TMPDIR": str(folder),
        "npm_config_cache": str(cache / "samples-npm"),
        "npm_config_prefer_offline": "true",
        "MAVEN_OPTS": f"{os.environ.get('MAVEN_OPTS', '')} -Dmaven.repo.local={cache / 'samples-maven'}",
    }


async def run_program(
    report, suite: str, command: list[str], environment: dict[str, str] | None = None, prefix: str = ""
) -> None:
    """A program that prints the same lines; what it prints is printed and counted here, with the prefix."""
    begun = time.monotonic()
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, env=environment)
    LEFT.append(lambda: process.returncode is None and process.terminate())
    counted = failed = 0
    try:
        async for line in process.stdout:
            words = COLOUR.sub("", line.decode(errors="replace")).rstrip()
            if words.startswith("ok "):
                report.ok(prefix + words.removeprefix("ok ").lstrip())
            elif words.startswith("FAIL "):
                name, _, why = words.removeprefix("FAIL ").lstrip().partition(": ")
                report.fail(prefix + name, why)
                failed += 1
            elif not TOTAL.fullmatch(words):
                print(words, flush=True)
                continue
            counted += 1
        code = await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
    if code not in (0, 1) or not counted or (code == 1 and not failed):
        report.fail(suite, f"ended with {code} after {counted} lines")
    print(f"# {suite} took {time.monotonic() - begun:.0f} s", flush=True)


def main() -> int:
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="everlog-sdk-") as folder:
        LEFT.append(lambda: shutil.rmtree(folder, ignore_errors=True))
        end_on_signals()
        code = asyncio.run(run(options, Path(folder)))
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    # A worker's threads may still wait for a server that is gone; the verdict is printed.
    os._exit(main())
