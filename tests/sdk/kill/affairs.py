"""Work beside the errands: what has children, is updated, sent back, tried again, comes by a schedule, is held up."""

import asyncio
import contextlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, ChildWorkflowError

from history_rules import Violation, closing_of
from lineage import Lineage
from logs import Run, attributes_of, json_of, name_of

AGAIN = RetryPolicy(initial_interval=timedelta(milliseconds=100), maximum_interval=timedelta(seconds=1))
# Attempts that a repair gets.
ATTEMPTS_MAX = 4


async def squared(value: int) -> int:
    answer = await workflow.execute_activity(
        "compute", value, start_to_close_timeout=timedelta(seconds=10), retry_policy=AGAIN
    )
    return answer["value"]


@workflow.defn
class Account:
    """Takes payments until it is closed; what each comes to an activity says, so that it is accepted for a while."""

    def __init__(self) -> None:
        self.booked: list[str] = []
        self.closed = False

    @workflow.run
    async def run(self) -> list[str]:
        await workflow.wait_condition(lambda: self.closed)
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self.booked

    @workflow.update
    async def pay(self, payment: dict[str, Any]) -> dict[str, Any]:
        value = None
        while value is None:
            # A reset fails the activities that are with a worker, whatever their retry policy says.
            with contextlib.suppress(ActivityError):
                value = await squared(payment["amount"])
        self.booked.append(payment["id"])
        return {"id": payment["id"], "value": value}

    @pay.validator
    def is_no_debt(self, payment: dict[str, Any]) -> None:
        if payment["amount"] < 0:
            raise ValueError("a debt")

    @workflow.signal
    def give(self, signal: dict[str, Any]) -> None:
        self.closed = self.closed or bool(signal.get("finish"))


@dataclass
class Order:
    """What a room does: works, rests or fails, once it is painted."""

    room: str
    how: str
    value: int


@workflow.defn
class House:
    """Has rooms, children with ids of their own: starts them all, paints each by a signal, and adds up what they come to."""

    @workflow.run
    async def run(self, orders: list[Order]) -> int:
        return sum(await asyncio.gather(*(self.build(order) for order in orders)))

    async def build(self, order: Order) -> int:
        room = await workflow.start_child_workflow("Room", order, id=order.room)
        await room.signal("paint", {"id": f"{order.room}-paint"})
        try:
            return await room
        except ChildWorkflowError:
            return -1


@workflow.defn
class Room:
    def __init__(self) -> None:
        self.painted = 0

    @workflow.run
    async def run(self, order: Order) -> int:
        await workflow.wait_condition(lambda: self.painted > 0)
        if order.how == "fail":
            raise ApplicationError("it fell down", non_retryable=True)
        if order.how == "rest":
            await asyncio.sleep(order.value / 100)
            return order.value
        return await squared(order.value)

    @workflow.signal
    def paint(self, _signal: dict[str, Any]) -> None:
        self.painted += 1


def worth(orders: list[Order]) -> int:
    values = {"work": lambda v: v * v, "rest": lambda v: v, "fail": lambda _: -1}
    return sum(values[order.how](order.value) for order in orders)


@workflow.defn
class Repair:
    """Fails at first, as often as it is told."""

    @workflow.run
    async def run(self, fails: int) -> int:
        attempt = workflow.info().attempt
        await squared(attempt)
        if attempt <= fails:
            raise ApplicationError(f"attempt {attempt}")
        return attempt


@workflow.defn
class Round:
    """Counts on from the last result."""

    @workflow.run
    async def run(self) -> int:
        before = workflow.get_last_completion_result(int) if workflow.has_last_completion_result() else 0
        return before + await squared(1)


@workflow.defn
class Site:
    """Does piece after piece until it is told to finish, whoever holds it up; answers how many it has done."""

    def __init__(self) -> None:
        self.finished = False

    @workflow.run
    async def run(self) -> int:
        pieces = 0
        while not self.finished:
            await workflow.execute_activity(
                ["slow", "flaky"][pieces % 2],
                pieces,
                start_to_close_timeout=timedelta(seconds=10),
                heartbeat_timeout=timedelta(seconds=8),
                retry_policy=AGAIN,
            )
            pieces += 1
        return pieces

    @workflow.signal
    def give(self, signal: dict[str, Any]) -> None:
        self.finished = self.finished or bool(signal.get("finish"))


AFFAIRS = [Account, House, Room, Repair, Round, Site]


@dataclass
class Affair:
    """A piece of such work as its client knows it."""

    kind: str
    workflow_id: str
    # The rooms of a house, how often a repair fails.
    orders: list[Order]
    fails: int = 0


def wrong_ends(affairs: list[Affair], runs: list[Run]) -> list[Violation]:
    """Affairs that did not end as they had to."""
    found = []
    lineage = Lineage.of(runs)
    for affair in affairs:
        chain = lineage.in_order(affair.workflow_id)
        last = chain[-1] if chain else Run(affair.workflow_id, "", [])
        end = name_of(last.events[-1]) if last.events else "no run"

        def wrong(what: str, last: Run = last) -> None:
            found.append(Violation("result", last.workflow_id, last.run_id, len(last.events), what))

        result = json_of(closing_of(last).result) if end == "WorkflowExecutionCompleted" else None
        if affair.kind == "House" and result != worth(affair.orders):
            wrong(f"a house ended with {end}, {result}, not {worth(affair.orders)}")
        if affair.kind == "Repair":
            attempts = min(affair.fails + 1, ATTEMPTS_MAX)
            good = result == attempts if affair.fails < ATTEMPTS_MAX else end == "WorkflowExecutionFailed"
            if not good or len(chain) != attempts:
                wrong(f"a repair that fails {affair.fails} times ended with {end}, {result}, in {len(chain)} runs")
        if affair.kind == "Round":
            results = [json_of(closing_of(run).result) for run in chain[:-1]]
            if end != "WorkflowExecutionTerminated" or results != list(range(1, len(chain))):
                wrong(f"a round ended with {end}, after {results}")
        if affair.kind == "Site":
            pieces = sum(name_of(event) == "ActivityTaskCompleted" for event in last.events)
            if end != "WorkflowExecutionCompleted" or result != pieces:
                wrong(f"a site ended with {end}; it has done {result} pieces, completed are {pieces}")
        if affair.kind == "Account":
            completed = [
                attributes_of(event).meta.update_id
                for event in last.events
                if name_of(event) == "WorkflowExecutionUpdateCompleted"
            ]
            if end != "WorkflowExecutionCompleted" or result != completed:
                wrong(f"an account ended with {end}; it has booked {result}, completed are {completed}")
    return found
