"""The work that goes on while the server is killed: workflows, their activities, and what must come out."""

import asyncio
import dataclasses
import random
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

from history_rules import Violation, closing_of
from logs import Run, attributes_of, json_of, name_of, signal_id_of

START_TO_CLOSE = timedelta(seconds=10)
RETRY = RetryPolicy(initial_interval=timedelta(milliseconds=100), maximum_interval=timedelta(seconds=1))
TWICE = RetryPolicy(initial_interval=timedelta(milliseconds=50), maximum_attempts=2)
# What an activity that always fails counts in the total.
DOOMED_VALUE = -1


@dataclass
class Step:
    """compute, flaky, slow, doomed: an activity; timer: ms; signals: waits for so many, a while; renew."""

    kind: str
    value: int = 0


@dataclass
class Errand:
    """What a workflow has to do, and what it brings along from the run before."""

    number: int
    steps: list[Step]
    next_step: int = 0
    total: int = 0
    seen: list[str] = field(default_factory=list)
    finished: bool = False

    def is_renewed(self) -> bool:
        return any(step.kind == "renew" for step in self.steps)


def errand_of(number: int, rng: random.Random) -> Errand:
    steps = []
    for _ in range(rng.randint(2, 3)):
        kind = rng.choices(["compute", "flaky", "slow", "doomed"], [6, 2, 2, 1])[0]
        steps.append(Step(kind, rng.randint(1, 99)))
        steps.append(Step("timer", rng.choice([1, 50, 300, 1000, 2500])))
        steps.append(Step("signals", rng.randint(1, 3)))
    if number % 5 == 0:
        steps.insert(rng.randint(2, len(steps)), Step("renew"))
    return Errand(number, steps)


def expected_total(errand: Errand) -> int:
    values = {
        "compute": lambda v: v * v,
        "flaky": lambda v: 3 * v,
        "slow": lambda v: v + 1,
        "doomed": lambda _: DOOMED_VALUE,
    }
    return sum(values[step.kind](step.value) for step in errand.steps if step.kind in values)


@workflow.defn
class RunErrand:
    """Does the steps, then waits to be finished; answers its total and the signals it has seen, in order."""

    @workflow.init
    def __init__(self, errand: Errand) -> None:
        self.errand = errand
        self.arrived = 0

    @workflow.run
    async def run(self, errand: Errand) -> dict[str, Any]:
        while self.errand.next_step < len(self.errand.steps):
            step = self.errand.steps[self.errand.next_step]
            self.errand.next_step += 1
            if step.kind == "timer":
                await asyncio.sleep(step.value / 1000)
            elif step.kind == "signals":
                await self.wait_for_signals(step.value)
            elif step.kind == "renew":
                workflow.continue_as_new(self.errand)
            else:
                self.errand.total += await self.call(step)
        await workflow.wait_condition(lambda: self.errand.finished)
        return {"total": self.errand.total, "seen": self.errand.seen}

    async def wait_for_signals(self, count: int) -> None:
        enough = self.arrived + count
        try:
            await workflow.wait_condition(lambda: self.arrived >= enough, timeout=timedelta(seconds=1))
        except TimeoutError:
            pass

    async def call(self, step: Step) -> int:
        try:
            answer = await workflow.execute_activity(
                step.kind,
                step.value,
                start_to_close_timeout=START_TO_CLOSE,
                heartbeat_timeout=timedelta(seconds=8) if step.kind == "slow" else None,
                retry_policy=TWICE if step.kind == "doomed" else RETRY,
            )
        except ActivityError:
            if step.kind != "doomed":
                raise
            return DOOMED_VALUE
        return answer["value"]

    @workflow.signal
    def give(self, signal: dict[str, Any]) -> None:
        self.arrived += 1
        self.errand.seen.append(signal["id"])
        if signal.get("finish"):
            self.errand.finished = True

    @workflow.query
    def seen(self) -> list[str]:
        return self.errand.seen


def answer_of(value: int) -> dict[str, Any]:
    """A result that is like no other, so that a history shows which attempt it is of."""
    return {"value": value, "attempt": activity.info().attempt, "nonce": uuid.uuid4().hex}


@activity.defn
async def compute(value: int) -> dict[str, Any]:
    return answer_of(value * value)


@activity.defn
async def flaky(value: int) -> dict[str, Any]:
    if activity.info().attempt == 1:
        raise ApplicationError(f"not at first {uuid.uuid4().hex}")
    return answer_of(3 * value)


@activity.defn
async def slow(value: int) -> dict[str, Any]:
    for beat in range(5):
        activity.heartbeat(beat)
        await asyncio.sleep(0.05 + value / 1000)
    return answer_of(value + 1)


@activity.defn
async def doomed(value: int) -> dict[str, Any]:
    raise ApplicationError(f"never {uuid.uuid4().hex}")


ACTIVITIES = [compute, flaky, slow, doomed]


def wrong_results(errands: Iterable[Errand], chains: dict[int, list[Run]]) -> list[Violation]:
    """Errands, by their number, whose chain of runs did not end with the right result."""
    found = []
    for errand in errands:
        runs = chains.get(errand.number, [])
        last = runs[-1] if runs else Run("", "", [])

        def wrong(what: str, last: Run = last) -> None:
            found.append(Violation("result", last.workflow_id, last.run_id, len(last.events), what))

        if not last.events or name_of(last.events[-1]) != "WorkflowExecutionCompleted":
            wrong(
                f"errand {errand.number} ended with {name_of(last.events[-1]) if last.events else 'no run'}"
            )
            continue
        recorded = [
            signal_id_of(attributes_of(event).input)
            for run in runs
            for event in run.events
            if name_of(event) == "WorkflowExecutionSignaled"
        ]
        result = json_of(closing_of(last).result)
        if result["total"] != expected_total(errand):
            wrong(f"the total is {result['total']}, not {expected_total(errand)}")
        if result["seen"] != recorded:
            wrong(
                f"it saw {len(result['seen'])} signals, recorded are {len(recorded)}, or their order differs"
            )
        if errand.is_renewed() != (len(runs) == 2):
            wrong(f"there are {len(runs)} runs")
    return found


def unplanned(errand: Errand) -> Errand:
    """A copy that a workflow may change."""
    return dataclasses.replace(errand, steps=list(errand.steps), seen=[])
