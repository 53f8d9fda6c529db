"""What Everlog refuses for now, and how: named, at once, and without a trace. Not for a reference server."""

from temporalio.api.workflowservice.v1 import PauseActivityRequest
from temporalio.service import RPCStatusCode

import expect
from case import case
from world import NAMESPACE, World


@case(everlog_only=True)
async def pauses_of_activities(world: World) -> None:
    pause = world.client.workflow_service.pause_activity(PauseActivityRequest(namespace=NAMESPACE))
    await expect.refused(RPCStatusCode.UNIMPLEMENTED, pause)
