"""Workflows that do what their plan says, for the cases about the life of a run."""

import asyncio
from dataclasses import dataclass
from typing import Any

from temporalio import workflow
from temporalio.client import WorkflowExecutionStatus
from temporalio.exceptions import (
    ApplicationError,
)

from gate import wait_at_gate
from world import World


@dataclass
class Plan:
    """What a run does: waits, and how it ends."""

    end: str = "return"
    value: Any = None


@workflow.defn
class Act:
    """Ends as its plan says: return, fail, or wait (for the signal proceed)."""

    def __init__(self) -> None:
        self.proceeding = False

    @workflow.run
    async def run(self, plan: Plan) -> Any:
        if plan.end == "wait":
            await workflow.wait_condition(lambda: self.proceeding)
        if plan.end == "tidy":
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                await asyncio.shield(workflow.sleep(0.2))
                return "tidied up"
        if plan.end == "fail":
            raise ApplicationError("as planned", plan.value, type="Planned") from ValueError("the root")
        return plan.value

    @workflow.signal
    def proceed(self) -> None:
        self.proceeding = True


@workflow.defn
class Stand:
    """Stands at a gate in its first task."""

    @workflow.run
    async def run(self) -> str:
        await wait_at_gate()
        await asyncio.sleep(3600)
        return "never"

    @workflow.signal
    def poke(self) -> None:
        pass


async def status(world: World, handle) -> WorkflowExecutionStatus | None:
    return (await world.client.get_workflow_handle(handle.id, run_id=handle.result_run_id).describe()).status
