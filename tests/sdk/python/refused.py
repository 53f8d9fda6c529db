"""What Everlog refuses for now, and how: named, at once, and without a trace. Not for a reference server."""


from temporalio import workflow
from temporalio.client import Schedule, ScheduleActionStartWorkflow, ScheduleSpec
from temporalio.service import RPCStatusCode

import expect
from case import case
from world import World


@workflow.defn
class Idle:
    """Waits until it is told to stop."""

    def __init__(self) -> None:
        self.stopped = False

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: self.stopped)

    @workflow.signal
    def stop(self) -> None:
        self.stopped = True


@case(everlog_only=True)
async def schedules(world: World) -> None:
    action = ScheduleActionStartWorkflow(Idle.run, id=world.id(), task_queue=world.queue)
    creation = world.client.create_schedule(
        world.id("schedule"), Schedule(action=action, spec=ScheduleSpec())
    )
    await expect.refused(RPCStatusCode.UNIMPLEMENTED, creation)
