"""What Everlog refuses for now, and how: named, at once, and without a trace. Not for a reference server."""

from temporalio.api.workflowservice.v1 import PauseActivityExecutionRequest, StartActivityExecutionRequest
from temporalio.service import RPCStatusCode

import expect
from case import case
from world import NAMESPACE, World


@case(everlog_only=True)
async def activities_without_a_workflow(world: World) -> None:
    service = world.client.workflow_service
    start = StartActivityExecutionRequest(namespace=NAMESPACE, activity_id="a")
    await expect.refused(RPCStatusCode.UNIMPLEMENTED, service.start_activity_execution(start))
    pause = PauseActivityExecutionRequest(namespace=NAMESPACE, activity_id="a")
    await expect.refused(RPCStatusCode.UNIMPLEMENTED, service.pause_activity_execution(pause))
