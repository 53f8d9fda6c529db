"""A registry of others: schemas of other writers, and one that does not answer."""

import copy
import json
import time

import fastavro
from bytes_of import COMMAND, as_json, body, framed, signal, start
from case import Report, case
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from world import Part, Read, World

# As long as a node may wait for a registry.
LONGEST_WAIT_S = 600
SHORT_WAIT_S = 4
# If each of them waited for its own time, they would wait for hours.
STUCK = 2_000


def waits_for(seconds: int) -> dict[str, str]:
    """The setting of a node that waits so long for a registry which does not answer."""
    return {"EVERLOG_INGRESS__SCHEMA_WAIT_MS": str(seconds * 1000)}


def register(world: World, subject: str, schema: object) -> int:
    client = SchemaRegistryClient({"url": world.registry})
    return client.register_schema(f"{subject}-value", Schema(json.dumps(schema), "AVRO"))


def with_field(field: dict) -> dict:
    schema = copy.deepcopy(COMMAND)
    schema["fields"].insert(1, field)
    return schema


def write(schema: dict, command: dict) -> bytes:
    return body(command, fastavro.parse_schema(copy.deepcopy(schema)))


@case
def commands_of_other_schemas_are_resolved_or_refused(world: World, report: Report) -> None:
    world.flush(world.send("writers", as_json(start())))
    with report.row("K10 a newer writer: a field that we do not know"):
        newer = with_field({"name": "mood", "type": ["null", "string"], "default": None})
        newer_id = register(world, "newer.commands", newer)
        command = {**signal("from a newer one"), "mood": "cheerful"}
        world.flush(world.send("writers", framed(newer_id, write(newer, command))))
        (event,) = world.await_events("writers", "WorkflowExecutionSignaled")
        assert event["workflow_execution_signaled"]["signal_name"] == "from a newer one", event
    with report.row("K10 an older writer: fields that it does not have"):
        older = copy.deepcopy(COMMAND)
        older["fields"] = [field for field in older["fields"] if field["name"] in ("type", "cancel")]
        older_id = register(world, "older.commands", older)
        world.flush(world.send("writers", framed(older_id, write(older, {"type": "cancel", "cancel": {}}))))
        world.await_events("writers", "WorkflowExecutionCancelRequested")
    strange = {"type": "enum", "name": "Kind", "symbols": ["start", "dance"]}
    for what, schema, command in [
        ("an enum where a text is", [{"name": "type", "type": strange}], {"type": "dance"}),
        ("a number where a text is", [{"name": "type", "type": "long"}], {"type": 7}),
        ("no type at all", [{"name": "mood", "type": "string"}], {"mood": "none"}),
    ]:
        with report.row(f"K11 an incompatible writer: {what}"):
            other = {**COMMAND, "fields": schema}
            other_id = register(world, f"other{len(what)}.commands", other)
            sent = world.send("writers", framed(other_id, write(other, command)))
            world.flush(sent)
            told = world.await_rejection(sent).value
            assert told["code"] == "schema_incompatible", told
    with report.row("K7 somebody else's record of the same name"):
        foreign = {**COMMAND, "namespace": "com.example", "fields": [{"name": "type", "type": "string"}]}
        foreign_id = register(world, "foreign.commands", foreign)
        sent = world.send("writers", framed(foreign_id, write(foreign, {"type": "cancel"})))
        world.flush(sent)
        assert world.await_rejection(sent).value["code"] == "schema_wrong_type"


def registry_is_away(world: World, registry: Part, report: Report) -> None:
    newer = with_field({"name": "hue", "type": "string", "default": ""})
    late_id = register(world, "late.commands", newer)
    world.flush(*(world.send(f"away-{n}", as_json(start()), partition=n) for n in range(4)))
    for n in range(4):
        world.await_events(f"away-{n}", "WorkflowExecutionStarted")
    late = framed(late_id, write(newer, {**signal("late"), "hue": "red"}))
    with report.row("K6 the registry hangs: what needs it waits, the rest goes on"):
        registry.order("pause")
        waiting = world.send("away-0", late, partition=0)
        world.flush(waiting, *(world.send(f"away-{n}", as_json(signal("on")), partition=n) for n in (1, 2, 3)))
        for n in (1, 2, 3):
            world.await_events(f"away-{n}", "WorkflowExecutionSignaled")
        assert not world.history("away-0")[2:], "nobody can have read it yet"
    with report.row("K6 the registry is back: what waited takes effect"):
        registry.order("resume")
        (event,) = world.await_events("away-0", "WorkflowExecutionSignaled")
        assert event["workflow_execution_signaled"]["signal_name"] == "late", event
    with report.row("K6 the registry stays away: each that needs it is told after the bound, once for all of them"):
        world.node.stop()
        world.node.settings |= waits_for(SHORT_WAIT_S)
        world.node.start()
        registry.order("pause")
        begun = time.monotonic()
        stuck = [world.send("away-1", framed(late_id + 1000 + n, b"x"), partition=1) for n in range(STUCK)]
        behind = world.send("away-1", as_json(signal("behind")), partition=1)
        world.flush(*stuck, behind)
        places = {sent.place for sent in stuck}

        def all_told(records: list[Read]) -> list[dict]:
            told = [read.value for read in records if (read.value["partition"], read.value["offset"]) in places]
            return told if len(told) == STUCK else []

        told = world.rejections.wait("each of them is told", all_told)
        assert {value["code"] for value in told} == {"schema_unknown"}, told[0]
        world.await_events("away-1", "WorkflowExecutionSignaled", 2)
        print(f"#    {STUCK} records of unknown schemas took {time.monotonic() - begun:.1f} s")
        registry.order("resume")
