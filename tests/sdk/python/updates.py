"""Updates: executed, refused, polled, sent again, with a start, during activities, at the end of a run, over runs."""

import asyncio
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import (
    WithStartWorkflowOperation,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
    WorkflowUpdateStage,
)
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

import expect
from case import case
from gate import arrived, open_gate, stand_at_gate, wait_at_gate
from history import shape
from world import TASK_TIMEOUT, World


# Attempts after the first leave it to the server to see that they have failed.
BROKEN_TASK_TIMEOUT = timedelta(seconds=3)


@activity.defn
async def double(n: int) -> int:
    return 2 * n


@workflow.defn
class Account:
    """Keeps a balance until it is closed."""

    def __init__(self) -> None:
        self.balance = 0
        self.closed = ""

    @workflow.run
    async def run(self) -> int:
        await workflow.wait_condition(lambda: bool(self.closed))
        if self.closed == "over all":
            return self.balance
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self.balance

    @workflow.update
    async def add(self, n: int) -> int:
        self.balance += n
        return self.balance

    @add.validator
    def check(self, n: int) -> None:
        if n < 0:
            raise ApplicationError("nothing can be taken", type="Negative")

    @workflow.update
    async def add_twice(self, n: int) -> int:
        doubled = await workflow.execute_activity(
            double, n, start_to_close_timeout=timedelta(seconds=20)
        )
        self.balance += doubled
        return self.balance

    @workflow.update
    async def wait_for_end(self) -> str:
        await workflow.wait_condition(lambda: bool(self.closed))
        return "ended"

    @workflow.update
    async def never(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.update
    async def fail(self) -> None:
        raise ApplicationError("told to", type="Told")

    @workflow.update
    async def hold(self) -> None:
        await wait_at_gate()

    @workflow.signal
    def close(self, how: str) -> None:
        self.closed = how

    @workflow.query
    def so_far(self) -> int:
        return self.balance


@workflow.defn(name="Account")
class BrokenAccount:
    """The same with a bug."""

    @workflow.run
    async def run(self) -> int:
        await workflow.wait_condition(lambda: False)
        return 0

    @workflow.update
    async def add(self, n: int) -> int:
        raise RuntimeError("a bug")


@workflow.defn
class Ledger:
    """Continues as new when it is told to; counts over its runs."""

    @workflow.init
    def __init__(self, count: int = 0, laps: int = 0) -> None:
        self.turned = False
        self.count = count

    @workflow.run
    async def run(self, count: int = 0, laps: int = 0) -> int:
        await workflow.wait_condition(lambda: self.turned)
        await workflow.wait_condition(workflow.all_handlers_finished)
        if laps < 2:
            workflow.continue_as_new(args=[self.count, laps + 1])
        return self.count

    @workflow.update
    async def note(self) -> int:
        self.count += 1
        return self.count

    @workflow.update
    async def turn(self) -> None:
        self.turned = True


@case()
async def are_executed(world: World) -> None:
    async with world.worker(Account):
        account = await world.start(Account.run)
        expect.equal(await account.execute_update(Account.add, 5), 5, "the balance")
        expect.equal(await account.execute_update(Account.add, 7), 12, "the balance")
        expect.equal(await account.query(Account.so_far), 12, "a query sees it")
        error = await expect.fails(WorkflowUpdateFailedError, account.execute_update(Account.fail))
        expect.equal(error.cause.type, "Told", "the type of the failure")
        await account.signal(Account.close, "over all")
        expect.equal(await account.result(), 12, "the result")
    events = await world.shape(account)
    expect.equal(events.count("WorkflowExecutionUpdateAccepted"), 3, "accepted")
    expect.equal(events.count("WorkflowExecutionUpdateCompleted"), 3, "completed")


@case()
async def are_executed_without_a_cache(world: World) -> None:
    async with world.worker(Account, max_cached_workflows=0):
        account = await world.start(Account.run)
        for n in range(1, 6):
            await account.execute_update(Account.add, n)
        expect.equal(await account.execute_update(Account.add, 0), 15, "the balance")


@case()
async def are_refused_without_a_trace(world: World) -> None:
    async with world.worker(Account):
        account = await world.start(Account.run)
        await account.execute_update(Account.add, 5)
        before = await world.shape(account)
        for _ in range(5):
            error = await expect.fails(
                WorkflowUpdateFailedError, account.execute_update(Account.add, -1)
            )
            expect.equal(error.cause.type, "Negative", "the type of the refusal")
        expect.same_lines(await world.shape(account), before, "the history")
        expect.equal(await account.execute_update(Account.add, 1), 6, "the next one is taken")
        unknown = account.execute_update("no such update")
        await expect.fails(WorkflowUpdateFailedError, unknown)


@case()
async def have_handles_that_are_polled(world: World) -> None:
    async with world.worker(Account):
        account = await world.start(Account.run)
        handle = await account.start_update(
            Account.wait_for_end, wait_for_stage=WorkflowUpdateStage.ACCEPTED
        )
        later = account.get_update_handle_for(Account.wait_for_end, handle.id)
        waits = asyncio.create_task(later.result())
        await expect.fails(
            WorkflowUpdateRPCTimeoutOrCancelledError, handle.result(rpc_timeout=timedelta(milliseconds=300))
        )
        await account.signal(Account.close, "tidily")
        expect.equal(await waits, "ended", "the outcome")
        expect.equal(await handle.result(), "ended", "the outcome once more")
        await account.result()
        again = account.get_update_handle_for(Account.wait_for_end, handle.id)
        expect.equal(await again.result(), "ended", "the outcome of a closed run")
        unknown = account.get_update_handle("unknown")
        await expect.refused(RPCStatusCode.NOT_FOUND, unknown.result())


@case()
async def of_one_id_count_once(world: World) -> None:
    async with world.worker(Account):
        account = await world.start(Account.run)
        sent = [account.execute_update(Account.add, 3, id="once") for _ in range(10)]
        expect.equal(await asyncio.gather(*sent), [3] * 10, "every caller gets the outcome")
        expect.equal(await account.execute_update(Account.add, 100, id="once"), 3, "later too")
        await account.signal(Account.close, "over all")
        expect.equal(await account.result(), 3, "it was taken once")
        expect.equal(await account.execute_update(Account.add, 1, id="once"), 3, "after the end too")
        await expect.refused(RPCStatusCode.NOT_FOUND, account.execute_update(Account.add, 1, id="twice"))


@case()
async def come_with_a_start(world: World) -> None:
    def start(policy: WorkflowIDConflictPolicy, workflow_id: str) -> WithStartWorkflowOperation:
        return WithStartWorkflowOperation(
            Account.run, id=workflow_id, task_queue=world.queue, id_conflict_policy=policy
        )

    async with world.worker(Account):
        workflow_id = world.id()
        first = start(WorkflowIDConflictPolicy.USE_EXISTING, workflow_id)
        balance = await world.client.execute_update_with_start_workflow(
            Account.add, 4, start_workflow_operation=first
        )
        expect.equal(balance, 4, "the balance")
        handle = await first.workflow_handle()
        world.remember(handle.id, handle.result_run_id)
        second = start(WorkflowIDConflictPolicy.USE_EXISTING, workflow_id)
        balance = await world.client.execute_update_with_start_workflow(
            Account.add, 4, start_workflow_operation=second
        )
        expect.equal(balance, 8, "the run that is there was used")
        found = await second.workflow_handle()
        expect.equal(found.result_run_id, handle.result_run_id, "the run")
        clash = start(WorkflowIDConflictPolicy.FAIL, workflow_id)
        await expect.fails(
            WorkflowAlreadyStartedError,
            world.client.execute_update_with_start_workflow(
                Account.add, 4, start_workflow_operation=clash
            ),
        )
        await expect.fails(WorkflowAlreadyStartedError, clash.workflow_handle())
        refused = start(WorkflowIDConflictPolicy.USE_EXISTING, workflow_id)
        await expect.fails(
            WorkflowUpdateFailedError,
            world.client.execute_update_with_start_workflow(
                Account.add, -4, start_workflow_operation=refused
            ),
        )


@case()
async def run_activities(world: World) -> None:
    async with world.worker(Account, activities=[double]):
        account = await world.start(Account.run)
        sent = [account.execute_update(Account.add_twice, n) for n in range(1, 9)]
        balances = await asyncio.gather(*sent)
        expect.equal(max(balances), 2 * sum(range(1, 9)), "the balance")
        expect.equal(len(set(balances)), 8, "each has its own outcome")


@case()
async def wait_while_a_task_runs(world: World) -> None:
    async with world.worker(Account, activities=[stand_at_gate]):
        account = await world.start(Account.run, task_timeout=TASK_TIMEOUT)
        held = asyncio.create_task(account.execute_update(Account.hold))
        await arrived(account.id)
        added = asyncio.create_task(account.execute_update(Account.add, 9, id="meanwhile"))
        await world.until_admitted(account, "meanwhile")
        open_gate(account.id)
        await held
        expect.equal(await added, 9, "the balance")


@case()
async def end_with_their_run(world: World) -> None:
    async with world.worker(Account):
        account = await world.start(Account.run)
        handle = await account.start_update(
            Account.never, wait_for_stage=WorkflowUpdateStage.ACCEPTED
        )
        waits = asyncio.create_task(handle.result())
        await account.signal(Account.close, "over all")
        await account.result()
        error = await expect.fails(WorkflowUpdateFailedError, waits)
        expect.equal(error.cause.type, "AcceptedUpdateCompletedWorkflow", "the type of the failure")
        again = await expect.fails(WorkflowUpdateFailedError, handle.result())
        expect.equal(again.cause.type, "AcceptedUpdateCompletedWorkflow", "the type, later")
        await expect.refused(RPCStatusCode.NOT_FOUND, account.execute_update(Account.add, 1))


@case()
async def outlive_tasks_that_fail(world: World) -> None:
    async with world.worker(BrokenAccount):
        account = await world.start(Account.run, task_timeout=BROKEN_TASK_TIMEOUT)
        added = asyncio.create_task(account.execute_update(Account.add, 5, id="first"))

        async def probe() -> bool:
            # A slow worker may be too late to say that it has failed.
            return bool({"WorkflowTaskFailed", "WorkflowTaskTimedOut"} & set(await world.shape(account)))

        await expect.eventually(probe, "a task fails")
    async with world.worker(Account):
        expect.equal(await added, 5, "the balance, by mended code")


@case()
async def that_their_run_never_answered_begin_anew_with_a_start(world: World) -> None:
    def start(reuse: WorkflowIDReusePolicy) -> WithStartWorkflowOperation:
        return WithStartWorkflowOperation(
            Account.run,
            id=account.id,
            task_queue=world.queue,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            id_reuse_policy=reuse,
        )

    async with world.worker(Account):
        account = await world.start(Account.run)
        await account.start_update(Account.never, id="once", wait_for_stage=WorkflowUpdateStage.ACCEPTED)
        await account.signal(Account.close, "over all")
        await account.result()
        await expect.fails(
            WorkflowAlreadyStartedError,
            world.client.execute_update_with_start_workflow(
                Account.add,
                4,
                id="once",
                start_workflow_operation=start(WorkflowIDReusePolicy.REJECT_DUPLICATE),
            ),
        )
        anew = start(WorkflowIDReusePolicy.ALLOW_DUPLICATE)
        balance = await world.client.execute_update_with_start_workflow(
            Account.add, 4, id="once", start_workflow_operation=anew
        )
        expect.equal(balance, 4, "the balance")
        handle = await anew.workflow_handle()
        world.remember(handle.id, handle.result_run_id)
        expect.that(handle.result_run_id != account.result_run_id, "it is another run")


@case()
async def of_a_run_that_is_terminated_end(world: World) -> None:
    account = await world.start(Account.run)
    waits = asyncio.create_task(account.execute_update(Account.add, 1, id="waits"))
    await world.until_admitted(account, "waits")
    await account.terminate()
    error = await expect.fails(RPCError, waits)
    expect.equal(error.status, RPCStatusCode.NOT_FOUND, "the status")


@case()
async def go_on_over_continue_as_new(world: World) -> None:
    async with world.worker(Ledger):
        ledger = await world.start(Ledger.run)
        current = world.client.get_workflow_handle_for(Ledger.run, ledger.id)
        counts = [await current.execute_update(Ledger.note)]
        for _ in range(2):
            turned = asyncio.create_task(current.execute_update(Ledger.turn))
            counts.append(await current.execute_update(Ledger.note))
            await turned
            counts.append(await current.execute_update(Ledger.note))
        expect.equal(counts, sorted(counts), "they are counted in order")
        expect.equal(len(set(counts)), len(counts), "and each once")


@case()
async def wait_for_a_worker(world: World) -> None:
    account = await world.start(Account.run)
    update = asyncio.create_task(account.execute_update(Account.add, 1, id="first"))
    await world.until_admitted(account, "first")
    async with world.worker(Account):
        expect.equal(await update, 1, "the balance")
    # Its worker is gone: the next update goes to whoever comes.
    update = asyncio.create_task(account.execute_update(Account.add, 2, id="second"))
    await world.until_admitted(account, "second")
    async with world.worker(Account):
        expect.equal(await update, 3, "the balance")


@case()
async def of_many_callers_are_all_taken(world: World) -> None:
    async with world.worker(Account):
        account = await world.start(Account.run)

        async def add(n: int) -> None:
            for _ in range(20):
                await account.execute_update(Account.add, n)

        await asyncio.gather(*(add(n) for n in range(1, 8)))
        expect.equal(await account.query(Account.so_far), 20 * 28, "the balance")
        await account.signal(Account.close, "over all")
        await account.result()
    events = shape(await world.history(account))
    expect.equal(events.count("WorkflowExecutionUpdateCompleted"), 140, "completed")
