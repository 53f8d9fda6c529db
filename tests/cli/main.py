"""Runs the real `temporal` program through its subcommands against a server, and prints a line per case; see README.md."""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
import traceback
import uuid
from itertools import cycle
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / part) for part in ("temporal", "sdk/python", "sdk/kill", "patience")]

import activities  # noqa: E402, F401
import administration  # noqa: E402, F401
import batches  # noqa: E402, F401
import commands  # noqa: E402
import control  # noqa: E402, F401
import expect  # noqa: E402
import lists  # noqa: E402, F401
import local  # noqa: E402, F401
import patience  # noqa: E402
import refusals  # noqa: E402, F401
import runs  # noqa: E402, F401
import schedules  # noqa: E402, F401
import servers  # noqa: E402
import workflows  # noqa: E402
from case import Report  # noqa: E402
from cleanup import LEFT, end_on_signals  # noqa: E402
from cli import Cli  # noqa: E402
from setting import CASES, COLOUR, WEIGHT, Setting, Shared  # noqa: E402
from temporalio.client import Client  # noqa: E402

# A process of the interface takes a part of a core.
AT_ONCE = 4


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests/cli/run", description=__doc__)
    servers.options(parser)
    parser.add_argument("--verbose", action="store_true", help="print the traces of failures")
    parser.add_argument("cases", nargs="*", help="MODULE or MODULE.CASE")
    chosen = parser.parse_args()
    for name in chosen.cases:
        if not any(name in (known, known.split(".")[0]) for known in CASES):
            parser.error(f"no case {name!r}; there are: {' '.join(CASES)}")
    return chosen


def is_wanted(name: str, chosen: list[str]) -> bool:
    module = name.split(".")[0]
    return name in chosen or module in chosen or not chosen


async def has_attributes(cli: Cli, queue: str) -> None:
    """Registers what runs of the cases carry. A server may take a moment to know a name."""
    create = ["operator", "search-attribute", "create"]
    await cli(*create, "--name", COLOUR, "--type", "Keyword")
    await cli(*create, "--name", WEIGHT, "--type", "Int")
    start = ["workflow", "start", "--type", "Greeting", "-t", queue, "-w", f"attributes-{uuid.uuid4()}"]
    values = ["--search-attribute", f'{COLOUR}="red"', "--search-attribute", f"{WEIGHT}=1", "-i", '"x"']

    async def knows() -> bool:
        return (await cli.runs(*start, *values)).code == 0

    await expect.eventually(knows, "a start with search attributes")


async def run_case(name: str, shared: Shared, report: Report, verbose: bool) -> None:
    begun = time.monotonic()
    try:
        async with asyncio.timeout(2 * patience.most_s()):
            await CASES[name](Setting(shared, name))
    except Exception as error:
        if verbose:
            traceback.print_exc()
        report.fail(name, f"{type(error).__name__}: {error}")
    else:
        report.ok(name, f"{time.monotonic() - begun:.1f} s")


async def every_subcommand(cli: Cli, report: Report) -> None:
    """The last case: none is left out."""
    try:
        await commands.all_are_run(cli)
    except expect.Unmet as unmet:
        report.fail("commands.all_are_run", str(unmet))
    else:
        report.ok("commands.all_are_run")


async def run(chosen: argparse.Namespace, folder: Path) -> int:
    program, report = servers.assemble("temporal"), Report()
    async with servers.serving(chosen, folder) as addresses:
        queue = f"cli-{uuid.uuid4()}"
        client = await Client.connect(addresses[-1], runtime=servers.runtime())
        # Of several nodes each takes its turn.
        cli = Cli(program, cycle(addresses), folder)
        slots = asyncio.Semaphore(AT_ONCE)

        async def limited(name: str) -> None:
            async with slots:
                await run_case(name, shared, report, chosen.verbose)

        async with workflows.worker(client, queue):
            await has_attributes(cli, queue)
            shared = Shared(cli, client, queue, chosen.reference)
            await asyncio.gather(*map(limited, filter(lambda name: is_wanted(name, chosen.cases), CASES)))
        if not chosen.cases:
            await every_subcommand(cli, report)
    return report.close()


def main() -> int:
    chosen = arguments()
    with tempfile.TemporaryDirectory(prefix="everlog-cli-") as folder:
        LEFT.append(lambda: shutil.rmtree(folder, ignore_errors=True))
        end_on_signals()
        code = asyncio.run(run(chosen, Path(folder)))
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    # A worker's threads may still wait for a server that is gone; the verdict is printed.
    os._exit(main())
