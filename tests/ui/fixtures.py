"""The runs that the pages show, in a namespace of their own."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError, RPCStatusCode

import workflows
from expect import eventually

COLOUR = SearchAttributeKey.for_keyword("UiColour")
WEIGHT = SearchAttributeKey.for_int("UiWeight")
WORDS = SearchAttributeKey.for_keyword_list("UiWords")
TYPES = {
    COLOUR.name: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    WEIGHT.name: IndexedValueType.INDEXED_VALUE_TYPE_INT,
    WORDS.name: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST,
}
# More than a page.
CROWD = 130
# Each is what one case does something to.
REGISTERS = ["signalled", "updated", "reset", "cancelled", "terminated"]
REGISTERS += [f"picked-{n}" for n in (1, 2, 3)] + [f"swept-{n}" for n in (1, 2, 3, 4)] + ["again-1", "again-2"]
# Each has an activity that waits an hour for its next attempt.
STUMBLING = ["stumbling", "halted", "changed"]


@dataclass
class Fixtures:
    namespace: str
    client: Client
    queue: str = field(default_factory=lambda: f"ui-{uuid.uuid4().hex[:8]}")
    runs: dict[str, str] = field(default_factory=dict)
    crowd: list[str] = field(default_factory=list)
    # By the words of the page.
    statuses: dict[str, int] = field(default_factory=dict)

    @staticmethod
    async def register(address: str, **options: Any) -> "Fixtures":
        """A namespace, and a client of it. A Temporal server takes a moment to know what is new."""
        namespace = f"ui-{uuid.uuid4().hex[:8]}"
        client = await Client.connect(address, namespace=namespace, **options)
        about = RegisterNamespaceRequest(
            namespace=namespace,
            description="for tests",
            owner_email="who@example.com",
            workflow_execution_retention_period=Duration(seconds=2 * 86_400),
        )
        await client.workflow_service.register_namespace(about)
        attributes = AddSearchAttributesRequest(namespace=namespace, search_attributes=TYPES)
        await known(lambda: client.operator_service.add_search_attributes(attributes))
        return Fixtures(namespace, client)

    async def start(self, type: str, id: str, *args: Any, **options: Any) -> Any:
        options.setdefault("task_queue", self.queue)
        handle = await self.client.start_workflow(type, args=args, id=id, **options)
        self.runs[id] = handle.result_run_id
        return handle

    async def make(self) -> None:
        """With a worker at the queue: all that is to end has ended, all that is to stand stands."""
        attributes = [SearchAttributePair(COLOUR, "red"), SearchAttributePair(WORDS, ["a", "b"])]
        carried = {
            "search_attributes": TypedSearchAttributes(attributes),
            "memo": {"note": "kept"},
            "static_summary": "what it is",
        }
        await known(lambda: self.start("Register", "register", **carried))
        await self.client.get_workflow_handle("register").signal("put", 5)
        greetings = [await self.start("Greeting", f"greeting-{n}", "Ada", **weight(n)) for n in (1, 2, 3)]
        relay, broken = await self.start("Relay", "relay", 2), await self.start("Broken", "broken")
        await asyncio.gather(*(handle.result() for handle in (*greetings, relay)))
        await asyncio.gather(broken.result(), return_exceptions=True)
        await self.start("Family", "family")
        stumbling = [await self.start("Stumbling", id) for id in STUMBLING]
        await asyncio.gather(*(self.start("Register", id) for id in REGISTERS))
        self.crowd = [f"crowd-{n:03}" for n in range(CROWD)]
        await asyncio.gather(*(self.start("Register", id, task_queue=f"{self.queue}-idle") for id in self.crowd))

        async def has_child() -> bool:
            description = await self.client.get_workflow_handle("family").describe()
            children = description.raw_description.pending_children
            if children:
                self.runs["family-child"] = children[0].run_id
            return bool(children and children[0].run_id)

        async def have_stumbled() -> bool:
            described = [(await handle.describe()).raw_description for handle in stumbling]
            return all(each.pending_activities and each.pending_activities[0].attempt == 2 for each in described)

        await eventually(has_child, "the child")
        await eventually(have_stumbled, "second attempts")
        self.runs["relay"] = (await self.client.get_workflow_handle("relay").describe()).run_id
        open_runs = len(["register", "family", "family-child", *STUMBLING, *REGISTERS, *self.crowd])
        self.statuses = {"Running": open_runs, "Completed": 4, "Failed": 1, "Continued as New": 2}


def weight(value: int) -> dict[str, Any]:
    return {"search_attributes": TypedSearchAttributes([SearchAttributePair(WEIGHT, 3 * value)])}


async def known(call: Callable[[], Awaitable[Any]]) -> None:
    """Calls until the server knows the names in it."""

    async def is_known() -> bool:
        try:
            await call()
        except RPCError as error:
            if error.status not in (RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT):
                raise
            return False
        return True

    await eventually(is_known, "the server knows new names")
