"""Sites, whose runs and activities an operator pauses and unpauses; what was acknowledged of it stays so."""

import random
import uuid
from typing import TYPE_CHECKING, Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import PendingActivityState, WorkflowExecutionStatus
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import (
    DescribeWorkflowExecutionRequest,
    DescribeWorkflowExecutionResponse,
    PauseActivityRequest,
    PauseWorkflowExecutionRequest,
    UnpauseActivityRequest,
    UnpauseWorkflowExecutionRequest,
)

import patience
from clients import NAMESPACE
from logs import Call

if TYPE_CHECKING:
    from agents import Agents

# How often an operator holds up a site.
HOLDS = 4
# For how long, at most.
HOLD_S = 1.5
RUN_PAUSED = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_PAUSED
ACTIVITY_PAUSED = PendingActivityState.PENDING_ACTIVITY_STATE_PAUSED


class Operator:
    """Holds up one site, now its run, now an activity of it. `wrong` is what was not as it had been acknowledged."""

    def __init__(self, agents: "Agents", workflow_id: str, rng: random.Random) -> None:
        self.agents = agents
        self.service = agents.clients.client.workflow_service
        self.workflow_id = workflow_id
        self.rng = rng
        self.named = {"namespace": NAMESPACE, "identity": "an operator"}
        self.wrong: list[str] = []

    async def hold_up(self, pauses_runs: bool) -> list[str]:
        for _ in range(HOLDS):
            await patience.pass_s(self.rng.random())
            if pauses_runs and self.rng.random() < 0.6:
                await self.hold_run()
            else:
                await self.hold_activity()
        return self.wrong

    async def call(self, kind: str, call_id: str, call: Any) -> Call:
        template = Call(call_id, kind, self.workflow_id, 0, 0, "unknown")
        return await self.agents.call(template, lambda: call(**self.agents.clients.options), self.rng)

    async def described(self) -> DescribeWorkflowExecutionResponse:
        """By the service: the SDK's own call has no word for a run that is paused."""
        request = DescribeWorkflowExecutionRequest(
            namespace=NAMESPACE, execution=WorkflowExecution(workflow_id=self.workflow_id)
        )
        call = lambda: self.service.describe_workflow_execution(request, **self.agents.clients.options)
        return await self.agents.until_answered(call)

    async def hold_run(self) -> None:
        call_id = str(uuid.uuid4())
        request = PauseWorkflowExecutionRequest(
            **self.named, workflow_id=self.workflow_id, reason="wait", request_id=call_id
        )
        paused = await self.call("pause", call_id, lambda **o: self.service.pause_workflow_execution(request, **o))
        if paused.outcome != "acked":
            # While nodes of an older version are there.
            return
        await self.expect_run(paused, RUN_PAUSED)
        await patience.pass_s(self.rng.random() * HOLD_S)
        await self.expect_run(paused, RUN_PAUSED)
        call_id = str(uuid.uuid4())
        back = UnpauseWorkflowExecutionRequest(
            **self.named, workflow_id=self.workflow_id, reason="go on", request_id=call_id
        )
        unpaused = await self.call("unpause", call_id, lambda **o: self.service.unpause_workflow_execution(back, **o))
        await self.expect_run(unpaused, WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING)

    async def expect_run(self, call: Call, status: "WorkflowExecutionStatus.ValueType") -> None:
        found = (await self.described()).workflow_execution_info.status
        if found != status:
            self.wrong.append(f"{self.workflow_id} has status {found} after {call.kind} {call.id} was {call.outcome}")

    async def hold_activity(self) -> None:
        pending = (await self.described()).pending_activities
        if not pending:
            return
        call_id, activity_id = str(uuid.uuid4()), pending[0].activity_id
        named = {**self.named, "execution": WorkflowExecution(workflow_id=self.workflow_id), "id": activity_id}
        request = PauseActivityRequest(**named, reason="wait")
        paused = await self.call("pause activity", call_id, lambda **o: self.service.pause_activity(request, **o))
        if paused.outcome != "acked":
            # It is done by now.
            return
        before = await self.expect_activity(paused, activity_id)
        await patience.pass_s(self.rng.random() * HOLD_S)
        after = await self.expect_activity(paused, activity_id)
        stands_still = before is not None and before.state == ACTIVITY_PAUSED
        if stands_still and (after is None or after.attempt != before.attempt):
            what = "has gone on" if after is None else f"was at attempt {before.attempt} and is at {after.attempt}"
            self.wrong.append(f"activity {activity_id} of {self.workflow_id} {what} while it was paused")
        back = UnpauseActivityRequest(**named)
        await self.call("unpause activity", str(uuid.uuid4()), lambda **o: self.service.unpause_activity(back, **o))

    async def expect_activity(self, call: Call, activity_id: str) -> PendingActivityInfo | None:
        """As it is described, while it is there: an attempt that a worker had may come to its end."""
        pending = (await self.described()).pending_activities
        found = next((activity for activity in pending if activity.activity_id == activity_id), None)
        if found is not None and not found.paused:
            self.wrong.append(f"activity {activity_id} of {self.workflow_id} is not paused after {call.id} was acked")
        return found
