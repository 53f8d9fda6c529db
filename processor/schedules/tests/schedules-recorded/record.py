#!/usr/bin/env python3
"""Records what a real Temporal server makes of specifications, as data for tests/recorded.rs.

    go install github.com/temporalio/cli/cmd/temporal@v1.5.1
    python3 -m pip install temporalio tzdata
    python3 record.py PATH/TO/temporal 5000 recorded.jsonl.gz

It starts `temporal server start-dev` with a database in memory, and creates, describes, lists and deletes a schedule for
each specification of specs.py. Lines of the output, in this order:

    {"tzif": {name: hex}}              contents of the TZif files that are sent
    {"given": spec, "text": its message}                 refused with INVALID_ARGUMENT
    {"given": spec, "code": gRPC's code, "text": its message}   refused otherwise
    {"given": spec, "stored": spec, "seed": text, "count": n, "times": [ms]}   what Describe shows, of what the jitter is
                                  made, the number of times that match in the window of the spec, and the first of them

A spec has, where they are not empty: calendar and exclude_calendar (strings by field), cron, structured and
exclude_structured (lists of [start, end, step] by field), interval ([interval, phase] in ns), start and end ([s, ns]),
jitter (ns), zone, zone_data ([name, bytes of it that are sent]), window ([start, end]).
"""

import asyncio
import gzip
import io
import json
import socket
import subprocess
import sys
from pathlib import Path

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import WorkflowType
from temporalio.api.schedule.v1 import (
    CalendarSpec,
    IntervalSpec,
    Range,
    Schedule,
    ScheduleAction,
    ScheduleSpec,
    ScheduleState,
    StructuredCalendarSpec,
)
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import NewWorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import (
    CreateScheduleRequest,
    DeleteScheduleRequest,
    DescribeNamespaceRequest,
    DescribeScheduleRequest,
    ListScheduleMatchingTimesRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError

sys.path.append(str(Path(__file__).parents[4] / "tests/patience"))
import patience  # noqa: E402
from specs import FIELDS, ZONES, specs, tzif  # noqa: E402

AT_ONCE = 16
TIMES_MAX = 12
NS = 10**9
# Refusals of a busy server, which are asked again.
PASSING = ("RESOURCE_EXHAUSTED", "UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "FAILED_PRECONDITION")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def duration(ns: int) -> Duration:
    made = Duration()
    made.FromNanoseconds(ns)
    return made


def moment(parts: list) -> Timestamp:
    return Timestamp(seconds=parts[0], nanos=parts[1])


def structured(calendar: dict) -> StructuredCalendarSpec:
    ranges = {
        field: [Range(start=start, end=end, step=step) for start, end, step in calendar.get(field, [])] for field in FIELDS
    }
    return StructuredCalendarSpec(comment=calendar.get("comment", ""), **ranges)


def asked(given: dict) -> ScheduleSpec:
    spec = ScheduleSpec(
        calendar=[CalendarSpec(**calendar) for calendar in given.get("calendar", [])],
        exclude_calendar=[CalendarSpec(**calendar) for calendar in given.get("exclude_calendar", [])],
        cron_string=given.get("cron", []),
        structured_calendar=[structured(calendar) for calendar in given.get("structured", [])],
        exclude_structured_calendar=[structured(calendar) for calendar in given.get("exclude_structured", [])],
        interval=[IntervalSpec(interval=duration(i), phase=duration(p)) for i, p in given.get("interval", [])],
        timezone_name=given.get("zone", ""),
    )
    if "start" in given:
        spec.start_time.CopyFrom(moment(given["start"]))
    if "end" in given:
        spec.end_time.CopyFrom(moment(given["end"]))
    if "jitter" in given:
        spec.jitter.CopyFrom(duration(given["jitter"]))
    if "zone_data" in given:
        name, length = given["zone_data"]
        spec.timezone_data = tzif(name)[:length]
    return spec


def shown(spec: ScheduleSpec, given: dict) -> dict:
    """The stored form, in the form of a given one."""

    def calendar(shown) -> dict:
        fields = {field: [[r.start, r.end, r.step] for r in getattr(shown, field)] for field in FIELDS}
        values = {field: ranges for field, ranges in fields.items() if ranges}
        return values | ({"comment": shown.comment} if shown.comment else {})

    assert not spec.calendar and not spec.cron_string and not spec.exclude_calendar
    stored = {
        "structured": [calendar(one) for one in spec.structured_calendar],
        "exclude_structured": [calendar(one) for one in spec.exclude_structured_calendar],
        "interval": [[i.interval.ToNanoseconds(), i.phase.ToNanoseconds()] for i in spec.interval],
        "zone": spec.timezone_name,
    }
    stored = {name: value for name, value in stored.items() if value}
    if spec.HasField("start_time"):
        stored["start"] = [spec.start_time.seconds, spec.start_time.nanos]
    if spec.HasField("end_time"):
        stored["end"] = [spec.end_time.seconds, spec.end_time.nanos]
    if spec.HasField("jitter"):
        stored["jitter"] = spec.jitter.ToNanoseconds()
    if spec.timezone_data:
        name, length = given["zone_data"]
        assert spec.timezone_data == tzif(name)[:length]
        stored["zone_data"] = given["zone_data"]
    return stored


async def call(what: str, method, request):
    """The answer, or a refusal: one that does not pass, or has not for long."""
    refusals = []

    async def once():
        try:
            return await method(request)
        except RPCError as error:
            refusals.append(error)
            return error if error.status.name not in PASSING else None

    try:
        return await patience.until(what, once)
    except patience.Late:
        return refusals[-1]


async def answer(client: Client, namespace: str, place: int, given: dict) -> dict:
    service = client.workflow_service
    workflow = NewWorkflowExecutionInfo(
        workflow_id=f"w{place}", workflow_type=WorkflowType(name="Never"), task_queue=TaskQueue(name="never")
    )
    # Paused, as it is not to start anything.
    schedule = Schedule(
        spec=asked(given), action=ScheduleAction(start_workflow=workflow), state=ScheduleState(paused=True)
    )
    name = {"namespace": "default", "schedule_id": f"s{place}"}
    created = await call(
        "a schedule", service.create_schedule, CreateScheduleRequest(schedule=schedule, request_id=f"r{place}", **name)
    )
    if isinstance(created, RPCError):
        code = {} if created.status.name == "INVALID_ARGUMENT" else {"code": created.status.name}
        return {"given": given} | code | {"text": created.message}
    described = await call("its description", service.describe_schedule, DescribeScheduleRequest(**name))
    if isinstance(described, RPCError):
        return {"given": given, "code": described.status.name, "text": described.message}
    start, end = (moment(parts) for parts in given["window"])
    request = ListScheduleMatchingTimesRequest(start_time=start, end_time=end, **name)
    listed = await call("its times", service.list_schedule_matching_times, request)
    await call("its end", service.delete_schedule, DeleteScheduleRequest(**name))
    recorded = {"given": given, "stored": shown(described.schedule.spec, given), "seed": f"{namespace}-s{place}"}
    if isinstance(listed, RPCError):
        return recorded | {"refused": f"{listed.status.name}: {listed.message}"}
    times = [time.ToNanoseconds() for time in listed.start_time]
    assert all(time % 10**6 == 0 for time in times)
    return recorded | {"count": len(times), "times": [time // 10**6 for time in times[:TIMES_MAX]]}


async def record(client: Client, count: int, output) -> None:
    namespace = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace="default"))
    namespace = namespace.namespace_info.id
    write = lambda value: print(json.dumps(value, ensure_ascii=False, separators=(",", ":")), file=output)
    write({"tzif": {name: tzif(name).hex() for name in ZONES}})
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(place: int, given: dict) -> dict:
        async with turns:
            if place % 100 == 0:
                print(place, file=sys.stderr, flush=True)
            return await answer(client, namespace, place, given)

    for recorded in await asyncio.gather(*(one(place, given) for place, given in enumerate(specs(count)))):
        write(recorded)


async def connect(port: int) -> Client:
    async def client():
        try:
            return await Client.connect(f"127.0.0.1:{port}")
        except RuntimeError:
            return None

    return await patience.until("the server answers", client)


async def main(temporal: str, count: str, path: str) -> None:
    port = free_port()
    options = ["--headless", "--ip", "127.0.0.1", "--port", str(port), "--log-level", "error"]
    # The least rates are for people, not for a table.
    for rate in ("namespaceRPS", "namespaceCount", "namespaceBurstRatio", "rps"):
        options += ["--dynamic-config-value", f"frontend.{rate}=1000000"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([temporal, "server", "start-dev", *options], **quiet)
    try:
        client = await connect(port)
        # The time of the file's making is not part of it: the same answers are the same bytes.
        with open(path, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as packed:
            with io.TextIOWrapper(packed, encoding="utf-8") as output:
                await record(client, int(count), output)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
