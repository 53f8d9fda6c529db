"""Named cases: how they are declared, run beside each other, and reported one line each."""

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import patience
from world import Connection, World

AT_ONCE = 14


def deadline_s() -> float:
    """A case that hangs where it has no deadline of its own is given up later than one that waits for something."""
    return 2 * patience.most_s()


@dataclass
class Case:
    name: str
    function: Callable[[World], Awaitable[None]]
    everlog_only: bool
    slow: bool
    alone: bool


@dataclass
class Report:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    replayed: int = 0
    replayed_children: int = 0
    unreplayable: list[str] = field(default_factory=list)

    def ok(self, name: str, note: str = "") -> None:
        self.passed += 1
        print(f"ok {name}{f' ({note})' if note else ''}", flush=True)

    def fail(self, name: str, why: str) -> None:
        self.failed += 1
        print(f"FAIL {name}: {' '.join(why.split())[:600]}", flush=True)

    def skip(self, name: str, why: str) -> None:
        self.skipped += 1
        print(f"skip {name}: {why}", flush=True)

    def close(self) -> int:
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        print(f"{self.passed} passed, {self.failed} failed{skipped}", flush=True)
        return 0 if self.passed and not self.failed else 1


CASES: list[Case] = []


def case(
    *, everlog_only: bool = False, slow: bool = False, alone: bool = False
) -> Callable[[Callable[[World], Awaitable[None]]], Callable[[World], Awaitable[None]]]:
    """Declares a case, named after its module and function.

    A slow one mostly waits: it goes on beside all others. One that is alone begins when all but the slow ones
    are over. One that is everlog_only is skipped when the server is a reference server.
    """

    def declare(function: Callable[[World], Awaitable[None]]) -> Callable[[World], Awaitable[None]]:
        name = f"{function.__module__}.{function.__name__}"
        CASES.append(Case(name, function, everlog_only, slow, alone))
        return function

    return declare


async def run_cases(connection: Connection, wanted: list[str], report: Report, verbose: bool) -> None:
    """Runs the cases whose name, or the module of it, is wanted; all if nothing is named."""
    chosen = [c for c in CASES if not wanted or c.name in wanted or c.name.split(".")[0] in wanted]
    slots = asyncio.Semaphore(AT_ONCE)

    async def limited(chosen_case: Case) -> None:
        async with slots:
            await run_case(connection, chosen_case, report, verbose)

    async with asyncio.TaskGroup() as slow:
        for waiting in (c for c in chosen if c.slow):
            slow.create_task(run_case(connection, waiting, report, verbose))
        await asyncio.gather(*(limited(c) for c in chosen if not c.slow and not c.alone))
        for alone in (c for c in chosen if c.alone):
            await run_case(connection, alone, report, verbose)


async def run_case(connection: Connection, chosen: Case, report: Report, verbose: bool) -> None:
    if chosen.everlog_only and connection.reference:
        report.skip(chosen.name, "not for a reference server")
        return
    world = World(connection, chosen.name)
    begun = time.monotonic()
    why = ""
    try:
        async with asyncio.timeout(deadline_s()):
            await chosen.function(world)
    except TimeoutError:
        why = f"not done within {deadline_s():.0f} s"
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        if verbose:
            traceback.print_exc()
    try:
        async with asyncio.timeout(deadline_s()):
            await world.close()
    except Exception as error:
        why = why or f"afterwards: {type(error).__name__}: {error}"
    report.replayed += world.replayed
    report.replayed_children += world.replayed_children
    if world.unreplayable:
        report.unreplayable += world.unreplayable
        why = why or f"replay: {world.unreplayable[0]}"
    if world.violations:
        why = why or f"history: {world.violations[0]}"
    if why:
        report.fail(chosen.name, why)
    else:
        report.ok(chosen.name, f"{time.monotonic() - begun:.1f} s")
