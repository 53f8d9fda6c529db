"""What a case works with: the interface, a worker's queue, ids of its own; and how cases are declared."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, AsyncIterator, TypeVar

from temporalio.client import Client

import expect
from cli import Cli

Value = TypeVar("Value")

# The search attributes that runs of the cases carry.
COLOUR, WEIGHT = "CliColour", "CliWeight"


class Shared:
    """What all cases have together."""

    def __init__(self, cli: Cli, client: Client, queue: str, reference: bool) -> None:
        self.cli, self.client, self.queue, self.reference = cli, client, queue, reference
        # A namespace runs one batch at a time.
        self.batch = asyncio.Lock()


class Setting:
    """One case's part of the server."""

    def __init__(self, shared: Shared, name: str) -> None:
        self.shared, self.name = shared, name
        self.cli, self.client, self.queue = shared.cli, shared.client, shared.queue
        self.prefix = f"{name.split('.')[1]}-{uuid.uuid4().hex[:8]}-"
        # Runs of a case whose queue nobody polls stay as they are.
        self.idle = self.prefix + "idle"
        # What the runs of this case alone match.
        self.own = f'WorkflowId STARTS_WITH "{self.prefix}"'

    def id(self, word: str = "run") -> str:
        return self.prefix + word

    async def start(self, type: str, word: str, *words: str, queue: str = "") -> tuple[str, str]:
        """Starts a run by the interface; its workflow id and run id."""
        id = self.id(word)
        begin = ["workflow", "start", "--type", type, "-t", queue or self.queue, "-w", id]
        started = await self.cli.json(*begin, *words)
        return id, started["runId"]

    async def many(self, count: int, word: str = "run") -> list[str]:
        """Starts this many runs at once that nobody works at; their ids."""
        ids = [self.id(f"{word}-{number:03}") for number in range(count)]
        starts = [self.client.start_workflow("Register", id=id, task_queue=self.idle) for id in ids]
        await asyncio.gather(*starts)
        return ids

    async def has_child(self, id: str) -> None:
        """Waits until a run knows of the run of its child."""

        async def knows() -> bool:
            described = await self.client.get_workflow_handle(id).describe()
            return any(child.run_id for child in described.raw_description.pending_children)

        await expect.eventually(knows, f"a child of {id}")

    async def settles(self, look: Callable[[], Awaitable[Value]], expected: Value, what: str) -> None:
        """Claims that a list or a count is exact. Those of a Temporal server become so by and by."""
        last = await look()
        if self.shared.reference:

            async def again() -> bool:
                nonlocal last
                last = await look()
                return last == expected

            try:
                await expect.eventually(again, what)
            except expect.Unmet:
                pass
        expect.equal(last, expected, what)

    async def ids(self, query: str, *words: str) -> list[str]:
        """The workflow ids of a list, in its order."""
        found = await self.cli.json("workflow", "list", "-q", query, *words)
        return [info["execution"]["workflowId"] for info in found]

    async def lists(self, query: str, expected: Iterable[str]) -> None:
        """Claims that a query finds these, in whatever order, and that a count agrees."""

        async def look() -> list[str]:
            return sorted(await self.ids(query))

        async def count() -> int:
            return int((await self.cli.json("workflow", "count", "-q", query)).get("count", "0"))

        wanted = sorted(expected)
        await self.settles(look, wanted, f"the list of {query}")
        await self.settles(count, len(wanted), f"the count of {query}")

    async def current(self, id: str) -> str:
        """The run id of the run that an id means."""
        described = await self.cli.json("workflow", "describe", "-w", id)
        return described["workflowExecutionInfo"]["execution"]["runId"]

    async def status(self, id: str, run: str = "") -> str:
        words = ["workflow", "describe", "-w", id] + (["-r", run] if run else [])
        described = await self.cli.json(*words)
        return described["workflowExecutionInfo"]["status"].removeprefix("WORKFLOW_EXECUTION_STATUS_")

    @asynccontextmanager
    async def batches(self) -> AsyncIterator[None]:
        """Only within it may a case start batches."""
        async with self.shared.batch:
            yield


CASES: dict[str, Callable[[Setting], Awaitable[Any]]] = {}


def case(function: Callable[[Setting], Awaitable[Any]]) -> Callable[[Setting], Awaitable[Any]]:
    """Declares a case, named after its module and function."""
    CASES[f"{function.__module__}.{function.__name__}"] = function
    return function
