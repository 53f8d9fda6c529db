"""The tracing of the SDK: a trace goes on from its caller through workflow, signal, query, activity and child."""

from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.contrib.opentelemetry import TracingInterceptor

with workflow.unsafe.imports_passed_through():
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import expect
from case import case
from world import NAMESPACE, World

# Each span, and that which it is made by.
PARENTS = {
    "StartWorkflow:Traced": "caller",
    "RunWorkflow:Traced": "StartWorkflow:Traced",
    "QueryWorkflow:ask": "caller",
    "HandleQuery:ask": "QueryWorkflow:ask",
    "SignalWorkflow:go_on": "caller",
    "HandleSignal:go_on": "StartWorkflow:Traced",
    "StartActivity:traced_echo": "StartWorkflow:Traced",
    "RunActivity:traced_echo": "StartActivity:traced_echo",
    "StartChildWorkflow:TracedChild": "StartWorkflow:Traced",
    "RunWorkflow:TracedChild": "StartChildWorkflow:TracedChild",
}


@activity.defn
async def traced_echo(value: int) -> int:
    return value


@workflow.defn
class TracedChild:
    @workflow.run
    async def run(self) -> int:
        return 2


@workflow.defn
class Traced:
    def __init__(self) -> None:
        self.goes_on = False

    @workflow.run
    async def run(self) -> int:
        await workflow.wait_condition(lambda: self.goes_on)
        one = await workflow.execute_activity(traced_echo, 1, start_to_close_timeout=timedelta(minutes=2))
        return one + await workflow.execute_child_workflow(TracedChild.run)

    @workflow.signal
    def go_on(self) -> None:
        self.goes_on = True

    @workflow.query
    def ask(self) -> str:
        return "asked"


@case()
async def one_trace_goes_through_everything(world: World) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    interceptor = TracingInterceptor(tracer)
    client = await Client.connect(world.address, namespace=NAMESPACE, interceptors=[interceptor])
    async with world.worker(Traced, TracedChild, client=client, activities=[traced_echo]):
        with tracer.start_as_current_span("caller"):
            handle = await world.start(Traced.run, client=client)
            expect.equal(await handle.query(Traced.ask), "asked", "the answer")
            await handle.signal(Traced.go_on)
            expect.equal(await handle.result(), 3, "the result")
    spans = exporter.get_finished_spans()
    by_id = {span.context.span_id: span for span in spans}
    (caller,) = (span for span in spans if span.name == "caller")
    expect.equal({span.context.trace_id for span in spans}, {caller.context.trace_id}, "the traces")
    found = {span.name: by_id[span.parent.span_id].name for span in spans if span.name in PARENTS}
    expect.equal(found, PARENTS, "what each span is made by")
    (handled,) = (span for span in spans if span.name == "HandleSignal:go_on")
    linked = [by_id[link.context.span_id].name for link in handled.links]
    expect.equal(linked, ["SignalWorkflow:go_on"], "what the signal is linked to")
