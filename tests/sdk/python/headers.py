"""What interceptors and codecs put on the wire: headers on everything, encoded payloads and failures."""

import dataclasses
import zlib
from collections import defaultdict
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, WorkflowFailureError
from temporalio.client import Interceptor as ClientInterceptor
from temporalio.client import OutboundInterceptor as ClientOutbound
from temporalio.converter import DataConverter, DefaultFailureConverterWithEncodedAttributes, PayloadCodec
from temporalio.exceptions import ApplicationError
from temporalio.worker import Interceptor as WorkerInterceptor
from temporalio.worker import (
    ActivityInboundInterceptor,
    WorkflowInboundInterceptor,
    WorkflowOutboundInterceptor,
)

import expect
from case import case
from history import events_named
from world import NAMESPACE, World


@activity.defn
async def echo(value: Any) -> Any:
    return value


@workflow.defn
class Relayed:
    """Answers the header that came with the start and the ones that its activity and signal saw."""

    def __init__(self) -> None:
        self.signalled = False

    @workflow.run
    async def run(self) -> list[str]:
        await workflow.wait_condition(lambda: self.signalled)
        await workflow.execute_activity(echo, 1, start_to_close_timeout=timedelta(minutes=2))
        return []

    @workflow.signal
    def go(self) -> None:
        self.signalled = True

    @workflow.query
    def ask(self) -> str:
        return "asked"


@workflow.defn
class Trivial:
    @workflow.run
    async def run(self, value: Any) -> Any:
        return await workflow.execute_activity(echo, value, start_to_close_timeout=timedelta(minutes=2))


@workflow.defn
class Failing:
    @workflow.run
    async def run(self) -> None:
        raise ApplicationError("a secret", type="Secret")


# What the interceptors saw, by workflow id.
HEADERS: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)


def header(text: str) -> dict[str, Payload]:
    return {"trace": Payload(metadata={"encoding": b"binary/plain"}, data=text.encode())}


class Sends(ClientInterceptor):
    """Puts a header on everything that a client sends."""

    def intercept_client(self, next: ClientOutbound) -> ClientOutbound:
        class Outbound(ClientOutbound):
            async def start_workflow(self, input):
                input.headers = header("start")
                return await super().start_workflow(input)

            async def signal_workflow(self, input):
                input.headers = header("signal")
                return await super().signal_workflow(input)

            async def query_workflow(self, input):
                input.headers = header("query")
                return await super().query_workflow(input)

        return Outbound(next)


class Passes(WorkerInterceptor):
    """Notes the headers that come in, and puts one on every activity."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        class Inbound(ActivityInboundInterceptor):
            async def execute_activity(self, input):
                HEADERS[activity.info().workflow_id].append(
                    ("activity", input.headers["trace"].data.decode())
                )
                return await super().execute_activity(input)

        return Inbound(next)

    def workflow_interceptor_class(self, input):
        return PassesInWorkflow


class PassesInWorkflow(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        class Outbound(WorkflowOutboundInterceptor):
            def start_activity(self, input):
                return super().start_activity(dataclasses.replace(input, headers=header("from the workflow")))

        super().init(Outbound(outbound))

    def note(self, kind: str, headers: Any) -> None:
        if not workflow.unsafe.is_replaying():
            HEADERS[workflow.info().workflow_id].append((kind, headers["trace"].data.decode()))

    async def execute_workflow(self, input):
        self.note("workflow", input.headers)
        return await super().execute_workflow(input)

    async def handle_signal(self, input):
        self.note("signal", input.headers)
        return await super().handle_signal(input)

    async def handle_query(self, input):
        HEADERS[workflow.info().workflow_id].append(("query", input.headers["trace"].data.decode()))
        return await super().handle_query(input)


@case()
async def headers_travel_with_everything(world: World) -> None:
    client = await Client.connect(world.address, namespace=NAMESPACE, interceptors=[Sends()])
    world.replay_options["interceptors"] = [Passes()]
    async with world.worker(Relayed, client=client, activities=[echo], interceptors=[Passes()]):
        handle = await world.start(Relayed.run, client=client)
        expect.equal(await handle.query(Relayed.ask), "asked", "the answer")
        await handle.signal(Relayed.go)
        await handle.result()
    expected = [
        ("activity", "from the workflow"),
        ("query", "query"),
        ("signal", "signal"),
        ("workflow", "start"),
    ]
    expect.equal(sorted(HEADERS[handle.id]), expected, "what arrived")
    history = await world.history(handle)
    for name, text in [
        ("WorkflowExecutionStarted", "start"),
        ("WorkflowExecutionSignaled", "signal"),
        ("ActivityTaskScheduled", "from the workflow"),
    ]:
        fields = events_named(history, name)[0].header.fields
        expect.equal(fields["trace"].data.decode(), text, f"the header of {name}")
        expect.equal(fields["trace"].metadata["encoding"], b"binary/plain", "and its encoding")


class Zip(PayloadCodec):
    """Compresses each payload, and marks it so."""

    async def encode(self, payloads: Iterable[Payload]) -> list[Payload]:
        return [
            Payload(metadata={"encoding": b"binary/zip"}, data=zlib.compress(p.SerializeToString()))
            for p in payloads
        ]

    async def decode(self, payloads: Iterable[Payload]) -> list[Payload]:
        return [
            Payload.FromString(zlib.decompress(p.data)) if p.metadata["encoding"] == b"binary/zip" else p
            for p in payloads
        ]


@case()
async def encoded_payloads_and_failures_are_opaque(world: World) -> None:
    converter = dataclasses.replace(
        DataConverter.default,
        payload_codec=Zip(),
        failure_converter_class=DefaultFailureConverterWithEncodedAttributes,
    )
    client = await Client.connect(world.address, namespace=NAMESPACE, data_converter=converter)
    world.replay_options["data_converter"] = converter
    value = {"text": "a" * 5000}
    async with world.worker(Trivial, Failing, client=client, activities=[echo]):
        handle = await world.start(Trivial.run, value, client=client, memo={"note": "zipped"})
        expect.equal(await handle.result(), value, "the result")
        expect.equal(await (await handle.describe()).memo(), {"note": "zipped"}, "the memo")
        failing = await world.start(Failing.run, client=client)
        error = await expect.fails(WorkflowFailureError, failing.result())
        expect.equal((error.cause.message, error.cause.type), ("a secret", "Secret"), "the failure, decoded")
    (result,) = events_named(await world.history(handle), "WorkflowExecutionCompleted")
    expect.equal(result.result.payloads[0].metadata["encoding"], b"binary/zip", "the encoding in the history")
    (failed,) = events_named(await world.history(failing), "WorkflowExecutionFailed")
    expect.equal(failed.failure.message, "Encoded failure", "the message in the history")
    expect.equal(
        failed.failure.encoded_attributes.metadata["encoding"], b"binary/zip", "its encoded attributes"
    )
