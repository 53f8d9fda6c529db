"""Builds of workers: where each came in, as a run tells it, and the way back to before a bad one."""

import json

from temporalio import workflow
from temporalio.api.common.v1 import WorkerVersionCapabilities
from temporalio.api.deployment.v1 import WorkerDeploymentOptions
from temporalio.api.enums.v1 import TaskQueueKind, VersioningBehavior, WorkerVersioningMode
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    PollWorkflowTaskQueueRequest,
    RespondWorkflowTaskCompletedRequest,
)
from temporalio.client import (
    BuildIdOp,
    BuildIdOpAddNewCompatible,
    BuildIdOpAddNewDefault,
    BuildIdOpMergeSets,
    BuildIdOpPromoteBuildIdWithinSet,
    BuildIdOpPromoteSetByBuildId,
    TaskReachabilityType,
    WorkflowHandle,
)
from temporalio.common import (
    AutoUpgradeVersioningOverride,
    PinnedVersioningOverride,
    WorkerDeploymentVersion,
)
from temporalio.service import RPCError

import expect
from case import case
from reset import reset
from world import NAMESPACE, World


@workflow.defn(name="Ledger")
class Ledger:
    """Adds up what it is told, and begins anew when it is told to turn the page."""

    def __init__(self) -> None:
        self.sum = 0
        self.closed = self.turned = False

    @workflow.run
    async def run(self, carried: int = 0) -> int:
        self.sum += carried
        await workflow.wait_condition(lambda: self.closed or self.turned)
        if self.turned:
            workflow.continue_as_new(self.sum)
        return self.sum

    @workflow.signal
    def add(self, amount: int) -> None:
        self.sum += amount

    @workflow.signal
    def turn_the_page(self) -> None:
        self.turned = True

    @workflow.signal
    def close(self) -> None:
        self.closed = True

    @workflow.query
    def now(self) -> int:
        return self.sum


@workflow.defn(name="Ledger")
class Miscounting(Ledger):
    """The same with a mistake, in what it reads of the history too."""

    @workflow.run
    async def run(self, carried: int = 0) -> int:
        return await super().run(carried)

    @workflow.signal
    def add(self, amount: int) -> None:
        self.sum += 2 * amount


async def told(handle: WorkflowHandle):
    return (await handle.describe()).raw_description.workflow_execution_info


def points(info) -> list[tuple[str, str]]:
    return [(point.build_id, point.run_id) for point in info.auto_reset_points.points]


async def add(handle: WorkflowHandle, amount: int, expected: int) -> None:
    await handle.signal(Ledger.add, amount)
    expect.equal(await handle.query(Ledger.now), expected, "the sum")


@case()
async def each_is_told_once_and_the_run_that_follows_hears_of_it(world: World) -> None:
    async with world.worker(Ledger, build_id="one"):
        handle = await world.start(Ledger.run)
        await add(handle, 1, 1)
        await add(handle, 1, 2)
    async with world.worker(Ledger, build_id="two"):
        await add(handle, 1, 3)
        info = await told(handle)
        first = handle.result_run_id
        expect.equal(points(info), [("one", first), ("two", first)], "the points")
        build_ids = json.loads(info.search_attributes.indexed_fields["BuildIds"].data)
        expect.equal(build_ids, ["unversioned", "unversioned:one", "unversioned:two"], "the search attribute")
        expect.equal(info.most_recent_worker_version_stamp.build_id, "two", "the latest")
        await handle.signal(Ledger.turn_the_page)
        latest = world.client.get_workflow_handle(handle.id)

        async def follower() -> str:
            run_id = (await told(latest)).execution.run_id
            return "" if run_id == first else run_id

        run_id = await expect.eventually(follower, "another run")
        world.remember(handle.id, run_id)
        await add(latest, 1, 4)
        info = await told(latest)
        expect.equal(points(info), [("one", first), ("two", first)], "what the next run has")
        expires = [point.HasField("expire_time") for point in info.auto_reset_points.points]
        expect.equal(expires, [True, True], "the run before will be forgotten")
        await latest.signal(Ledger.close)
        expect.equal(await handle.result(), 4, "the result")


@case()
async def a_run_goes_back_to_before_a_bad_one(world: World) -> None:
    async with world.worker(Ledger, build_id="good"):
        handle = await world.start(Ledger.run)
        await add(handle, 1, 1)
    async with world.worker(Miscounting, build_id="bad"):
        await add(handle, 10, 22)
        await add(handle, 100, 222)
    info = await told(handle)
    bad = [point for point in info.auto_reset_points.points if point.build_id == "bad"][0]
    expect.that(bad.resettable, "there was nothing under way")
    async with world.worker(Ledger, build_id="mended"):
        again = await reset(world, handle, bad.first_workflow_task_completed_id, bad.run_id)
        expect.equal(await again.query(Ledger.now), 111, "counted rightly")
        await again.signal(Ledger.close)
        expect.equal(await again.result(), 111, "the result")
        builds = [build for build, _ in points(await told(again))]
        expect.equal(builds, ["good", "mended"], "its points")


async def complete_as(world: World, queue: str, options: WorkerDeploymentOptions) -> None:
    """A task of the queue is completed, with nothing to do, by a worker that keeps its runs with its version."""
    service = world.client.workflow_service
    kind = TaskQueueKind.TASK_QUEUE_KIND_NORMAL
    poll = PollWorkflowTaskQueueRequest(namespace=NAMESPACE, task_queue=TaskQueue(name=queue, kind=kind))
    task = await service.poll_workflow_task_queue(poll)
    completion = RespondWorkflowTaskCompletedRequest(
        namespace=NAMESPACE,
        task_token=task.task_token,
        versioning_behavior=VersioningBehavior.VERSIONING_BEHAVIOR_PINNED,
        deployment_options=options,
    )
    await service.respond_workflow_task_completed(completion)


@case()
async def what_is_said_of_versions_is_told(world: World) -> None:
    world.replays_with(Ledger)
    override = PinnedVersioningOverride(WorkerDeploymentVersion("shop", "one"))
    pinned = await world.start(Ledger.run, versioning_override=override)
    said = (await told(pinned)).versioning_info.versioning_override
    expect.equal(said.pinned.version.build_id, "one", "the version that it stays with")
    expect.equal(said.pinned_version, "shop.one", "the same in old words")

    queue = world.id("upgraded")
    override = AutoUpgradeVersioningOverride()
    handle = await world.start(Ledger.run, task_queue=queue, versioning_override=override)
    mode = WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED
    options = WorkerDeploymentOptions(deployment_name="shop", build_id="two", worker_versioning_mode=mode)
    await complete_as(world, queue, options)
    info = await told(handle)
    said = info.versioning_info
    expect.that(said.versioning_override.auto_upgrade, "its start goes along with what is current")
    kept = VersioningBehavior.VERSIONING_BEHAVIOR_PINNED
    expect.equal((said.behavior, said.version), (kept, "shop.two"), "what its worker says")
    expect.equal(info.worker_deployment_name, "shop", "its worker's deployment")
    expect.equal([build for build, _ in points(info)], ["two"], "its points")
    events = (await world.history(handle)).events
    started = events[0].workflow_execution_started_event_attributes
    expect.that(started.versioning_override.auto_upgrade, "so its history begins")
    completed = events[3].workflow_task_completed_event_attributes
    expect.equal(completed.versioning_behavior, kept, "the behavior in its history")
    expect.equal(completed.worker_deployment_name, "shop", "the deployment in its history")
    version = completed.deployment_version
    expect.equal((version.deployment_name, version.build_id), ("shop", "two"), "the version in its history")


# A Temporal server has these calls turned off, and such a worker gets the tasks of its build id there.
@case(everlog_only=True)
async def sets_of_build_ids_are_kept_and_route_nothing(world: World) -> None:
    client, queue = world.client, world.queue

    async def sets(max_sets: int | None = None) -> list[list[str]]:
        found = await client.get_worker_build_id_compatibility(queue, max_sets)
        return [list(each.build_ids) for each in found.version_sets]

    async def update(operation: BuildIdOp) -> None:
        await client.update_worker_build_id_compatibility(queue, operation)

    expect.equal(await sets(), [], "of a queue that has none")
    await update(BuildIdOpAddNewDefault("1.0"))
    await update(BuildIdOpAddNewCompatible("1.1", "1.0"))
    await update(BuildIdOpAddNewDefault("2.0"))
    for _ in range(2):
        expect.equal(await sets(), [["1.0", "1.1"], ["2.0"]], "sets, the default behind the others")
        await update(BuildIdOpAddNewDefault("2.0"))
    expect.equal(await sets(1), [["2.0"]], "the default")
    await update(BuildIdOpPromoteSetByBuildId("1.0"))
    await update(BuildIdOpPromoteBuildIdWithinSet("1.0"))
    expect.equal(await sets(), [["2.0"], ["1.1", "1.0"]], "another default, and a default of it")
    asked = await client.get_worker_task_reachability(["1.0", "2.0", ""], [queue])
    new = [TaskReachabilityType.NEW_WORKFLOWS]
    reached = {id: list(found.task_queue_reachability[queue]) for id, found in asked.build_id_reachability.items()}
    expect.equal(reached, {"1.0": new, "2.0": [], "": new}, "what new runs reach")
    await update(BuildIdOpMergeSets("1.0", "2.0"))
    expect.equal(await sets(), [["1.1", "2.0", "1.0"]], "one set of two")
    error = await expect.fails(RPCError, update(BuildIdOpPromoteSetByBuildId("3.0")))
    expect.equal((error.status.name, error.message), ("NOT_FOUND", "targeted version 3.0 not found"), "of none")
    error = await expect.fails(RPCError, update(BuildIdOpAddNewDefault("2.0")))
    expect.equal((error.status.name, error.message), ("INVALID_ARGUMENT", "version 2.0 already exists"), "twice")

    capabilities = WorkerVersionCapabilities(build_id="1.0", use_versioning=True)
    poll = PollWorkflowTaskQueueRequest(
        namespace=NAMESPACE, task_queue=TaskQueue(name=queue), worker_version_capabilities=capabilities
    )
    error = await expect.fails(RPCError, client.workflow_service.poll_workflow_task_queue(poll))
    expect.equal(
        (error.status.name, error.message),
        ("INVALID_ARGUMENT", "worker_version_capabilities.use_versioning is not supported yet."),
        "a worker that wants the tasks of its build id",
    )
