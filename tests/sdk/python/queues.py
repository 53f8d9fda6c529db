"""Task queues: the rate of one, what is told of it, whose turn it is, and a worker that is killed with runs in its cache."""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Awaitable
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.api.enums.v1 import RateLimitSource, TaskQueueType, WorkerStatus
from temporalio.api.taskqueue.v1 import RateLimit, TaskQueue, TaskQueueConfig
from temporalio.api.worker.v1 import WorkerHeartbeat
from temporalio.api.workflowservice.v1 import (
    CountWorkersRequest,
    DescribeTaskQueueRequest,
    DescribeTaskQueueResponse,
    DescribeWorkerRequest,
    ListWorkersRequest,
    RecordWorkerHeartbeatRequest,
    UpdateTaskQueueConfigRequest,
)
from temporalio.client import Client
from temporalio.common import Priority
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig
from temporalio.service import RPCError, RPCStatusCode

import expect
import sticky_worker
from case import case
from world import NAMESPACE, World

WORKFLOWS = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
ACTIVITIES = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY


@activity.defn
async def note(word: str) -> str:
    return word


@workflow.defn
class Batch:
    """That many activities at once, on a queue of their own or the workflow's; with these priorities in turn."""

    @workflow.run
    async def run(self, count: int, queue: str | None, priorities: list[int]) -> int:
        async def one(index: int) -> str:
            key = priorities[index % len(priorities)] if priorities else None
            return await workflow.execute_activity(
                note,
                f"{index}/{key}",
                task_queue=queue,
                priority=Priority(priority_key=key) if key else Priority.default,
                start_to_close_timeout=timedelta(seconds=30),
            )

        return len(await asyncio.gather(*(one(index) for index in range(count))))


async def described(world: World, kind: int, queue: str | None = None) -> DescribeTaskQueueResponse:
    request = DescribeTaskQueueRequest(
        namespace=NAMESPACE,
        task_queue=TaskQueue(name=queue or world.queue),
        task_queue_type=kind,
        report_stats=True,
        include_task_queue_status=True,
    )
    return await world.client.workflow_service.describe_task_queue(request)


async def backlog_of(world: World, kind: int, count: int, queue: str | None = None) -> DescribeTaskQueueResponse:
    """What is told of the queue once that many tasks wait."""

    async def probe() -> DescribeTaskQueueResponse | None:
        found = await described(world, kind, queue)
        return found if found.stats.approximate_backlog_count == count else None

    return await expect.eventually(probe, f"{count} tasks wait")


@case()
async def the_rate_of_a_queue_holds_its_activities_back(world: World) -> None:
    async with world.worker(
        Batch,
        activities=[note],
        max_task_queue_activities_per_second=5,
        disable_eager_activity_execution=True,
    ):
        begun = time.monotonic()
        expect.equal(await world.execute(Batch.run, 20, None, []), 20, "the result")
        # What a queue may hand out at once is the server's: a second's worth, and some more where it has parts.
        taken_s = time.monotonic() - begun
        expect.that(taken_s > 2.5, "20 activities at 5 a second", taken_s)
        found = await described(world, ACTIVITIES)
        rates = {poller.rate_per_second for poller in found.pollers}
        expect.equal(rates, {5.0}, "what its pollers say")
        expect.equal(found.task_queue_status.rate_per_second, 5.0, "what the queue says")


@case()
async def a_queue_tells_what_waits_and_who_polls(world: World) -> None:
    begun = time.monotonic()
    handles = [await world.start(Batch.run, 0, None, []) for _ in range(5)]
    found = await backlog_of(world, WORKFLOWS, 5)
    expect.equal(len(found.pollers), 0, "nobody polls")
    expect.that(found.stats.tasks_add_rate > 0, "tasks came", found.stats)
    expect.that(found.stats.tasks_dispatch_rate == 0, "and none went", found.stats)

    async def age() -> float:
        return (await described(world, WORKFLOWS)).stats.approximate_backlog_age.ToTimedelta().total_seconds()

    async def is_old() -> bool:
        return await age() > 0.05

    await expect.eventually(is_old, "the oldest grows old")
    age_s, waited_s = await age(), time.monotonic() - begun
    # The server may round it up.
    expect.that(age_s < waited_s + 1, "it is no older than it is", (age_s, waited_s))
    async with world.worker(Batch, activities=[note], identity="somebody"):
        for handle in handles:
            await handle.result()

        async def went() -> DescribeTaskQueueResponse | None:
            # A Temporal server tells for a few seconds what it has told before.
            told = await described(world, WORKFLOWS)
            return told if told.stats.tasks_dispatch_rate > 0 else None

        found = await expect.eventually(went, "tasks went")
        expect.equal({poller.identity for poller in found.pollers}, {"somebody"}, "who polls")
        seen, now = [poller.last_access_time.ToDatetime().timestamp() for poller in found.pollers], time.time()
        expect.that(all(now - 86_400 < at < now + 86_400 for at in seen), "when", seen)
        activities = await described(world, ACTIVITIES)
        expect.equal({poller.identity for poller in activities.pollers}, {"somebody"}, "who polls for activities")
    await backlog_of(world, WORKFLOWS, 0)


# A Temporal server hands out about as it was asked, unless its operator has turned something else on.
@case(everlog_only=True)
async def a_run_with_many_activities_keeps_no_other_waiting(world: World) -> None:
    queue = world.id("activities")
    order: list[str] = []

    @activity.defn(name="note")
    async def written(word: str) -> str:
        order.append(activity.info().workflow_id)
        return word

    async with world.worker(Batch):
        flood = await world.start(Batch.run, 1_000, queue, [])
        await backlog_of(world, ACTIVITIES, 1_000, queue)
        others = [await world.start(Batch.run, 2, queue, []) for _ in range(3)]
        await backlog_of(world, ACTIVITIES, 1_006, queue)
        async with world.worker(
            activities=[written],
            task_queue=queue,
            max_concurrent_activities=1,
            max_concurrent_activity_task_polls=1,
        ):
            await asyncio.gather(*(handle.result() for handle in others))
            await flood.terminate()
    last = max(at for at, workflow_id in enumerate(order) if workflow_id != flood.id)
    expect.that(last < 500, "most of the flood waits when the others are done", last)


@case(everlog_only=True)
async def the_urgent_goes_first(world: World) -> None:
    queue = world.id("activities")
    order: list[str] = []

    @activity.defn(name="note")
    async def written(word: str) -> str:
        order.append(word.split("/")[1])
        return word

    async with world.worker(Batch):
        handle = await world.start(Batch.run, 10, queue, [5, 4, 3, 2, 1])
        found = await backlog_of(world, ACTIVITIES, 10, queue)
        counts = {key: stats.approximate_backlog_count for key, stats in found.stats_by_priority_key.items()}
        expect.equal(counts, dict.fromkeys(range(1, 6), 2), "what waits, by priority")
        async with world.worker(
            activities=[written],
            task_queue=queue,
            max_concurrent_activities=1,
            max_concurrent_activity_task_polls=1,
        ):
            expect.equal(await handle.result(), 10, "the result")
    expect.equal(order, list("1122334455"), "the order")


async def configure(world: World, queue: str, **changes: Any) -> TaskQueueConfig:
    """Changes the configuration of a queue of activities, and waits until its home has it; what it is then."""
    service = world.client.workflow_service
    request = UpdateTaskQueueConfigRequest(
        namespace=NAMESPACE, identity="operator", task_queue=queue, task_queue_type=ACTIVITIES, **changes
    )
    changed = (await service.update_task_queue_config(request)).config
    asked = DescribeTaskQueueRequest(
        namespace=NAMESPACE, task_queue=TaskQueue(name=queue), task_queue_type=ACTIVITIES, report_config=True
    )
    expect.equal((await service.describe_task_queue(asked)).config, changed, "what is told of it")
    return changed


def rate(per_second: float | None, reason: str = "") -> UpdateTaskQueueConfigRequest.RateLimitUpdate:
    limit = None if per_second is None else RateLimit(requests_per_second=per_second)
    return UpdateTaskQueueConfigRequest.RateLimitUpdate(rate_limit=limit, reason=reason)


@case()
async def an_operators_rate_counts_before_that_of_workers(world: World) -> None:
    async with world.worker(
        Batch,
        activities=[note],
        max_task_queue_activities_per_second=1_000,
        disable_eager_activity_execution=True,
    ):
        stopped = await configure(world, world.queue, update_queue_rate_limit=rate(0, "maintenance"))
        limit = stopped.queue_rate_limit
        said = (limit.rate_limit.requests_per_second, limit.metadata.reason, limit.metadata.update_identity)
        expect.equal(said, (0, "maintenance", "operator"), "the limit")
        run = await world.start(Batch.run, 20, None, [])
        # What is there when a poll comes, and does not go.
        found = await backlog_of(world, ACTIVITIES, 20)
        effective = found.effective_rate_limit
        source = RateLimitSource.RATE_LIMIT_SOURCE_API
        expect.equal((effective.requests_per_second, effective.rate_limit_source), (0, source), "what counts")
        await configure(world, world.queue, update_queue_rate_limit=rate(5, "slowly"))
        begun = time.monotonic()
        expect.equal(await run.result(), 20, "the result")
        # As many as a queue may hand out at once, and the rest of them at 5 a second.
        taken_s = time.monotonic() - begun
        expect.that(taken_s > 2.5, "20 activities at 5 a second", taken_s)
        over = await configure(world, world.queue, update_queue_rate_limit=rate(None, "over"))
        expect.that(not over.queue_rate_limit.HasField("rate_limit"), "none is left", over)
        expect.equal(over.queue_rate_limit.metadata.reason, "over", "why")

        async def is_the_workers() -> bool:
            told = (await described(world, ACTIVITIES)).effective_rate_limit
            return told.rate_limit_source == RateLimitSource.RATE_LIMIT_SOURCE_WORKER

        await expect.eventually(is_the_workers, "that of the workers counts again")
        expect.equal(await world.execute(Batch.run, 20, None, []), 20, "the result")


@workflow.defn
class Tenant:
    """That many activities at once, for one who has this share of the queue."""

    @workflow.run
    async def run(self, count: int, queue: str, key: str, weight: float) -> None:
        def one() -> Awaitable[str]:
            return workflow.execute_activity(
                note,
                key,
                task_queue=queue,
                priority=Priority(fairness_key=key, fairness_weight=weight),
                start_to_close_timeout=timedelta(minutes=5),
            )

        await asyncio.gather(*(one() for _ in range(count)))


class Shares:
    """Tenants whose activities wait in one queue, and what a worker takes of each."""

    def __init__(self, world: World) -> None:
        self.world, self.queue, self.waiting = world, world.id("activities"), 0
        self.runs: list[Any] = []
        self.taken: list[str] = []

    async def wait(self, key: str, weight: float, count: int) -> None:
        self.runs.append(await self.world.start(Tenant.run, count, self.queue, key, weight))
        self.waiting += count

    async def next(self, count: int, **changes: Any) -> Counter[str]:
        """How many of each key are among the next ones."""
        await backlog_of(self.world, ACTIVITIES, self.waiting, self.queue)
        if changes:
            await configure(self.world, self.queue, **changes)
        begun = len(self.taken)

        @activity.defn(name="note")
        async def take(key: str) -> str:
            # Who has enough takes no more, and lets nothing go that it has.
            if len(self.taken) >= begun + count:
                await asyncio.Event().wait()
            self.taken.append(key)
            return key

        options = {"max_concurrent_activities": 1, "max_concurrent_activity_task_polls": 1}
        async with self.world.worker(
            activities=[take], task_queue=self.queue, graceful_shutdown_timeout=timedelta(0), **options
        ):

            async def has_enough() -> bool:
                return len(self.taken) >= begun + count

            await expect.eventually(has_enough, f"{count} of {self.waiting}")
        self.waiting -= count
        return Counter(self.taken[begun : begun + count])

    async def end(self) -> None:
        for run in self.runs:
            try:
                await run.terminate()
            except RPCError as error:
                # All that it waited for was taken.
                if error.status != RPCStatusCode.NOT_FOUND:
                    raise


# A Temporal server needs fairness turned on, and has no weights in a queue's configuration.
@case(everlog_only=True)
async def tenants_share_a_queue_by_their_weights(world: World) -> None:
    shares = Shares(world)
    async with world.worker(Tenant):
        # One run on one partition, and many on all of them.
        await shares.wait("heavy", 3, 200)
        for _ in range(8):
            await shares.wait("light", 1, 25)
        found = await shares.next(80)
        expect.that(abs(found["heavy"] - 60) <= 4, "three of four are the heavier one's", found)
        found = await shares.next(80, set_fairness_weight_overrides={"light": 27.0})
        expect.that(abs(found["heavy"] - 8) <= 3, "one of ten, where the other one is made heavier", found)
        found = await shares.next(40, unset_fairness_weight_overrides=["light"])
        expect.that(abs(found["heavy"] - 30) <= 3, "and as before, where it is not any more", found)
        await shares.end()


@case(everlog_only=True)
async def a_tenant_has_a_rate_of_its_own(world: World) -> None:
    shares = Shares(world)
    async with world.worker(Tenant):
        await shares.wait("slow", 1, 300)
        await shares.wait("fast", 1_000, 100)
        # Of the slow one a task at once, and no further one for a hundred seconds.
        found = await shares.next(90, update_fairness_key_rate_limit_default=rate(0.01, "each"))
        expect.that(found["slow"] <= 2 and found["fast"] >= 88, "who has no rate left keeps no other waiting", found)
        await shares.end()


@case(slow=True)
async def killed_with_runs_in_its_cache_others_answer_for_it(world: World) -> None:
    # A Temporal server waits for the sticky queue's timeout, each time. Whoever did so here would wait for hours.
    sticky_s = 10 if world.reference else 10_000
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
    process = await asyncio.create_subprocess_exec(
        sys.executable, sticky_worker.__file__, world.address, world.queue, str(sticky_s), **pipes
    )
    tally = sticky_worker.Tally
    try:
        await process.stdout.readline()
        handles = [await world.start(tally.run) for _ in range(2)]
        for handle in handles:
            await handle.signal(tally.add)
            expect.equal(await handle.query(tally.counted), 1, "it has the run")
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
    async with world.worker(tally):
        expect.equal(await handles[0].query(tally.counted), 1, "the answer of another")
        await handles[1].signal(tally.add)
        expect.equal(await handles[1].result(), 2, "the result")
    await handles[0].signal(tally.add)


@case()
async def workers_tell_of_themselves(world: World) -> None:
    address = world.workers_client.service_client.config.target_host
    telemetry = TelemetryConfig(logging=LoggingConfig(filter="off"))
    runtime = Runtime(telemetry=telemetry, worker_heartbeat_interval=timedelta(seconds=1))
    telling = await Client.connect(address, namespace=NAMESPACE, runtime=runtime)

    async def said() -> list[WorkerHeartbeat]:
        request = ListWorkersRequest(namespace=NAMESPACE, query=f"TaskQueue = '{world.queue}'")
        listed = await world.client.workflow_service.list_workers(request)
        return [info.worker_heartbeat for info in listed.workers_info]

    async with world.worker(Batch, activities=[note], client=telling):
        [first] = await expect.eventually(said, "the worker has told of itself")
        expect.equal((first.sdk_name, first.task_queue), ("temporal-python", world.queue), "who it is")
        expect.equal(first.status, WorkerStatus.WORKER_STATUS_RUNNING, "how it is")
        await world.execute(Batch.run, 3, None, [])

        async def tells_of_them() -> bool:
            return (await said())[0].activity_task_slots_info.total_processed_tasks == 3

        await expect.eventually(tells_of_them, "it has told of its activities")

    async def shuts_down() -> bool:
        return (await said())[0].status == WorkerStatus.WORKER_STATUS_SHUTTING_DOWN

    await expect.eventually(shuts_down, "it has told of its end")
    keys = [worker.worker_instance_key for worker in await said()]
    expect.equal(keys, [first.worker_instance_key], "it is still the same")


# A Temporal server counts none, and gives no pages.
@case(everlog_only=True)
async def workers_that_tell_of_themselves_are_listed(world: World) -> None:
    service = world.client.workflow_service
    keys = [world.id("worker") for _ in range(3)]
    beats = [
        WorkerHeartbeat(
            worker_instance_key=key,
            worker_identity=f"identity-{number}",
            task_queue=world.queue,
            status=WorkerStatus.WORKER_STATUS_RUNNING,
        )
        for number, key in enumerate(keys)
    ]
    await service.record_worker_heartbeat(
        RecordWorkerHeartbeatRequest(namespace=NAMESPACE, worker_heartbeat=beats)
    )
    found = await service.describe_worker(
        DescribeWorkerRequest(namespace=NAMESPACE, worker_instance_key=keys[1])
    )
    expect.equal(found.worker_info.worker_heartbeat, beats[1], "one of them")
    listed: list[str] = []
    token = b""
    while True:
        page = await service.list_workers(
            ListWorkersRequest(
                namespace=NAMESPACE, page_size=2, next_page_token=token, query=f"TaskQueue = '{world.queue}'"
            )
        )
        listed += [info.worker_heartbeat.worker_instance_key for info in page.workers_info]
        token = page.next_page_token
        if not token:
            break
    expect.equal(sorted(listed), sorted(keys), "all of them, page by page")
    counted = await service.count_workers(
        CountWorkersRequest(namespace=NAMESPACE, query=f"TaskQueue = '{world.queue}'")
    )
    expect.equal(counted.count, len(keys), "as many as are listed")
