"""Kills the server again and again while workflows run, and lets the checker look at what is left.

kill_test.py --server "CMD with {address} {data} {metrics}" [--seed N] [--kills N] [--errands N] [--keep DIR]
             [--upgrade FORMER PRESENT]
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python"), str(HERE.parents[1] / "patience")]

from temporalio.client import Client, WorkflowHistory  # noqa: E402
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig  # noqa: E402
from temporalio.service import RPCError, RPCStatusCode  # noqa: E402
from temporalio.worker import Replayer  # noqa: E402
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions  # noqa: E402

import patience  # noqa: E402
from affairs import AFFAIRS, wrong_ends  # noqa: E402
from agents import KINDS, READ_AGAIN_S, Agents  # noqa: E402
from checker import check  # noqa: E402
from clients import Clients  # noqa: E402
from corruptions import plant_each, sample  # noqa: E402
from cleanup import LEFT, end_on_signals  # noqa: E402
from history_rules import closing_of  # noqa: E402
from logs import Call, Run, Work, fate, name_of, read_work, write_histories, write_lines  # noqa: E402
from server import Server  # noqa: E402
from upgrade import Upgrade  # noqa: E402
from workload import Errand, RunErrand, errand_of, wrong_results  # noqa: E402

WORKERS = 2
# Errands that are under way at the same time.
OPEN_AT_ONCE = 110
LEAST_UNFINISHED = 50
LEAST_ACKED = 5000
# Agents, each with an affair in hand, and how many affairs must be under way at a kill.
AGENTS = 40
LEAST_UNDER_WAY = 20


class Lines:
    """The lines of the report: what holds, and what does not."""

    def __init__(self) -> None:
        self.passed = self.failed = 0

    def claim(self, name: str, wrong: list[Any], note: str = "") -> None:
        if wrong:
            self.failed += 1
            print(f"FAIL kill.{name}: {len(wrong)} wrong, first: {wrong[0]}", flush=True)
            for more in wrong[1:6]:
                print(f"#   {more}", flush=True)
        else:
            self.passed += 1
            print(f"ok kill.{name}{f' ({note})' if note else ''}", flush=True)

    def close(self) -> int:
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 1 if self.failed or not self.passed else 0


def seed_of_the_commit() -> int:
    """The same commit is killed in the same way; without git one way is as good as another."""
    told = subprocess.run(["git", "-C", str(HERE), "rev-parse", "HEAD"], capture_output=True, text=True)
    return int(told.stdout[:8] or "1", 16)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--server", default="")
    parser.add_argument("--seed", type=int, default=seed_of_the_commit(), help="the commit's without it")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--errands", type=int, default=500)
    parser.add_argument("--signals", type=int, default=7, help="of each of the two senders to an errand")
    parser.add_argument(
        "--reference", action="store_true", help="a real Temporal server: timers have a grain of 1 ms"
    )
    parser.add_argument(
        "--upgrade",
        nargs=2,
        metavar=("FORMER", "PRESENT"),
        help="programs of two releases instead of a server: upgrades and the way back between the kills",
    )
    parser.add_argument("--keep", type=Path, help="leave histories, calls and work in this folder")
    return parser.parse_args()


class Progress:
    """Raises when something has not changed for longer than anybody waits."""

    def __init__(self, what: str, now: Callable[[], Any]) -> None:
        self.what = what
        self.now = now
        self.seen = now()
        self.deadline = patience.Deadline()

    def check(self) -> None:
        if (now := self.now()) != self.seen:
            self.seen, self.deadline = now, patience.Deadline()
        elif self.deadline.is_over():
            raise patience.Late(f"{self.what} ({now})")


def progress_of(clients: Clients) -> Progress:
    return Progress("another acknowledged call", lambda: clients.acked)


class Kills:
    """The killer: one kill a round, after a random share of the round's calls."""

    def __init__(
        self,
        server: Server,
        clients: Clients,
        agents: Agents,
        options: argparse.Namespace,
        upgrade: Upgrade | None,
    ) -> None:
        self.server = server
        self.clients = clients
        self.agents = agents
        self.options = options
        self.upgrade = upgrade
        self.rng = random.Random(options.seed)
        self.unfinished: list[int] = []
        self.under_way: list[int] = []
        self.in_recovery = 0
        self.down_s: list[float] = []

    async def run(self, drivers: asyncio.Future, affairs: asyncio.Future) -> None:
        # A fifth of the calls is left for after the last kill, and with them enough errands.
        quota = self.clients.planned_calls(self.options.errands) * 0.8 / self.options.kills
        begun = time.monotonic()
        for _ in range(self.options.kills):
            await self.clients.pace.allow(quota)
            enough = self.clients.acked + self.rng.uniform(0.1, 0.8) * quota
            progress = progress_of(self.clients)
            while self.clients.acked < enough or len(self.clients.unfinished) <= LEAST_UNFINISHED:
                if drivers.done():
                    raise RuntimeError("the clients came to an end before the last kill")
                progress.check()
                # Looks come so often that a kill may fall between any two calls.
                await patience.pass_s(0.002)
            await self.affairs_are_there(affairs)
            progress = progress_of(self.clients)
            # Mostly amid the calls, sometimes when only timers and activities are left.
            await patience.pass_s(self.rng.uniform(0, self.rng.choice([0.1, 0.1, 2])))
            while len(self.clients.unfinished) <= LEAST_UNFINISHED:
                progress.check()
                await self.clients.pace.allow(5)
                await patience.pass_s(0.005)
            self.unfinished.append(len(self.clients.unfinished))
            self.under_way.append(len(self.agents.under_way))
            self.server.kill()
            at_s = time.monotonic() - begun
            if self.upgrade:
                self.upgrade.choose(len(self.unfinished) - 1)
            await self.restart()
            print(
                f"# kill {len(self.unfinished)} after {at_s:.1f} s: {self.clients.acked} acknowledged calls,"
                f" {self.unfinished[-1]} unfinished runs, {self.down_s[-1]:.1f} s down",
                flush=True,
            )
        await self.clients.pace.allow(float("inf"))

    async def affairs_are_there(self, affairs: asyncio.Future) -> None:
        """Waits until enough was begun, and done to what was begun, for one kill more: affairs take their time, however fast
        the server answers the errands."""
        missing = lambda: too_few(self.agents, len(self.unfinished) + 1)
        progress = Progress("enough affairs for another kill", missing)
        while missing():
            if affairs.done():
                await affairs
            progress.check()
            await asyncio.sleep(patience.LOOK_EVERY_S)

    async def restart(self) -> None:
        """Starts the server again; one time in five it dies once more while it recovers."""
        begun = time.monotonic()
        self.server.start()
        if self.rng.random() < 0.2:
            await patience.pass_s(self.rng.uniform(0, 0.6))
            self.server.kill()
            self.in_recovery += 1
            self.server.start()
        await self.server.ready()
        self.down_s.append(time.monotonic() - begun)


async def start_workers(folder: Path, address: str, queue: str) -> list[asyncio.subprocess.Process]:
    workers = []
    for n in range(WORKERS):
        command = [sys.executable, str(HERE / "worker.py"), address, queue, str(folder / f"work-{n}.jsonl")]
        worker = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        LEFT.append(lambda worker=worker: worker.returncode is None and worker.kill())
        workers.append(worker)
    for worker in workers:
        async with asyncio.timeout(patience.most_s()):
            await worker.stdout.readline()
    return workers


async def stop_workers(workers: list[asyncio.subprocess.Process]) -> None:
    for worker in workers:
        if worker.returncode is None:
            worker.terminate()
    for worker in workers:
        try:
            await asyncio.wait_for(worker.wait(), patience.most_s())
        except TimeoutError:
            worker.kill()
            await worker.wait()


async def drive(clients: Clients, errands: list[Errand]) -> None:
    slots = asyncio.Semaphore(OPEN_AT_ONCE)

    async def one(errand: Errand) -> None:
        async with slots:
            await clients.run(errand)

    async with asyncio.TaskGroup() as group:
        for errand in errands:
            group.create_task(one(errand))


async def without_a_stop(work: asyncio.Future, progress: Progress) -> None:
    """Returns when it is done, however long that takes."""
    while not work.done():
        progress.check()
        await asyncio.sleep(patience.LOOK_EVERY_S)
    await work


async def fetch_chains(client: Client, clients: Clients, errands: list[Errand]) -> dict[int, list[Run]]:
    """Each errand's runs, once the last one is closed; an open one if none has closed for a while."""
    slots = asyncio.Semaphore(20)
    deadline = patience.Deadline()

    async def of(errand: Errand) -> list[Run]:
        workflow_id = clients.id_of(errand)
        run_id = first_run(clients.calls, workflow_id) or await told_first_run(client, workflow_id)
        nonlocal deadline
        runs = []
        while run_id:
            while True:
                try:
                    async with slots:
                        history = await client.get_workflow_handle(workflow_id, run_id=run_id).fetch_history()
                except RPCError as error:
                    if error.status == RPCStatusCode.UNAVAILABLE and not deadline.is_over():
                        await asyncio.sleep(READ_AGAIN_S)
                        continue
                    if error.status != RPCStatusCode.NOT_FOUND:
                        raise
                    # What it means that the run is not there, the checker says.
                    return runs
                run = Run(workflow_id, run_id, list(history.events))
                if closing_of(run) is not None:
                    deadline = patience.Deadline()
                    break
                if deadline.is_over():
                    break
                await asyncio.sleep(READ_AGAIN_S)
            runs.append(run)
            run_id = getattr(closing_of(run), "new_execution_run_id", "")
        return runs

    chains = await asyncio.gather(*(of(errand) for errand in errands))
    return {errand.number: runs for errand, runs in zip(errands, chains)}


def first_run(calls: list[Call], workflow_id: str) -> str:
    """The run in the answer to a start, empty if no start was acknowledged."""
    starts = (c for c in calls if c.kind == "start" and c.workflow_id == workflow_id and c.outcome == "acked")
    return next((start.run_id for start in starts), "")


async def told_first_run(client: Client, workflow_id: str) -> str:
    """The same as the server tells it: a start whose answer was lost is refused when it comes again after its run has
    continued as new, since the request of the run that is there is another one."""
    try:
        described = await client.get_workflow_handle(workflow_id).describe()
    except RPCError:
        return ""
    return described.raw_description.workflow_execution_info.first_run_id


async def replay(runs: list[Run]) -> list[str]:
    runner = SandboxedWorkflowRunner(SandboxRestrictions.default.with_passthrough_all_modules())

    async def histories():
        for run in runs:
            yield WorkflowHistory(run.workflow_id, run.events)

    replayer = Replayer(workflows=[RunErrand, *AFFAIRS], workflow_runner=runner)
    results = await replayer.replay_workflows(histories(), raise_on_replay_failure=False)
    return [f"{run_id}: {error!r}" for run_id, error in results.replay_failures.items()]


async def run(options: argparse.Namespace, folder: Path) -> int:
    rng = random.Random(options.seed)
    errands = [errand_of(number, rng) for number in range(options.errands)]
    server = Server.new(options.server, folder / "data")
    upgrade = Upgrade(server, *options.upgrade, options.kills) if options.upgrade else None
    if upgrade:
        upgrade.begin()
    workers: list[asyncio.subprocess.Process] = []
    lines = Lines()
    begun = time.monotonic()
    try:
        LEFT.append(server.kill)
        server.start()
        await server.ready()
        client = await Client.connect(server.address, namespace="default")
        queue = f"kill-{uuid.uuid4()}"
        clients = Clients(client, queue, f"errand-{uuid.uuid4()}", options.seed, options.signals)
        workers = await start_workers(folder, server.address, queue)
        others = Clients(client, queue, f"affair-{uuid.uuid4()}", options.seed, options.signals)
        agents = Agents(others, others.prefix, options.seed, pauses_runs=not options.reference)
        kills = Kills(server, clients, agents, options, upgrade)
        drivers = asyncio.ensure_future(drive(clients, errands))
        affairs = asyncio.ensure_future(agents.work(AGENTS))
        try:
            await kills.run(drivers, affairs)
            await without_a_stop(drivers, progress_of(clients))
            agents.stopped = True
            await without_a_stop(affairs, Progress("more of the affairs", agents.moves))
        except (Exception, asyncio.CancelledError) as error:
            state = f"{len(clients.unfinished)} unfinished runs, {clients.acked} acknowledged calls"
            for line in agents.left():
                print(f"# not over: {line}", flush=True)
            why = f"{error!r} with {state}; the server says: {server.tail()}"
            lines.claim("the_clients_come_to_an_end", [why])
            return lines.close()
        finally:
            drivers.cancel()
            affairs.cancel()
        chains = await fetch_chains(client, clients, errands)
        gone = [
            f"worker {n} ended with {w.returncode}" for n, w in enumerate(workers) if w.returncode is not None
        ]
    finally:
        await stop_workers(workers)
        server.stop()
    work = [entry for n in range(WORKERS) for entry in read_work(folder / f"work-{n}.jsonl")]
    print(f"# {time.monotonic() - begun:.0f} s of work and kills", flush=True)
    lines.claim("workers_live_on", gone)
    if upgrade:
        lines.claim("the_former_release_refuses_what_was_raised", upgrade.wrong(), " ".join(upgrade.releases))
    return await judge(lines, options, errands, chains, clients.calls, work, kills, agents)


async def judge(
    lines: Lines,
    options: argparse.Namespace,
    errands: list[Errand],
    chains: dict[int, list[Run]],
    calls: list[Call],
    work: list[Work],
    kills: Kills,
    agents: Agents,
) -> int:
    runs = [run for chain in chains.values() for run in chain]
    own = list(agents.runs.values())
    all_runs, all_calls = runs + own, calls + agents.clients.calls
    if options.keep:
        write_histories(options.keep / "histories", all_runs)
        write_lines(options.keep / "calls.jsonl", all_calls)
        write_lines(options.keep / "work.jsonl", work)
    print_figures(runs, calls, work, kills)
    print_affairs(agents, kills)
    grain_ms = 1 if options.reference else 0
    lines.claim(
        "all_finish_with_the_right_result", wrong_results(errands, chains), f"{len(errands)} workflows"
    )
    least = min(kills.unfinished, default=0)
    acked = sum(call.outcome == "acked" for call in calls)
    # A shorter trial needs less; the real one says what it must reach.
    least_acked = min(LEAST_ACKED, LEAST_ACKED * options.errands // 500)
    too_little = [f"{acked} acknowledged calls"] * (acked < least_acked)
    too_little += [f"{least} unfinished runs at a kill"] * (least < LEAST_UNFINISHED)
    too_little += [f"{len(kills.unfinished)} kills"] * (len(kills.unfinished) < options.kills)
    note = (
        f"{len(kills.unfinished)} kills, at least {least} unfinished runs at each, {acked} acknowledged calls"
    )
    lines.claim("it_was_hard_enough", too_little, note)
    lines.claim(
        "affairs_end_as_they_had_to", wrong_ends(agents.affairs, own), f"{len(agents.affairs)} affairs"
    )
    lines.claim("what_is_paused_stays_so", agents.wrong)
    few = too_few(agents, len(kills.unfinished))
    few += [f"{min(kills.under_way)} affairs at a kill"] * (min(kills.under_way) < LEAST_UNDER_WAY)
    lines.claim("affairs_were_hard_enough", few, f"{min(kills.under_way)} at a kill")
    lines.claim(
        "the_checker_finds_nothing",
        check(all_runs, all_calls, work, grain_ms=grain_ms),
        f"{sum(len(r.events) for r in all_runs)} events",
    )
    lines.claim("every_history_is_replayed", await replay(all_runs), f"{len(all_runs)} runs")
    some = sample(runs, calls, work)
    theirs = sample_of_affairs(agents, work)
    both = (some[0] + theirs[0], some[1] + theirs[1], some[2] + theirs[2])
    planted, missed = plant_each(*both, seed=options.seed, grain_ms=grain_ms)
    lines.claim("the_checker_finds_what_is_planted", missed, f"{planted} corruptions")
    return lines.close()


# Affairs of which the checker's own proof is made.
SAMPLED_AFFAIRS = 40


def sample_of_affairs(agents: Agents, work: list[Work]) -> tuple[list[Run], list[Call], list[Work]]:
    """The logs of some affairs, with those of their children."""
    chosen = {affair.workflow_id for affair in agents.affairs[:SAMPLED_AFFAIRS]}
    chosen |= {order.room for affair in agents.affairs[:SAMPLED_AFFAIRS] for order in affair.orders}
    return (
        [run for run in agents.runs.values() if run.workflow_id in chosen],
        [call for call in agents.clients.calls if call.workflow_id in chosen],
        [entry for entry in work if entry.workflow_id in chosen],
    )


def fates_of(calls: list[Call]) -> Counter[str]:
    tries: dict[str, list[Call]] = {}
    for call in calls:
        tries.setdefault(call.id, []).append(call)
    return Counter(f"{t[0].kind} {fate(t)}" for t in tries.values())


def too_few(agents: Agents, kills: int) -> list[str]:
    """What was not tried often enough to prove anything by so many kills."""
    kinds = Counter(affair.kind for affair in agents.affairs)
    fates = fates_of(agents.clients.calls)
    rooms = sum(len(affair.orders) for affair in agents.affairs)
    few = [f"{kinds[kind]} of {kind}" for kind in sorted(set(KINDS)) if 2 * kinds[kind] < kills]
    few += [f"{fates['reset acked']} resets"] * (fates["reset acked"] < kills)
    paused = fates["pause acked"] + fates["pause activity acked"]
    few += [f"{paused} pauses"] * (paused < 2 * kills)
    few += [f"{rooms} children"] * (rooms < 2 * kills)
    few += [f"{fates['update acked']} updates"] * (fates["update acked"] < 5 * kills)
    return few


def print_affairs(agents: Agents, kills: Kills) -> None:
    kinds = Counter(affair.kind for affair in agents.affairs)
    rooms = sum(len(affair.orders) for affair in agents.affairs)
    calls = agents.clients.calls
    tried_again = sum(call.outcome == "unknown" for call in calls)
    print(f"# affairs: {json.dumps(dict(sorted(kinds.items())))}, {rooms} children, {len(agents.runs)} runs")
    print(
        f"# their calls: {json.dumps(dict(sorted(fates_of(calls).items())))}, {tried_again} tries of unknown outcome"
    )
    runs = agents.runs.values()
    events = Counter(name_of(event) for run in runs for event in run.events)
    print(f"# their events: {json.dumps({name: events[name] for name in TOLD})}", flush=True)


# Events of which the report gives the number.
TOLD = [
    "WorkflowExecutionUpdateAdmitted",
    "WorkflowExecutionUpdateAccepted",
    "WorkflowExecutionUpdateCompleted",
    "ChildWorkflowExecutionStarted",
    "ExternalWorkflowExecutionSignaled",
]


def print_figures(runs: list[Run], calls: list[Call], work: list[Work], kills: Kills) -> None:
    tries: dict[str, list[Call]] = {}
    for call in calls:
        tries.setdefault(call.id, []).append(call)
    fates = Counter(f"{t[0].kind} {fate(t)}" for t in tries.values())
    received = Counter((w.run_id, w.activity_id, w.attempt) for w in work if w.kind == "received")
    print(f"# calls: {json.dumps(dict(sorted(fates.items())))}, {len(calls)} tries")
    print(f"# kills: {len(kills.unfinished)}, and {kills.in_recovery} more while it recovered")
    print(
        f"# attempts received: {len(received)}, more than once: {sum(n > 1 for n in received.values())}",
        flush=True,
    )


def main() -> int:
    options = arguments()
    print(f"# seed {options.seed}", flush=True)
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter="off"))))
    with tempfile.TemporaryDirectory(prefix="everlog-kill-") as folder:
        LEFT.append(lambda: shutil.rmtree(folder, ignore_errors=True))
        end_on_signals()
        return asyncio.run(run(options, Path(folder)))


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
