"""The workflows that tests/cli and tests/ui look at."""

from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

# Sandboxed as by default, but modules are not imported anew for each run.
RUNNER = SandboxedWorkflowRunner(SandboxRestrictions.default.with_passthrough_all_modules())
# No run here needs as long.
LONG = timedelta(hours=1)


@activity.defn(name="Greet")
async def greet(name: str) -> str:
    return f"Hello, {name}!"


@activity.defn(name="Approve")
async def approve() -> str:
    """Somebody outside says how it ends."""
    activity.raise_complete_async()


@activity.defn(name="Stumble")
async def stumble() -> None:
    activity.heartbeat("half the way")
    raise ApplicationError("not yet", type="Early")


@workflow.defn(name="Greeting")
class Greeting:
    """Calls an activity and ends."""

    @workflow.run
    async def run(self, name: str) -> str:
        return await workflow.execute_activity(greet, name, start_to_close_timeout=LONG)


@workflow.defn(name="Register")
class Register:
    """Keeps numbers until it is told to finish."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.finished = False

    @workflow.run
    async def run(self) -> list[int]:
        workflow.set_current_details("waits for numbers")
        await workflow.wait_condition(lambda: self.finished)
        return self.numbers

    @workflow.signal(description="one number more")
    def put(self, number: int) -> None:
        self.numbers.append(number)

    @workflow.signal
    def finish(self) -> None:
        self.finished = True

    @workflow.query(description="the numbers in their order")
    def values(self) -> list[int]:
        return self.numbers

    @workflow.update(description="one number more; answers their sum")
    def add(self, number: int) -> int:
        self.numbers.append(number)
        return sum(self.numbers)

    @add.validator
    def check(self, number: int) -> None:
        if number < 0:
            raise ApplicationError("no negative numbers", type="Negative")


@workflow.defn(name="Family")
class Family:
    """Waits for its child, a Register."""

    @workflow.run
    async def run(self) -> list[int]:
        return await workflow.execute_child_workflow(Register.run, id=f"{workflow.info().workflow_id}-child")


@workflow.defn(name="Approval")
class Approval:
    """Its activity is completed from outside."""

    @workflow.run
    async def run(self) -> str:
        once = RetryPolicy(maximum_attempts=1)
        return await workflow.execute_activity(
            approve, activity_id="approval", start_to_close_timeout=LONG, retry_policy=once
        )


@workflow.defn(name="Stumbling")
class Stumbling:
    """Its activity fails, and is not tried again soon."""

    @workflow.run
    async def run(self) -> None:
        seldom = RetryPolicy(initial_interval=LONG, maximum_attempts=5)
        await workflow.execute_activity(
            stumble, activity_id="stumble", start_to_close_timeout=LONG, retry_policy=seldom
        )


@workflow.defn(name="Broken")
class Broken:
    """Fails."""

    @workflow.run
    async def run(self) -> None:
        raise ApplicationError("out of paper", "tray 2", type="Empty", non_retryable=True)


@workflow.defn(name="Relay")
class Relay:
    """Goes on as another run until nothing is left."""

    @workflow.run
    async def run(self, left: int) -> str:
        if left:
            workflow.continue_as_new(left - 1)
        return "done"


WORKFLOWS = [Greeting, Register, Family, Approval, Stumbling, Broken, Relay]
ACTIVITIES = [greet, approve, stumble]


def worker(client: Client, queue: str) -> Worker:
    return Worker(
        client, task_queue=queue, workflows=WORKFLOWS, activities=ACTIVITIES, workflow_runner=RUNNER
    )
