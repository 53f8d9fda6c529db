"""Those who see to the affairs: they start them, pay, send back, hold up and stop, over and over, and log each try."""

import asyncio
import json
import random
import uuid
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType, UpdateWorkflowExecutionLifecycleStage, WorkflowIdReusePolicy
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import (
    ResetWorkflowExecutionRequest,
    SignalWorkflowExecutionRequest,
    StartWorkflowExecutionRequest,
    TerminateWorkflowExecutionRequest,
    UpdateWorkflowExecutionRequest,
)
from temporalio.client import Client
from temporalio.converter import DataConverter
from temporalio.service import RPCError, RPCStatusCode

import patience
from affairs import ATTEMPTS_MAX, Affair, Order
from clients import NAMESPACE, Clients
from history_rules import closing_of
from logs import Call, Run, attributes_of, json_of, name_of
from pauses import Operator

# Rooms of a house.
ROOMS_MAX = 6
PAYMENTS = 8
ROUNDS = 4
# There are many who read: more often would be a load of its own.
READ_AGAIN_S = 0.3
KINDS = ["House", "Account", "Account", "Repair", "Round", "Site"]
ACCEPTED = UpdateWorkflowExecutionLifecycleStage.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED
COMPLETED = UpdateWorkflowExecutionLifecycleStage.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED


class Agents:
    """Some of them, each with one affair after the other until they are told to stop."""

    def __init__(self, clients: Clients, prefix: str, seed: int, pauses_runs: bool = True) -> None:
        self.clients = clients
        # A Temporal server does so only where its configuration allows it.
        self.pauses_runs = pauses_runs
        # What was not as it had been acknowledged.
        self.wrong: list[str] = []
        self.prefix = prefix
        self.seed = seed
        self.affairs: list[Affair] = []
        self.runs: dict[str, Run] = {}
        self.under_way: set[str] = set()
        self.stopped = False
        # Until another run is seen to have closed.
        self.deadline = patience.Deadline()

    async def work(self, count: int) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(self.one_after_the_other(number))

    async def one_after_the_other(self, number: int) -> None:
        rng = random.Random(f"{self.seed} agent {number}")
        while not self.stopped:
            kind = rng.choice(KINDS)
            workflow_id = f"{self.prefix}-{kind.lower()}-{len(self.affairs)}"
            orders, fails = [], 0
            if kind == "House":
                rooms = range(rng.randint(1, ROOMS_MAX))
                how = ["work", "rest", "rest", "fail"]
                orders = [Order(f"{workflow_id}-room-{n}", rng.choice(how), rng.randint(1, 60)) for n in rooms]
            if kind == "Repair":
                fails = rng.randint(0, ATTEMPTS_MAX)
            affair = Affair(kind, workflow_id, orders, fails)
            self.affairs.append(affair)
            self.under_way.add(workflow_id)
            await self.see_to(affair, rng)
            self.under_way.discard(workflow_id)

    def left(self) -> list[str]:
        """The affairs under way, each with the last try of every call that was not answered for good."""
        told = []
        for workflow_id in sorted(self.under_way):
            last = {call.id: call for call in self.clients.calls if call.workflow_id == workflow_id}
            open_calls = [f"{call.kind} {call.id}: {call.why}" for call in last.values() if call.outcome == "unknown"]
            told.append(f"{workflow_id}, {len(last)} calls; unanswered: {open_calls}")
        return told

    def moves(self) -> int:
        """How much has come of the affairs: what was answered for good, each answer once, and what has closed."""
        answers = {(call.id, call.outcome, call.stage) for call in self.clients.calls if call.outcome != "unknown"}
        return len(answers) + len(self.runs)

    async def see_to(self, affair: Affair, rng: random.Random) -> None:
        first_run_id = await self.start(affair, rng)
        if affair.kind == "Account":
            payers = (self.pay(affair, f"payer-{n}", rng) for n in range(2))
            await asyncio.gather(*payers, self.send_back(affair, first_run_id, rng))
            await self.close(affair, rng)
        elif affair.kind == "Site":
            self.wrong += await Operator(self, affair.workflow_id, rng).hold_up(self.pauses_runs)
            await self.close(affair, rng)
        elif affair.kind == "Round":
            await self.follow(affair.workflow_id, first_run_id, ROUNDS)
            await self.stop(affair, first_run_id, rng)
        await self.read_all(affair, first_run_id)

    async def call(self, template: Call, call: Any, rng: random.Random) -> Call:
        """Tries until it is known what has come of it."""
        while True:
            last = await self.clients.try_once(template, call)
            self.clients.calls.append(last)
            if last.outcome == "acked" or (last.outcome == "refused" and last.why != "RESOURCE_EXHAUSTED"):
                return last
            await patience.pass_s(0.02 + rng.random() * 0.2)

    async def start(self, affair: Affair, rng: random.Random) -> str:
        request = StartWorkflowExecutionRequest(
            namespace=NAMESPACE,
            workflow_id=affair.workflow_id,
            request_id=str(uuid.uuid4()),
            identity="an agent",
            workflow_id_reuse_policy=WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
        )
        request.workflow_type.name = affair.kind
        request.task_queue.name = self.clients.queue
        arguments = {"House": [affair.orders], "Repair": [affair.fails]}.get(affair.kind, [])
        request.input.payloads.extend(await DataConverter.default.encode(arguments))
        if affair.kind == "Repair":
            request.retry_policy.initial_interval.FromMilliseconds(rng.choice([50, 300, 1000]))
            request.retry_policy.maximum_attempts = ATTEMPTS_MAX
        if affair.kind == "Round":
            request.cron_schedule = "@every 1s"
        service = self.clients.client.workflow_service
        call = lambda: service.start_workflow_execution(request, **self.clients.options)
        template = Call(request.request_id, "start", affair.workflow_id, 0, 0, "unknown")
        last = await self.call(template, call, rng)
        if last.outcome == "acked":
            return last.run_id
        # Its answer was lost, and the chain has gone on since.
        return (await self.describe(affair.workflow_id)).first_run_id

    async def describe(self, workflow_id: str) -> Any:
        handle = self.clients.client.get_workflow_handle(workflow_id)
        described = await self.until_answered(handle.describe)
        return described.raw_description.workflow_execution_info

    async def until_answered(self, call: Any) -> Any:
        """What a call that only reads is answered with."""
        deadline = patience.Deadline()
        while True:
            try:
                return await call()
            except RPCError as error:
                passing = {RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED}
                # The SDK's own word for a connection that broke in the middle of an answer.
                is_broken_off = error.message.startswith(("transport error", "h2 protocol error"))
                if not (error.status in passing or is_broken_off) or deadline.is_over():
                    raise
                await asyncio.sleep(READ_AGAIN_S)

    async def pay(self, affair: Affair, payer: str, rng: random.Random) -> None:
        for number in range(PAYMENTS):
            await patience.pass_s(rng.random() * 0.6)
            if rng.random() < 0.3:
                await self.give(affair)
            amount = -1 if rng.random() < 0.1 else rng.randint(1, 99)
            await self.update(affair, f"{payer}-{number}-{uuid.uuid4()}", amount, rng)

    async def update(self, affair: Affair, update_id: str, amount: int, rng: random.Random) -> None:
        request = UpdateWorkflowExecutionRequest(namespace=NAMESPACE)
        request.workflow_execution.workflow_id = affair.workflow_id
        waits_for_end = rng.random() < 0.5
        request.wait_policy.lifecycle_stage = COMPLETED if waits_for_end else ACCEPTED
        request.request.meta.update_id = update_id
        request.request.input.name = "pay"
        payment = {"id": update_id, "amount": amount}
        request.request.input.args.payloads.extend(await DataConverter.default.encode([payment]))
        service = self.clients.client.workflow_service
        while True:
            template = Call(update_id, "update", affair.workflow_id, 0, 0, "unknown")
            answers: list[Any] = []

            async def call() -> Any:
                answers.append(await service.update_workflow_execution(request, **self.clients.options))
                return answers[-1]

            last = await self.clients.try_once(template, call)
            self.clients.calls.append(last)
            if last.outcome == "refused" and last.why == "NOT_FOUND":
                return
            if last.outcome == "acked":
                self.judge(last, answers[-1], amount)
                if last.outcome == "refused" or last.stage == "completed":
                    return
                if last.outcome == "acked" and not waits_for_end and rng.random() < 0.7:
                    return
            await patience.pass_s(0.02 + rng.random() * 0.3)

    def judge(self, last: Call, answer: Any, amount: int) -> None:
        """What the answer to an update says of it."""
        if answer.HasField("outcome") and answer.outcome.HasField("failure"):
            # The workflow's end is no answer of its own.
            is_rejected = amount < 0
            last.outcome = "refused" if is_rejected else "unknown"
            last.why = answer.outcome.failure.message
        elif answer.HasField("outcome"):
            last.stage, last.result = "completed", json_of(answer.outcome.success)
        elif answer.stage >= ACCEPTED:
            last.stage = "accepted"
        else:
            last.outcome, last.why = "unknown", "not accepted yet"

    async def send_back(self, affair: Affair, first_run_id: str, rng: random.Random) -> None:
        """Goes back to a task of the current run, or of one before it."""
        known = [first_run_id]
        for _ in range(rng.randint(0, 3)):
            await patience.pass_s(0.3 + rng.random() * 2)
            base_run_id = known[-1] if rng.random() < 0.7 else rng.choice(known)
            run = await self.read(affair.workflow_id, base_run_id)
            points = points_of(run.events)
            if not points:
                continue
            order_id, finish = f"reset-{uuid.uuid4()}", rng.choice(points)
            request = ResetWorkflowExecutionRequest(
                namespace=NAMESPACE, reason=order_id, request_id=order_id, workflow_task_finish_event_id=finish
            )
            request.workflow_execution.workflow_id = affair.workflow_id
            request.workflow_execution.run_id = base_run_id
            service = self.clients.client.workflow_service
            call = lambda request=request: service.reset_workflow_execution(request, **self.clients.options)
            template = Call(
                order_id, "reset", affair.workflow_id, 0, 0, "unknown", number=finish, base_run_id=base_run_id
            )
            last = await self.call(template, call, rng)
            if last.outcome == "acked":
                known.append(last.run_id)

    async def close(self, affair: Affair, rng: random.Random) -> None:
        """New signals until one is acknowledged, or the account is over because of one that was not."""
        for _ in range(1000):
            last = await self.give(affair, finish=True)
            if last.outcome == "acked" or last.why == "NOT_FOUND":
                return
            await patience.pass_s(0.1 + rng.random() * 0.1)
        raise RuntimeError(f"{affair.workflow_id} cannot be closed")

    async def give(self, affair: Affair, finish: bool = False) -> Call:
        """A signal, tried once."""
        call_id = str(uuid.uuid4())
        request = SignalWorkflowExecutionRequest(namespace=NAMESPACE, signal_name="give", request_id=call_id)
        request.workflow_execution.workflow_id = affair.workflow_id
        value = json.dumps({"id": call_id, "finish": finish})
        request.input.payloads.append(Payload(metadata={"encoding": b"json/plain"}, data=value.encode()))
        service = self.clients.client.workflow_service
        call = lambda: service.signal_workflow_execution(request, **self.clients.options)
        last = await self.clients.try_once(
            Call(call_id, "signal", affair.workflow_id, 0, 0, "unknown"), call
        )
        self.clients.calls.append(last)
        return last

    async def stop(self, affair: Affair, first_run_id: str, rng: random.Random) -> None:
        request = TerminateWorkflowExecutionRequest(
            namespace=NAMESPACE, first_execution_run_id=first_run_id, identity="an agent", reason="enough"
        )
        request.workflow_execution.workflow_id = affair.workflow_id
        service = self.clients.client.workflow_service
        call = lambda: service.terminate_workflow_execution(request, **self.clients.options)
        await self.call(Call(str(uuid.uuid4()), "terminate", affair.workflow_id, 0, 0, "unknown"), call, rng)

    async def read(self, workflow_id: str, run_id: str) -> Run:
        handle = self.clients.client.get_workflow_handle(workflow_id, run_id=run_id)
        history = await self.until_answered(handle.fetch_history)
        return Run(workflow_id, run_id, list(history.events))

    async def follow(self, workflow_id: str, run_id: str, runs_max: int = 0) -> None:
        """Reads run after run until none follows, or so many have begun, and keeps what is closed."""
        count = 1
        while run_id:
            run = await self.read(workflow_id, run_id)
            closing = closing_of(run)
            if closing is None:
                if (runs_max and count >= runs_max) or self.deadline.is_over():
                    self.runs.setdefault(run_id, run)
                    return
                await asyncio.sleep(READ_AGAIN_S)
                continue
            if run_id not in self.runs or closing_of(self.runs[run_id]) is None:
                self.deadline = patience.Deadline()
            self.runs[run_id] = run
            run_id = getattr(closing, "new_execution_run_id", "")
            count += 1

    async def read_all(self, affair: Affair, first_run_id: str) -> None:
        """All runs of an affair, those of its children too."""
        mine = [c for c in self.clients.calls if c.workflow_id == affair.workflow_id and c.outcome == "acked"]
        run_ids = [first_run_id] + [call.run_id for call in mine if call.kind == "reset"]
        for run_id in dict.fromkeys(run_ids):
            await self.follow(affair.workflow_id, run_id)
        events = [event for run_id in run_ids if run_id in self.runs for event in self.runs[run_id].events]
        for event in events:
            if name_of(event) == "ChildWorkflowExecutionStarted":
                execution = attributes_of(event).workflow_execution
                await self.follow(execution.workflow_id, execution.run_id)


def points_of(events: list[HistoryEvent]) -> list[int]:
    """Events that a run can go back to: the ends of started workflow tasks. Others may stand within a batch."""
    return [event.event_id for event in events if is_end_of_started(event)]


def is_end_of_started(event: HistoryEvent) -> bool:
    if name_of(event) == "WorkflowTaskTimedOut":
        return event.workflow_task_timed_out_event_attributes.started_event_id > 0
    return name_of(event) in ("WorkflowTaskCompleted", "WorkflowTaskFailed")
