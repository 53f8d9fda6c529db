"""Many runs at once: lists, counts, typed search attributes, batches. Those of a Temporal server come late; Everlog's are exact."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from datetime import datetime, timezone
from typing import Any

from temporalio import workflow
from temporalio.api.batch.v1 import BatchOperationSignal, BatchOperationTermination
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import BatchOperationState, BatchOperationType, IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.api.workflowservice.v1 import (
    DescribeBatchOperationRequest,
    ListBatchOperationsRequest,
    ListClosedWorkflowExecutionsRequest,
    ListOpenWorkflowExecutionsRequest,
    ListWorkflowExecutionsRequest,
    ScanWorkflowExecutionsRequest,
    StartBatchOperationRequest,
    StopBatchOperationRequest,
)
from temporalio.client import WorkflowExecutionStatus, WorkflowHandle
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError, RPCStatusCode

import expect
from case import case
from world import NAMESPACE, World

WORD = SearchAttributeKey.for_keyword("SdkTestKeyword")
NUMBER = SearchAttributeKey.for_int("SdkTestInt")
RATIO = SearchAttributeKey.for_float("SdkTestDouble")
YES = SearchAttributeKey.for_bool("SdkTestBool")
MOMENT = SearchAttributeKey.for_datetime("SdkTestDatetime")
WORDS = SearchAttributeKey.for_keyword_list("SdkTestKeywordList")
TEXT = SearchAttributeKey.for_text("SdkTestText")
# More than the pages that are asked for.
MANY = 25
RUNNING = BatchOperationState.BATCH_OPERATION_STATE_RUNNING


@workflow.defn(name="Collect")
class Collect:
    """Collects words until one is `end`; its search attribute says how many there are."""

    def __init__(self) -> None:
        self.words: list[str] = []

    @workflow.run
    async def run(self) -> list[str]:
        counted = 0
        while "end" not in self.words:
            await workflow.wait_condition(lambda: len(self.words) > counted)
            counted = len(self.words)
            workflow.upsert_search_attributes([NUMBER.value_set(counted)])
        return self.words

    @workflow.signal
    def add(self, word: str) -> None:
        self.words.append(word)

    @workflow.query
    def collected(self) -> list[str]:
        return self.words


def own(world: World) -> str:
    """What the runs of this case alone match."""
    return f"TaskQueue = '{world.queue}'"


async def lists(world: World, query: str, expected: list[str]) -> None:
    """A query finds these, in whatever order, and a count agrees."""

    async def found() -> list[str]:
        return sorted([each.id async for each in world.client.list_workflows(query)])

    async def count() -> int:
        return (await world.client.count_workflows(query)).count

    await world.settles(found, sorted(expected), query)
    await world.settles(count, len(expected), f"the count of {query}")


async def attributes_are_known(world: World) -> None:
    """A text too; a server may take a moment to know its name."""
    types = {TEXT.name: IndexedValueType.INDEXED_VALUE_TYPE_TEXT}
    request = AddSearchAttributesRequest(namespace=NAMESPACE, search_attributes=types)
    await world.client.operator_service.add_search_attributes(request)

    async def is_known() -> bool:
        given = TypedSearchAttributes([SearchAttributePair(TEXT, "x"), SearchAttributePair(WORDS, ["x"])])
        try:
            await world.start(Collect.run, search_attributes=given, task_queue=world.id("known"))
        except RPCError as error:
            if error.status != RPCStatusCode.INVALID_ARGUMENT:
                raise
            return False
        return True

    if world.reference:
        await expect.eventually(is_known, "search attributes")
    else:
        expect.that(await is_known(), "search attributes are known at once")


@case()
async def runs_are_listed_and_counted(world: World) -> None:
    handles = await asyncio.gather(*(world.start(Collect.run) for _ in range(MANY)))
    ids = [handle.id for handle in handles]
    await lists(world, own(world), ids)
    ended, terminated = handles[:3], handles[3:5]
    for handle in terminated:
        await handle.terminate()
    async with world.worker(Collect):
        for handle in ended:
            await handle.signal(Collect.add, "end")
            expect.equal(await handle.result(), ["end"], "the result")
    statuses = {"Running": MANY - 5, "Completed": 3, "Terminated": 2}

    async def groups() -> dict[str, int]:
        counted = await world.client.count_workflows(f"{own(world)} GROUP BY ExecutionStatus")
        expect.equal(sum(group.count for group in counted.groups), counted.count, "the sum of the groups")
        return {group.group_values[0]: group.count for group in counted.groups}

    await world.settles(groups, statuses, "counts by status")
    whole = [each async for each in world.client.list_workflows(own(world))]
    kinds = [each.status for each in whole]
    expect.equal(kinds[: MANY - 5], [WorkflowExecutionStatus.RUNNING] * (MANY - 5), "open runs come first")
    starts = [each.start_time for each in whole[: MANY - 5]]
    expect.equal(starts, sorted(starts, reverse=True), "the last started before the others")
    closes = [each.close_time for each in whole[MANY - 5 :]]
    expect.equal(closes, sorted(closes, reverse=True), "the last closed before the others")
    closed = whole[-1]
    expect.equal([closed.workflow_type, closed.task_queue, closed.namespace], ["Collect", world.queue, NAMESPACE], "a run")
    expect.that(closed.history_length > 2 and closed.execution_time, "what is known of a closed run", closed)
    for size in (1, 7, MANY, 1000):
        paged = [each.run_id async for each in world.client.list_workflows(own(world), page_size=size)]
        expect.equal(paged, [each.run_id for each in whole], f"in pages of {size}")
    few = [each.id async for each in world.client.list_workflows(own(world), page_size=2, limit=3)]
    expect.equal(few, [each.id for each in whole[:3]], "no more than three")
    await lists(world, f"{own(world)} AND ExecutionStatus = 'Completed'", [handle.id for handle in ended])
    await lists(world, f"{own(world)} AND CloseTime IS NULL", ids[5:])
    await lists(world, f"WorkflowId = '{ids[0]}' AND RunId = '{handles[0].result_run_id}'", [ids[0]])


@case()
async def pages_are_turned_by_hand_and_lead_to_histories(world: World) -> None:
    handles = [await world.start(Collect.run) for _ in range(4)]
    ids = sorted(handle.id for handle in handles)
    await lists(world, own(world), ids)
    iterator = world.client.list_workflows(own(world), page_size=3)
    pages = []
    while not pages or iterator.next_page_token:
        await iterator.fetch_next_page()
        pages.append([each.id for each in iterator.current_page])
    expect.equal([len(page) for page in pages], [3, 1], "the pages")
    expect.equal(sorted(sum(pages, [])), ids, "all of them")
    histories = [each async for each in world.client.list_workflows(own(world)).map_histories()]
    expect.equal(sorted(each.workflow_id for each in histories), ids, "their histories")
    expect.equal({len(each.events) for each in histories}, {2}, "as they stand")
    other = ListWorkflowExecutionsRequest(namespace=NAMESPACE, query=own(world), page_size=3)
    other.next_page_token = b"nonsense"
    refused = world.client.workflow_service.list_workflow_executions(other)
    error = await expect.fails(RPCError, refused)
    # SQLite's server answers UNKNOWN.
    wanted = [RPCStatusCode.INVALID_ARGUMENT] + [RPCStatusCode.UNKNOWN] * world.reference
    expect.that(error.status in wanted, "a token that is none", error)


@case()
async def typed_attributes_choose_runs(world: World) -> None:
    await attributes_are_known(world)
    moment = datetime(2026, 2, 3, 4, 5, 6, 789000, tzinfo=timezone.utc)
    tag = uuid.uuid4().hex
    given = {
        WORD: f"{tag} with 'quotes', blanks",
        NUMBER: -7,
        RATIO: 2.5,
        YES: True,
        MOMENT: moment,
        WORDS: [tag, "Two"],
        TEXT: f"The quick brown fox {tag}",
    }
    attributes = TypedSearchAttributes([SearchAttributePair(key, value) for key, value in given.items()])
    memo = {"note": [1, {"deep": True}]}
    full = await world.start(Collect.run, search_attributes=attributes, memo=memo)
    empty = await world.start(Collect.run)
    await lists(world, own(world), [full.id, empty.id])
    (found,) = [each async for each in world.client.list_workflows(f"{own(world)} AND SdkTestInt = -7")]
    expect.equal({key: found.typed_search_attributes.get(key) for key in given}, given, "as they were given")
    expect.equal(await found.memo(), memo, "the memo")
    rows = [
        (f"SdkTestKeyword = \"{tag} with 'quotes', blanks\"", [full.id]),
        (f"SdkTestKeyword STARTS_WITH '{tag[:8]}'", [full.id]),
        ("SdkTestInt < 0", [full.id]),
        ("SdkTestInt BETWEEN -7 AND -7", [full.id]),
        ("SdkTestInt IN (1, -7)", [full.id]),
        ("SdkTestInt > -7", []),
        ("SdkTestDouble = 2.5", [full.id]),
        ("SdkTestDouble >= 2", [full.id]),
        ("SdkTestBool = true", [full.id]),
        ("SdkTestBool = false", []),
        ("SdkTestDatetime = '2026-02-03T04:05:06.789Z'", [full.id]),
        ("SdkTestDatetime > '2026-02-03T05:05:06+01:00'", [full.id]),
        (f"SdkTestKeywordList = '{tag}'", [full.id]),
        ("SdkTestKeywordList IN ('One', 'Two')", [full.id]),
        ("SdkTestKeywordList = 'Three'", []),
        ("SdkTestText = 'FOX'", [full.id]),
        ("SdkTestText = 'slow foxes'", []),
        ("SdkTestInt IS NULL", [empty.id]),
        ("SdkTestKeyword IS NOT NULL", [full.id]),
        ("NOT SdkTestBool = false AND SdkTestInt = -7", [full.id]),
        ("SdkTestInt = -7 OR SdkTestInt IS NULL", [full.id, empty.id]),
    ]
    for query, expected in rows:
        await lists(world, f"{own(world)} AND ({query})", expected)


@case()
async def changed_attributes_are_found_anew(world: World) -> None:
    async with world.worker(Collect):
        handle = await world.start(Collect.run)
        for count in (1, 2):
            await handle.signal(Collect.add, f"word {count}")
            await world.until_event(handle, "UpsertWorkflowSearchAttributes", count)
            await lists(world, f"{own(world)} AND SdkTestInt = {count}", [handle.id])
            await lists(world, f"{own(world)} AND SdkTestInt = {count - 1}", [])
        await handle.signal(Collect.add, "end")
        await handle.result()
    await lists(world, f"{own(world)} AND SdkTestInt = 3 AND ExecutionStatus = 'Completed'", [handle.id])
    await lists(world, f"{own(world)} AND SdkTestInt = 2", [])


@case()
async def older_calls_list_too(world: World) -> None:
    open_run, closed_run = await world.start(Collect.run), await world.start(Collect.run)
    await closed_run.terminate()
    await lists(world, f"{own(world)} AND ExecutionStatus = 'Terminated'", [closed_run.id])
    service = world.client.workflow_service

    async def found(call: Callable[..., Awaitable[Any]], request: Any) -> list[str]:
        return [each.execution.workflow_id for each in (await call(request)).executions]

    scan = ScanWorkflowExecutionsRequest(namespace=NAMESPACE, query=own(world))
    expect.equal(await found(service.scan_workflow_executions, scan), [open_run.id, closed_run.id], "a scan")
    for handle, is_open in ((open_run, True), (closed_run, False)):
        for request, call, expected in (
            (ListOpenWorkflowExecutionsRequest, service.list_open_workflow_executions, is_open),
            (ListClosedWorkflowExecutionsRequest, service.list_closed_workflow_executions, not is_open),
        ):
            filled = request(namespace=NAMESPACE)
            filled.start_time_filter.latest_time.FromDatetime(datetime(2200, 1, 1))
            filled.execution_filter.workflow_id = handle.id
            expect.equal(await found(call, filled), [handle.id] * expected, request.__name__)


async def batch(world: World, request: StartBatchOperationRequest) -> str:
    """Starts a batch; its job. A Temporal server may not know yet that the one before has ended."""
    request.namespace, request.reason = NAMESPACE, "a case"
    request.job_id = world.id("job")

    async def started() -> bool:
        try:
            await world.client.workflow_service.start_batch_operation(request)
        except RPCError as error:
            if error.status != RPCStatusCode.RESOURCE_EXHAUSTED or not world.reference:
                raise
            return False
        return True

    await expect.eventually(started, "a batch begins")
    return request.job_id


async def ended(world: World, job: str) -> Any:
    """The description of a job that has ended."""
    request = DescribeBatchOperationRequest(namespace=NAMESPACE, job_id=job)

    async def look() -> Any:
        told = await world.client.workflow_service.describe_batch_operation(request)
        return told if told.state != RUNNING else None

    return await expect.eventually(look, "the batch ends")


async def collected(handle: WorkflowHandle[Any, Any]) -> list[str]:
    return await handle.query(Collect.collected)


@case()
async def batches_steer_the_runs_of_a_query(world: World) -> None:
    service = world.client.workflow_service
    async with world.worker(Collect):
        handles = [await world.start(Collect.run) for _ in range(5)]
        ids = [handle.id for handle in handles]
        await lists(world, own(world), ids)
        word = (await world.client.data_converter.encode(["from a batch"]))[0]
        signal = BatchOperationSignal(signal="add", identity=world.name)
        signal.input.payloads.append(word)
        request = StartBatchOperationRequest(visibility_query=own(world), signal_operation=signal)
        job = await batch(world, request)
        told = await ended(world, job)
        counts = [told.total_operation_count, told.complete_operation_count, told.failure_operation_count]
        expect.equal(counts, [5, 5, 0], "what it has done")
        expect.equal(told.state, BatchOperationState.BATCH_OPERATION_STATE_COMPLETED, "its state")
        expect.equal(told.operation_type, BatchOperationType.BATCH_OPERATION_TYPE_SIGNAL, "its kind")
        expect.equal([told.job_id, told.reason], [job, "a case"], "what it is")
        expect.that(told.close_time.ToDatetime() >= told.start_time.ToDatetime(), "its times", told)
        for handle in handles:
            expect.equal(await collected(handle), ["from a batch"], "what each run was told, once")

        chosen = [WorkflowExecution(workflow_id=id) for id in ids[:2]]
        termination = BatchOperationTermination(identity=world.name)
        job = await batch(world, StartBatchOperationRequest(executions=chosen, termination_operation=termination))
        told = await ended(world, job)
        counts = [told.complete_operation_count, told.failure_operation_count]
        expect.equal(counts, [2, 0], "two that are named")
        statuses = [(await handle.describe()).status for handle in handles]
        expected = [WorkflowExecutionStatus.TERMINATED] * 2 + [WorkflowExecutionStatus.RUNNING] * 3
        expect.equal(statuses, expected, "these are terminated and no others")

        async def is_listed() -> bool:
            jobs = await service.list_batch_operations(ListBatchOperationsRequest(namespace=NAMESPACE, page_size=1000))
            return any(each.job_id == job and each.state == told.state for each in jobs.operation_info)

        await world.settles(is_listed, True, "the job in the list")
        again = StartBatchOperationRequest(namespace=NAMESPACE, job_id=job, reason="again", executions=chosen)
        again.termination_operation.identity = world.name
        await expect.refused(RPCStatusCode.ALREADY_EXISTS, service.start_batch_operation(again))
        stop = StopBatchOperationRequest(namespace=NAMESPACE, job_id=job, reason="late", identity=world.name)
        await expect.refused(RPCStatusCode.NOT_FOUND, service.stop_batch_operation(stop))


@case()
async def what_is_no_query_is_refused(world: World) -> None:
    service = world.client.workflow_service
    for query in ("Nobody = 1", "WorkflowType =", "WorkflowType = 'x' LIMIT 1", "WorkflowType LIKE 'x'"):
        for call in (
            lambda: world.client.list_workflows(query).fetch_next_page(),
            lambda: world.client.count_workflows(query),
        ):
            error = await expect.refused(RPCStatusCode.INVALID_ARGUMENT, call())
            expect.that(error.message.startswith("invalid query: "), query, error.message)
    bare = StartBatchOperationRequest(namespace=NAMESPACE, job_id=world.id("job"), reason="none")
    await expect.refused(RPCStatusCode.INVALID_ARGUMENT, service.start_batch_operation(bare))
    both = StartBatchOperationRequest(namespace=NAMESPACE, reason="none", visibility_query=own(world))
    both.termination_operation.identity = world.name
    await expect.refused(RPCStatusCode.INVALID_ARGUMENT, service.start_batch_operation(both))
    nobody = DescribeBatchOperationRequest(namespace=NAMESPACE, job_id=world.id("nobody"))
    await expect.refused(RPCStatusCode.NOT_FOUND, service.describe_batch_operation(nobody))
