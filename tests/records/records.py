"""One bad record among a hundred good ones: it ends in `rejections` with code, bytes and place, they take effect."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from bytes_of import COMMAND, as_json, body, framed, number, schema, signal, start
from case import Report, case
from world import Sent, World

GOOD = 100


@dataclass
class Bad:
    """A record that is refused: `key` is the Workflow Id of the good ones around it unless it says otherwise."""

    row: str
    what: str
    code: str
    value: Callable[["Ids"], bytes | None]
    key: Callable[[str], bytes | None] = field(default=lambda id: id.encode())
    headers: dict[str, str | bytes] = field(default_factory=dict)
    reason: str = ""
    cut: bool = False


@dataclass
class Ids:
    """Under which ids the registry knows schemas."""

    command: int
    event: int
    outcome: int
    text: int
    unknown: int = 987_654


def avro(command: dict) -> Callable[[Ids], bytes]:
    return lambda ids: framed(ids.command, body(command))


def raw(value: bytes | None) -> Callable[[Ids], bytes | None]:
    return lambda _: value


def of_json(command: dict) -> Callable[[Ids], bytes]:
    return raw(as_json(command))


SIGNAL = signal("bad")
# type = "signal", and then a workflow_id of 2^60 bytes.
ENDLESS_TEXT = number(6) + b"signal" + number(1) + number(1 << 60) + b"x"
# type = "signal", no workflow_id, run_id, identity, start; a signal "x" with 2^60 arguments.
ENDLESS_ARRAY = number(6) + b"signal" + number(0) * 4 + number(1) + number(1) + b"x" + number(1) + number(1 << 60)
BAD_TEXT = number(6) + b"signal" + number(1) + number(2) + b"\xc3\x28" + b"\0" * 12

BAD = [
    Bad("K1", "a tombstone", "null_value", raw(None)),
    Bad("K2", "no key", "key_missing", of_json(SIGNAL), key=lambda _: None),
    Bad("K2", "an empty key", "key_missing", of_json(SIGNAL), key=lambda _: b""),
    Bad("K2", "a key that is no text", "key_unreadable", of_json(SIGNAL), key=lambda _: b"\xff\xfe"),
    Bad("K2", "a key of 1,001 bytes", "invalid_argument", of_json(SIGNAL), key=lambda _: b"k" * 1001),
    Bad("K3", "another Workflow Id in the body, JSON", "key_mismatch", of_json({**SIGNAL, "workflow_id": "other"})),
    Bad("K3", "another Workflow Id in the body, Avro", "key_mismatch", avro({**SIGNAL, "workflow_id": "other"})),
    Bad("K5", "no bytes", "not_avro", raw(b"")),
    Bad("K5", "fewer than five bytes", "not_avro", raw(b"\0\0\0\1")),
    Bad("K5", "another magic byte", "not_avro", raw(b"\1\0\0\0\1" + body(SIGNAL))),
    Bad("K5", "text", "not_avro", raw(b"start order-1 please")),
    Bad("K5", "JSON of another kind", "not_avro", raw(b'["start"]')),
    Bad("K5", "half of a JSON", "not_json", raw(as_json(SIGNAL)[:20])),
    Bad("K5", "two JSONs", "not_json", raw(as_json(SIGNAL) * 2)),
    Bad("K5", "a misspelt field", "not_json", of_json({"type": "signal", "signal": {"nmae": "x"}}), reason="nmae"),
    Bad("K5", "a field twice", "not_json", raw(b'{"type": "cancel", "type": "terminate"}')),
    Bad("K5", "a wrong type of field", "not_json", of_json({"type": "signal", "signal": {"name": 7}})),
    Bad("K5", "another content-type", "not_avro", of_json(SIGNAL), headers={"content-type": "application/avro"}),
    Bad("K6", "a schema id that the registry does not know", "schema_unknown", lambda ids: framed(ids.unknown, b"x")),
    Bad("K7", "the schema of the events", "schema_wrong_type", lambda ids: framed(ids.event, body(SIGNAL))),
    Bad("K7", "the schema of a text", "schema_wrong_type", lambda ids: framed(ids.text, number(1) + b"x")),
    Bad("K8", "Avro cut short", "decode", lambda ids: framed(ids.command, body(SIGNAL)[:-1])),
    Bad("K8", "Avro with no body", "decode", lambda ids: framed(ids.command, b"")),
    Bad("K8", "Avro with bytes left over", "decode", lambda ids: framed(ids.command, body(SIGNAL) + b"\0")),
    Bad("K8", "a text of 2^60 bytes", "decode", lambda ids: framed(ids.command, ENDLESS_TEXT)),
    Bad("K9", "an array of 2^60 elements", "decode", lambda ids: framed(ids.command, ENDLESS_ARRAY)),
    Bad("K9", "a union branch that is not there", "decode", lambda ids: framed(ids.command, number(6) + b"signal\x08")),
    Bad("K9", "a JSON of 100,000 brackets", "not_json", raw(b'{"type": ' + b"[" * 100_000), reason="nested"),
    Bad("K9", "a JSON of 300,000 elements", "not_json", raw(b'{"type": [' + b"1," * 300_000 + b"1]}")),
    Bad("K12", "a command of a later release", "command_unknown", of_json({"type": "archive"})),
    Bad("K12", "no part", "command_incomplete", of_json({"type": "signal"})),
    Bad("K12", "a part of another command", "command_incomplete", of_json({**SIGNAL, "cancel": {}})),
    Bad("K13", "Avro text that is no UTF-8", "decode", lambda ids: framed(ids.command, BAD_TEXT), reason="UTF-8"),
    Bad("K15", "a header that is no text", "header", of_json(SIGNAL), headers={"namespace": b"\xff"}),
    Bad("K15", "a header of 1,001 bytes", "header", of_json(SIGNAL), headers={"command-id": "x" * 1001}),
    Bad("K16", "a namespace that is not open", "namespace_closed", of_json(SIGNAL), headers={"namespace": "private"}),
    Bad("K16", "a namespace that is not there", "namespace_unknown", of_json(SIGNAL), headers={"namespace": "nowhere"}),
    Bad("K18", "an activity that is not there", "not_found", of_json(
        {"type": "complete_activity", "complete_activity": {"activity_id": "none"}})),
    Bad("K18", "a run that is not there", "not_found", of_json(
        {**SIGNAL, "run_id": "0c1b2f6f-3fc4-4d6a-9f4b-6c9a63f4c9d2"})),
    Bad("K18", "a token of another cluster", "token", of_json(
        {"type": "complete_activity", "complete_activity": {"token": "Zm9yZ2Vk"}})),
    Bad("K19", "a timer fired by hand", "command_unknown", of_json({"type": "timer_fired"})),
    Bad("K20", "one byte more than is taken", "too_large", raw(b'{"type": "' + b"x" * ((1 << 20) - 11) + b'"}'), cut=True),
    Bad("reply", "replies into the journal", "reply_topic", of_json(SIGNAL), headers={"reply-topic": "everlog.journal"}),
    Bad("reply", "replies into the events", "reply_topic", of_json(SIGNAL), headers={"reply-topic": "everlog.events"}),
    Bad("later", "deliver-at in words", "header", of_json(SIGNAL), headers={"deliver-at": "tomorrow"}),
    Bad("later", "deliver-at before 1970", "header", of_json(SIGNAL), headers={"deliver-at": "-1"}),
    Bad("start", "without a task queue", "invalid_argument", of_json({"type": "start", "start": {"workflow_type": "T"}})),
    Bad("start", "a timeout below 0", "invalid_argument", of_json(start(workflow_run_timeout_ms=-1))),
    Bad("start", "a Workflow Id that is taken", "already_started", of_json(start())),
    Bad("start", "a policy that nobody knows", "invalid_argument", of_json(start(conflict_policy="Maybe"))),
]  # fmt: skip


def ids(world: World) -> Ids:
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

    client = SchemaRegistryClient({"url": world.registry})
    of = lambda noun: client.get_latest_version(f"{world.topic(noun)}-value").schema_id
    text = client.register_schema("somebody.texts-value", Schema(json.dumps("string"), "AVRO"))
    return Ids(of("commands"), of("events"), of("replies"), text)


@case
def each_bad_record_is_told_and_the_good_ones_around_it_take_effect(world: World, report: Report) -> None:
    known = ids(world)
    sent: list[tuple[Bad, str, Sent]] = []
    good = []
    for at, bad in enumerate(BAD):
        workflow_id, partition = f"among-{at}", at % 4
        good.append(world.send(workflow_id, as_json(start()), partition=partition))
        for n in range(GOOD):
            if n == GOOD // 2:
                record = world.send(bad.key(workflow_id), bad.value(known), bad.headers, partition)
                sent.append((bad, workflow_id, record))
            value = as_json(signal(f"s{n}")) if n % 2 else framed(known.command, body(signal(f"s{n}")))
            good.append(world.send(workflow_id, value, partition=partition))
    world.flush(*good, *(record for _, _, record in sent))
    for bad, workflow_id, record in sent:
        with report.row(f"{bad.row} {bad.what}: {bad.code}"):
            told = world.await_rejection(record)
            check(bad, record, told)
            world.await_events(workflow_id, "WorkflowExecutionSignaled", GOOD)
            check_history(world, workflow_id)
    with report.row("every bad record is told once, and no good one"):
        places = [(read.value["partition"], read.value["offset"]) for read in world.rejections.records]
        assert sorted(places) == sorted(record.place for _, _, record in sent), places


def check(bad: Bad, sent: Sent, told) -> None:
    value = told.value
    assert value["code"] == bad.code, value
    assert value["reason"] and bad.reason in value["reason"], value["reason"]
    assert value["key"] == sent.key, value["key"]
    assert told.key == (sent.key or b""), told.key
    assert value["value_bytes"] == len(sent.value or b"")
    if bad.cut:
        assert sent.value.startswith(value["value"]) and len(value["value"]) >= 1 << 16
    else:
        assert value["value"] == sent.value, (value["value"], sent.value)
    assert [(header["key"], header["value"]) for header in value["headers"]] == sent.headers


def check_history(world: World, workflow_id: str) -> None:
    events = world.history(workflow_id)
    names = [event["workflow_execution_signaled"]["signal_name"] for event in events
             if event["type"] == "WorkflowExecutionSignaled"]  # fmt: skip
    assert names == [f"s{n}" for n in range(GOOD)], names
    assert [event["event_id"] for event in events] == list(range(1, len(events) + 1)), "numbered without a gap"
