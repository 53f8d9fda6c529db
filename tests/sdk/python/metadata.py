"""What runs carry along: memos, search attributes, summaries, dynamic handlers, an eager start."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RawValue, SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.converter import DataConverter
from temporalio.service import RPCStatusCode

import expect
from case import case
from history import event_named, lines, shape
from world import NAMESPACE, TASK_TIMEOUT, World


WORD = SearchAttributeKey.for_keyword("SdkTestKeyword")


NUMBER = SearchAttributeKey.for_int("SdkTestInt")


RATIO = SearchAttributeKey.for_float("SdkTestDouble")


YES = SearchAttributeKey.for_bool("SdkTestBool")


MOMENT = SearchAttributeKey.for_datetime("SdkTestDatetime")


WORDS = SearchAttributeKey.for_keyword_list("SdkTestKeywordList")


@activity.defn
async def echo(value: Any) -> Any:
    return value


@workflow.defn
class Memorise:
    """Changes its memo as it goes."""

    @workflow.run
    async def run(self) -> dict[str, Any]:
        at_first = dict(workflow.memo())
        workflow.upsert_memo({"added": [1, 2], "changed": "after", "dropped": None})
        return {"at_first": at_first, "now": dict(workflow.memo())}


@workflow.defn
class Describe:
    """Changes its search attributes as it goes."""

    def __init__(self) -> None:
        self.proceeding = False

    @workflow.run
    async def run(self) -> list[Any]:
        attributes = workflow.info().typed_search_attributes
        at_first = [attributes.get(WORD), attributes.get(NUMBER)]
        workflow.upsert_search_attributes(
            [
                WORD.value_set("second"),
                NUMBER.value_unset(),
                RATIO.value_set(0.5),
                YES.value_set(True),
                MOMENT.value_set(datetime(2020, 2, 3, 4, 5, 6, tzinfo=timezone.utc)),
                WORDS.value_set(["a", "b"]),
            ]
        )
        await workflow.wait_condition(lambda: self.proceeding)
        attributes = workflow.info().typed_search_attributes
        return [at_first, [attributes.get(WORD), attributes.get(NUMBER), attributes.get(RATIO)]]

    @workflow.signal
    def proceed(self) -> None:
        self.proceeding = True


@workflow.defn
class Summarised:
    """Gives summaries to what it does."""

    @workflow.run
    async def run(self) -> None:
        workflow.set_current_details("about to sleep")
        await workflow.sleep(timedelta(milliseconds=50), summary="a nap")
        await workflow.execute_activity(
            echo, 1, start_to_close_timeout=timedelta(seconds=10), summary="an echo"
        )
        workflow.set_current_details("done")

    @workflow.signal(description="does nothing")
    def hint(self) -> None: ...


@workflow.defn(dynamic=True)
class Anything:
    """Answers to every workflow type, signal and query."""

    def __init__(self) -> None:
        self.signals: list[Any] = []

    @workflow.run
    async def run(self, args: Sequence[RawValue]) -> list[Any]:
        await workflow.wait_condition(lambda: len(self.signals) >= 2)
        first = workflow.payload_converter().from_payload(args[0].payload, str)
        answer = await workflow.execute_activity(
            "nobody-defined-this", args=[first, 2], start_to_close_timeout=timedelta(seconds=10)
        )
        return [workflow.info().workflow_type, first, self.signals, answer]

    @workflow.signal(dynamic=True)
    def hear(self, name: str, args: Sequence[RawValue]) -> None:
        self.signals.append([name, *(workflow.payload_converter().from_payload(a.payload) for a in args)])

    @workflow.query(dynamic=True)
    def ask(self, name: str, args: Sequence[RawValue]) -> str:
        return f"{name} of {len(args)}"


@activity.defn(dynamic=True)
async def do_anything(args: Sequence[RawValue]) -> list[Any]:
    return [
        activity.info().activity_type,
        *(activity.payload_converter().from_payload(a.payload) for a in args),
    ]


@workflow.defn
class Trivial:
    @workflow.run
    async def run(self, value: Any) -> Any:
        return await workflow.execute_activity(echo, value, start_to_close_timeout=timedelta(seconds=10))


@case()
async def a_memo_is_kept_and_changed(world: World) -> None:
    async with world.worker(Memorise):
        memo = {"changed": "before", "dropped": 1, "kept": {"deep": True}}
        handle = await world.start(Memorise.run, memo=memo)
        expect.equal(await (await handle.describe()).memo(), memo, "at the start")
        answer = await handle.result()
    now = {"added": [1, 2], "changed": "after", "kept": {"deep": True}}
    expect.equal(answer, {"at_first": memo, "now": now}, "what the workflow saw")
    expect.equal(await (await handle.describe()).memo(), now, "at the end")
    expect.that("WorkflowPropertiesModified" in await world.shape(handle), "the event")


@case()
async def search_attributes_are_kept_and_changed(world: World) -> None:
    at_first = TypedSearchAttributes([SearchAttributePair(WORD, "first"), SearchAttributePair(NUMBER, 41)])
    async with world.worker(Describe):
        handle = await world.start(Describe.run, search_attributes=at_first)
        expect.equal((await handle.describe()).typed_search_attributes.get(NUMBER), 41, "at the start")
        await world.until_event(handle, "UpsertWorkflowSearchAttributes")
        found = (await handle.describe()).typed_search_attributes
        moment = datetime(2020, 2, 3, 4, 5, 6, tzinfo=timezone.utc)
        expected = {WORD: "second", NUMBER: None, RATIO: 0.5, YES: True, MOMENT: moment, WORDS: ["a", "b"]}
        expect.equal({key: found.get(key) for key in expected}, expected, "after the change")
    async with world.worker(Describe):
        await handle.signal(Describe.proceed)
        expect.equal(await handle.result(), [["first", 41], ["second", None, 0.5]], "what the workflow saw")
    started = event_named(await world.history(handle), "WorkflowExecutionStarted")
    payload = started.workflow_execution_started_event_attributes.search_attributes.indexed_fields[
        "SdkTestKeyword"
    ]
    expect.equal(payload.metadata["type"], b"Keyword", "the type stands beside the value")


@case()
async def search_attributes_that_are_not_registered_are_refused(world: World) -> None:
    stranger = SearchAttributeKey.for_keyword("SdkTestStranger")
    mistaken = SearchAttributeKey.for_keyword("SdkTestInt")
    for key in [stranger, mistaken]:
        given = TypedSearchAttributes([SearchAttributePair(key, "x")])
        start = world.start(Describe.run, search_attributes=given)
        await expect.refused(RPCStatusCode.INVALID_ARGUMENT, start)


@case()
async def summaries_are_kept(world: World) -> None:
    async with world.worker(Summarised, activities=[echo]):
        handle = await world.start(Summarised.run, static_summary="what it is", static_details="and *why*")
        await handle.result()
        described = await handle.describe()
        expect.equal(await described.static_summary(), "what it is", "the summary")
        expect.equal(await described.static_details(), "and *why*", "the details")
        told = await handle.query("__temporal_workflow_metadata")
        expect.that("done" in str(told) and "hint" in str(told), "current details and handlers", told)
    history = await world.history(handle)
    for name, summary in [
        ("WorkflowExecutionStarted", "what it is"),
        ("TimerStarted", "a nap"),
        ("ActivityTaskScheduled", "an echo"),
    ]:
        (found,) = await DataConverter.default.decode([event_named(history, name).user_metadata.summary])
        expect.equal(found, summary, f"the summary of {name}")


@case()
async def dynamic_handlers_answer_to_any_name(world: World) -> None:
    async with world.worker(Anything, activities=[do_anything]):
        handle = await world.start("nobody-defined-this-either", "first", 2)
        await handle.signal("one-signal", {"a": 1})
        expect.equal(await handle.query("a-query", args=[1, 2, 3]), "a-query of 3", "the query")
        await handle.signal("another", args=["x", "y"])
        answer = await handle.result()
    signals = [["one-signal", {"a": 1}], ["another", "x", "y"]]
    expected = ["nobody-defined-this-either", "first", signals, ["nobody-defined-this", "first", 2]]
    expect.equal(answer, expected, "the answer")


@case()
async def an_eager_start_brings_its_task_along(world: World) -> None:
    # A client of its own: only a worker of the same client can take the task.
    client = await Client.connect(world.address, namespace=NAMESPACE)
    options = {"request_eager_start": True, "task_timeout": TASK_TIMEOUT}
    async with world.worker(Trivial, client=client, activities=[echo]):
        handle = await world.start(Trivial.run, "quick", client=client, **options)
        expect.that(getattr(handle, "__temporal_eagerly_started"), "the answer has the task in it")
        expect.equal(await handle.result(), "quick", "the result")
    history = await world.history(handle)
    started = event_named(history, "WorkflowExecutionStarted").workflow_execution_started_event_attributes
    expect.that(started.eager_execution_accepted, "the event says so")
    expected = lines(
        "WorkflowExecutionStarted WorkflowTaskScheduled WorkflowTaskStarted WorkflowTaskCompleted"
    )
    expect.same_lines(shape(history)[:4], expected, "the history")


@case()
async def an_eager_start_without_a_worker_is_an_ordinary_one(world: World) -> None:
    client = await Client.connect(world.address, namespace=NAMESPACE)
    handle = await world.start(Trivial.run, "slow", client=client, request_eager_start=True)
    expect.that(not getattr(handle, "__temporal_eagerly_started"), "no task in the answer")
    async with world.worker(Trivial, client=client, activities=[echo]):
        expect.equal(await handle.result(), "slow", "the result")


@case()
async def many_eager_starts_at_once(world: World) -> None:
    client = await Client.connect(world.address, namespace=NAMESPACE)
    async with world.worker(Trivial, client=client, activities=[echo]):
        handles = await asyncio.gather(
            *(world.start(Trivial.run, n, client=client, request_eager_start=True) for n in range(60))
        )
        results = await asyncio.gather(*(handle.result() for handle in handles))
        expect.equal(results, list(range(60)), "the results")
