"""The clients of the kill test: they start, signal, query and finish errands, and log each try."""

import asyncio
import json
import random
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import WorkflowIdReusePolicy
from temporalio.api.workflowservice.v1 import (
    QueryWorkflowRequest,
    SignalWorkflowExecutionRequest,
    StartWorkflowExecutionRequest,
)
from temporalio.client import Client
from temporalio.converter import DataConverter
from temporalio.service import RPCError, RPCStatusCode

import patience
from logs import Call
from workload import Errand

NAMESPACE = "default"
# What is not answered within this is tried again.
TRY_TIMEOUT = timedelta(seconds=10)
# The server has said no, and so has done nothing.
REFUSALS = {
    RPCStatusCode.ALREADY_EXISTS,
    RPCStatusCode.FAILED_PRECONDITION,
    RPCStatusCode.INVALID_ARGUMENT,
    RPCStatusCode.NOT_FOUND,
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.UNIMPLEMENTED,
}
# A refusal that may be another answer a moment later.
PASSING = {RPCStatusCode.RESOURCE_EXHAUSTED, RPCStatusCode.FAILED_PRECONDITION}


class Pace:
    """How many calls may still be sent before the next kill."""

    def __init__(self) -> None:
        self.permits = 0.0
        self.changed = asyncio.Condition()

    async def take(self) -> None:
        async with self.changed:
            await self.changed.wait_for(lambda: self.permits >= 1)
            self.permits -= 1

    async def allow(self, calls: float) -> None:
        async with self.changed:
            self.permits = max(self.permits, 0) + calls
            self.changed.notify_all()


class Clients:
    """All of them share a connection; each call is one of its own."""

    def __init__(
        self, client: Client, queue: str, prefix: str, seed: int, signals: int, retry: bool = False
    ) -> None:
        self.client = client
        self.queue = queue
        self.prefix = prefix
        self.seed = seed
        self.signals = signals
        # Whether the SDK tries each call again, as it does by itself for whoever does not ask otherwise: then it has time.
        timeout = timedelta(seconds=patience.most_s()) if retry else TRY_TIMEOUT
        self.options = {"timeout": timeout, "retry": retry}
        self.pace = Pace()
        self.calls: list[Call] = []
        self.acked = 0
        # Started for certain, and not yet asked to finish.
        self.unfinished: set[int] = set()

    def id_of(self, errand: Errand) -> str:
        return f"{self.prefix}-{errand.number}"

    def planned_calls(self, errands: int) -> int:
        """At least: a start, two senders' signals, two queries and a finish for each."""
        return errands * (1 + 2 * self.signals + 2 + 1)

    async def run(self, errand: Errand) -> None:
        """The whole life of an errand, by its clients."""
        rng = random.Random(f"{self.seed}-{errand.number}")
        # Now and then two clients start the same one: one must win.
        rivals = 2 if errand.number % 10 == 3 else 1
        await asyncio.gather(*(self.start(errand, rng) for _ in range(rivals)))
        self.unfinished.add(errand.number)
        senders = (self.send(errand, f"sender-{n}", rng) for n in range(2))
        await asyncio.gather(*senders, self.ask(errand, rng))
        self.unfinished.discard(errand.number)
        await self.finish(errand, rng)

    async def start(self, errand: Errand, rng: random.Random) -> None:
        request = StartWorkflowExecutionRequest(
            namespace=NAMESPACE,
            workflow_id=self.id_of(errand),
            request_id=str(uuid.uuid4()),
            identity="a client",
            workflow_id_reuse_policy=WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
        )
        request.workflow_type.name = "RunErrand"
        request.task_queue.name = self.queue
        request.input.payloads.extend(await DataConverter.default.encode([errand]))
        call = lambda: self.client.workflow_service.start_workflow_execution(request, **self.options)
        template = Call(request.request_id, "start", self.id_of(errand), 0, 0, "unknown")
        await self.call(template, call, rng, insist=True)

    async def send(self, errand: Errand, sender: str, rng: random.Random) -> None:
        for number in range(self.signals):
            await patience.pass_s(rng.random() * 0.05)
            # A run that continues as new forgets the calls it has seen: there, only one try is safe.
            await self.signal(errand, sender, number, rng, tries=1 if errand.is_renewed() else 0)

    async def signal(
        self,
        errand: Errand,
        sender: str,
        number: int,
        rng: random.Random,
        tries: int = 0,
        finish: bool = False,
    ) -> Call:
        call_id = str(uuid.uuid4())
        value = {"id": call_id, "sender": sender, "number": number, "finish": finish}
        request = SignalWorkflowExecutionRequest(
            namespace=NAMESPACE, signal_name="give", request_id=call_id, identity=sender
        )
        request.workflow_execution.workflow_id = self.id_of(errand)
        request.input.payloads.append(
            Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(value).encode())
        )
        call = lambda: self.client.workflow_service.signal_workflow_execution(request, **self.options)
        template = Call(call_id, "signal", self.id_of(errand), 0, 0, "unknown", sender=sender, number=number)
        last = await self.call(template, call, rng, tries=tries)
        if last.outcome == "acked" and not tries and rng.random() < 0.05:
            # The same call again, though it was answered: it must not count twice.
            await self.call(template, call, rng)
        return last

    async def ask(self, errand: Errand, rng: random.Random) -> None:
        for _ in range(2):
            await patience.pass_s(rng.random() * 0.3)
            request = QueryWorkflowRequest(namespace=NAMESPACE)
            request.execution.workflow_id = self.id_of(errand)
            request.query.query_type = "seen"
            call = lambda request=request: self.client.workflow_service.query_workflow(
                request, **self.options
            )
            template = Call(str(uuid.uuid4()), "query", self.id_of(errand), 0, 0, "unknown")
            await self.call(template, call, rng)

    async def finish(self, errand: Errand, rng: random.Random) -> None:
        """New signals until one is acknowledged, or the workflow is over because of one that was not."""
        for number in range(1000):
            last = await self.signal(errand, "finisher", number, rng, tries=1, finish=True)
            if last.outcome == "acked" or last.why.startswith("NOT_FOUND"):
                return
            await patience.pass_s(0.1)
        raise RuntimeError(f"errand {errand.number} cannot be finished")

    async def call(
        self,
        template: Call,
        call: Callable[[], Awaitable[Any]],
        rng: random.Random,
        tries: int = 0,
        insist: bool = False,
    ) -> Call:
        """Tries until the answer is certain; at most so many times, if tries are given.

        Without insisting, a call with an unknown outcome is given up now and then, as clients do.
        """
        await self.pace.take()
        deadline = patience.Deadline()
        while True:
            last = await self.try_once(template, call)
            self.calls.append(last)
            is_final = last.outcome == "acked" or (
                last.outcome == "refused" and last.why not in {p.name for p in PASSING}
            )
            tries -= 1
            if is_final or tries == 0 or deadline.is_over():
                return last
            if not insist and tries < 0 and last.outcome == "unknown" and rng.random() < 0.3:
                return last
            await patience.pass_s(0.02 + rng.random() * 0.2)

    async def try_once(self, template: Call, call: Callable[[], Awaitable[Any]]) -> Call:
        result = Call(**vars(template))
        result.sent_ms = time.time() * 1000
        try:
            answer = await call()
        except RPCError as error:
            result.answered = error.status in REFUSALS
            result.outcome = "refused" if result.answered else "unknown"
            result.why = error.status.name
        except Exception as error:
            result.answered = False
            result.why = type(error).__name__
        else:
            result.outcome = "acked"
            self.acked += 1
            result.run_id = getattr(answer, "run_id", "")
            if template.kind == "query":
                result.seen = json.loads(answer.query_result.payloads[0].data)
        result.ended_ms = time.time() * 1000
        return result
