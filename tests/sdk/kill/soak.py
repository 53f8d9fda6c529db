"""Errands at several nodes for a while, whatever happens to the nodes meanwhile; then the checker looks at what is left.

soak.py ADDRESS[,ADDRESS...] SECONDS OPEN [SEED [ordinary]]: clients and a worker process at each address, OPEN errands at
a time, until SECONDS are over or its input ends. `ordinary`: the SDK tries calls again by itself, and then none may fail,
as long as the machine may take.
"""

import asyncio
import os
import random
import shutil
import sys
import tempfile
import uuid
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python"), str(HERE.parents[1] / "patience")]

from temporalio.client import Client  # noqa: E402
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig  # noqa: E402
from temporalio.service import RetryConfig  # noqa: E402

import patience  # noqa: E402
from affairs import wrong_ends  # noqa: E402
from agents import Agents  # noqa: E402
from checker import check  # noqa: E402
from cleanup import LEFT, end_on_signals  # noqa: E402
from clients import Clients  # noqa: E402
from kill_test import Lines, fetch_chains, first_run, replay, start_workers, stop_workers  # noqa: E402
from logs import Call, Run, read_work  # noqa: E402
from workload import Errand, errand_of, wrong_results  # noqa: E402

# Of each of the two senders to an errand.
SIGNALS = 3
# At each node.
AGENTS = 4
# Of calls that the SDK tries again by itself: the same as its own, but for when it gives up.
AS_LONG_AS_IT_TAKES = RetryConfig(max_elapsed_time_millis=round(1000 * patience.most_s()), max_retries=10_000)


class Side:
    """One node's clients, and the errands that they have begun."""

    def __init__(self, clients: Clients) -> None:
        self.clients = clients
        self.errands: list[Errand] = []
        retry = clients.options["retry"]
        others = Clients(clients.client, clients.queue, f"{clients.prefix}-affair", clients.seed, SIGNALS, retry)
        self.agents = Agents(others, others.prefix, clients.seed)

    async def begin(self, over: asyncio.Event, rng: random.Random) -> None:
        """One errand after the other until then."""
        while not over.is_set():
            errand = errand_of(len(self.errands), rng)
            self.errands.append(errand)
            await self.clients.run(errand)

    async def see_to_affairs(self, over: asyncio.Event) -> None:
        """What has children, is updated, sent back, tried again or comes by a schedule, until then."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.agents.work(AGENTS))
            await over.wait()
            self.agents.stopped = True


async def say_when_over(over: asyncio.Event, seconds: float) -> None:
    """When so much time has gone, or whoever has started this closes its input or is gone."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    try:
        await asyncio.wait_for(reader.read(), seconds)
    except TimeoutError:
        pass
    over.set()


def failed(calls: list[Call]) -> list[str]:
    """Calls that the SDK has given up."""
    given_up = [call for call in calls if not call.answered or call.why == "RESOURCE_EXHAUSTED"]
    return [
        f"{call.kind} of {call.workflow_id}: {call.why} after {call.ended_ms - call.sent_ms:.0f} ms, at {call.ended_ms:.0f}"
        for call in given_up
    ]


async def run(
    folder: Path, addresses: list[str], seconds: float, open_at_once: int, seed: int, ordinary: bool
) -> int:
    rng, lines = random.Random(seed), Lines()
    # The checker takes a Workflow Id for an errand's by its beginning, and so do those who read along.
    queue, prefix = f"soak-{uuid.uuid4()}", f"errand-{uuid.uuid4()}"
    workers, sides = [], []
    try:
        for number, address in enumerate(addresses):
            at = folder / str(number)
            at.mkdir()
            workers += await start_workers(at, address, queue)
            client = await Client.connect(address, namespace="default", retry_config=AS_LONG_AS_IT_TAKES)
            side = Side(Clients(client, queue, f"{prefix}-{number}", seed, SIGNALS, ordinary))
            await side.clients.pace.allow(float("inf"))
            sides.append(side)
        print("# it begins", flush=True)
        over = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(say_when_over(over, seconds))
            for number in range(open_at_once):
                group.create_task(sides[number % len(sides)].begin(over, rng))
            for side in sides:
                group.create_task(side.see_to_affairs(over))
        chains: list[dict[int, list[Run]]] = [
            await fetch_chains(side.clients.client, side.clients, side.errands) for side in sides
        ]
        gone = [f"a worker ended with {w.returncode}" for w in workers if w.returncode is not None]
    finally:
        await stop_workers(workers)
    runs = [run for each in chains for chain in each.values() for run in chain]
    own = [run for side in sides for run in side.agents.runs.values()]
    calls = [call for side in sides for call in side.clients.calls + side.agents.clients.calls]
    work = [entry for log in folder.glob("*/work-*.jsonl") for entry in read_work(log)]
    wrong = [found for side, each in zip(sides, chains) for found in wrong_results(side.errands, each)]
    for call in calls:
        # What was answered to starts of which no run is known.
        if call.kind == "start" and not first_run(calls, call.workflow_id):
            took_ms = call.ended_ms - call.sent_ms
            print(f"# {call.workflow_id}: a start was {call.outcome} {call.why} after {took_ms:.0f} ms", flush=True)
    count = sum(len(side.errands) for side in sides)
    acked = sum(side.clients.acked for side in sides)
    lines.claim("workers_live_on", gone)
    if ordinary:
        lines.claim("no_call_fails", failed(calls), f"{len(calls)} calls")
    lines.claim("all_finish_with_the_right_result", wrong, f"{count} workflows, {acked} acknowledged calls")
    ends = [found for side in sides for found in wrong_ends(side.agents.affairs, list(side.agents.runs.values()))]
    affairs = sum(len(side.agents.affairs) for side in sides)
    lines.claim("affairs_end_as_they_had_to", ends, f"{affairs} affairs, {len(own)} runs")
    lines.claim("what_is_paused_stays_so", [found for side in sides for found in side.agents.wrong])
    lines.claim("it_was_enough", ["nothing was done"] * (count < open_at_once))
    lines.claim("the_checker_finds_nothing", check(runs + own, calls, work), f"{sum(len(r.events) for r in runs + own)} events")
    lines.claim("every_history_is_replayed", await replay(runs + own), f"{len(runs + own)} runs")
    return lines.close()


def main() -> int:
    addresses, seconds, open_at_once, *more = sys.argv[1:]
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter="off"))))
    with tempfile.TemporaryDirectory(prefix="everlog-soak-") as folder:
        LEFT.append(lambda: shutil.rmtree(folder, ignore_errors=True))
        end_on_signals()
        seed = int(more[0]) if more else random.SystemRandom().randrange(2**32)
        ordinary = more[1:] == ["ordinary"]
        told = addresses.split(","), float(seconds), int(open_at_once), seed, ordinary
        return asyncio.run(run(Path(folder), *told))


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
