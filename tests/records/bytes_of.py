"""Commands as bytes: JSON, Avro by the schema of the repository or by another, and bytes that are neither."""

import io
import json
from typing import Any

import fastavro

from world import REPOSITORY

SCHEMAS = REPOSITORY / "schemas"


def schema(noun: str) -> dict[str, Any]:
    return json.loads((SCHEMAS / f"{noun}.avsc").read_text())


COMMAND = schema("WorkflowCommand")
# Parsed apart from the text: the library writes into what it parses.
PARSED = fastavro.parse_schema(schema("WorkflowCommand"))


def as_json(command: dict[str, Any]) -> bytes:
    return json.dumps(command).encode()


def framed(schema_id: int, body: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + body


def body(command: dict[str, Any], parsed: Any = PARSED) -> bytes:
    written = io.BytesIO()
    fastavro.schemaless_writer(written, parsed, command)
    return written.getvalue()


def number(value: int) -> bytes:
    """A long as Avro writes it."""
    zigzag, written = value << 1 if value >= 0 else (-value << 1) - 1, bytearray()
    while zigzag > 0x7F:
        written.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes(written) + bytes([zigzag])


def signal(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "signal", "signal": {"name": name, **more}}


def update(id: str, *input: Any) -> dict[str, Any]:
    """Of the worker that the cases have."""
    return {"type": "update", "update": {"id": id, "name": "add_item", "input": list(input)}}


def start(**more: Any) -> dict[str, Any]:
    return {"type": "start", "start": {"workflow_type": "Quiet", "task_queue": "nobody", **more}}
