"""What the stock client of a schema registry may ask the built-in one: each of its methods."""

import json
import uuid
from collections.abc import Callable

from case import Report, case
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError, ServerConfig
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.common.schema_registry_client import ConfigCompatibilityLevel
from confluent_kafka.serialization import MessageField, SerializationContext
from world import World

A = {"name": "a", "type": "string"}
B = {"name": "b", "type": ["null", "string"], "default": None}
C = {"name": "c", "type": "string"}


def schema(*fields: dict) -> Schema:
    record = {"type": "record", "name": "Thing", "namespace": "io.test", "fields": list(fields)}
    return Schema(json.dumps(record), "AVRO")


def refused(call: Callable[[], object], status: int, code: int) -> None:
    try:
        answer = call()
    except SchemaRegistryError as error:
        assert (error.http_status_code, error.error_code) == (status, code), error
    else:
        raise AssertionError(f"it was answered: {answer!r}")


def begin(world: World) -> tuple[SchemaRegistryClient, str, int]:
    """A client and a new subject with one schema, and the schema's id."""
    client, subject = SchemaRegistryClient({"url": world.registry}), f"com/shop {uuid.uuid4()}"
    return client, subject, client.register_schema(subject, schema(A))


@case
def schemas_are_registered_and_found(world: World, report: Report) -> None:
    client, subject, first = begin(world)
    again = client.register_schema_full_response(subject, schema(A), normalize_schemas=True)
    assert again.schema_id == first, again
    for found in [client.get_schema(first), client.get_schema(first, subject_name=subject, fmt="resolved")]:
        assert json.loads(found.schema_str) == json.loads(schema(A).schema_str), found
    for normalize in [False, True]:
        found = client.lookup_schema(subject, schema(A), normalize_schemas=normalize, deleted=True)
        assert (found.schema_id, found.version, found.subject) == (first, 1, subject), found
    second = client.register_schema(subject, schema(A, B))
    assert second != first
    assert client.get_latest_version(subject).schema_id == second
    assert client.get_version(subject, 1).schema_id == first
    assert client.get_version(subject, "latest", deleted=True).version == 2
    assert client.get_versions(subject) == [1, 2]
    assert client.get_subjects(subject_prefix=subject) == [subject]
    assert subject in client.get_subjects()
    assert subject in client.get_subjects_by_schema_id(first)
    (place,) = client.get_schema_versions(second, subject_name=subject)
    assert (place.subject, place.version) == (subject, 2), place
    assert client.get_referenced_by(subject, 1) == []
    assert client.get_schema_types() == ["AVRO"]
    assert client.get_contexts() == ["."]
    refused(lambda: client.get_schema_by_guid(str(uuid.uuid4())), 404, 40403)
    refused(lambda: client.get_latest_with_metadata(subject, {"owner": "ann"}), 404, 40403)
    refused(lambda: client.get_associations_by_resource_name("orders", "-"), 404, 404)


@case
def levels_are_set_and_taken_back(world: World, report: Report) -> None:
    client, subject, _ = begin(world)
    assert client.get_compatibility() == "BACKWARD"
    refused(lambda: client.get_compatibility(subject), 404, 40408)
    client.set_compatibility(subject, "FULL")
    assert client.get_compatibility(subject) == "FULL"
    for check in [client.test_compatibility, client.test_compatibility_all_versions]:
        assert [check(subject, schema(A, B)), check(subject, schema(A, C))] == [True, False]
        assert check(f"no {subject}", schema(A, C)), "with nothing"
    refused(lambda: client.register_schema(subject, schema(A, C)), 409, 409)
    forward = ServerConfig(compatibility=ConfigCompatibilityLevel.FORWARD)
    assert client.set_config(subject, forward) == {"compatibility": "FORWARD"}
    assert client.test_compatibility(subject, schema(A, C))
    assert client.get_config(subject).compatibility_level == ConfigCompatibilityLevel.FORWARD
    assert client.delete_config(subject).compatibility_level == ConfigCompatibilityLevel.FORWARD
    refused(lambda: client.get_config(subject), 404, 40408)
    refused(lambda: client.delete_config(subject), 404, 40401)


@case
def subjects_are_read_only_when_they_are_told_to_be(world: World, report: Report) -> None:
    client, subject, first = begin(world)
    refused(lambda: client.get_mode(subject), 404, 40409)
    assert client.update_mode(subject, "READONLY") == "READONLY"
    assert client.get_mode(subject) == "READONLY"
    fresh = SchemaRegistryClient({"url": world.registry})
    assert fresh.register_schema(subject, schema(A)) == first
    refused(lambda: client.register_schema(subject, schema(A, B)), 422, 42205)
    refused(lambda: client.delete_subject(subject), 422, 42205)
    refused(lambda: client.update_mode(subject, "SIDEWAYS"), 422, 42204)
    assert client.delete_mode(subject) == "READONLY"
    assert client.get_global_mode() == "READWRITE"
    assert client.update_global_mode("READWRITE", force=True) == "READWRITE"


@case
def versions_and_subjects_are_deleted_in_two_steps(world: World, report: Report) -> None:
    client, subject, _ = begin(world)
    second = client.register_schema(subject, schema(A, B))
    refused(lambda: client.delete_subject(f"no {subject}"), 404, 40401)
    assert client.delete_version(subject, 1) == 1
    refused(lambda: client.delete_version(subject, 1), 404, 40406)
    assert client.get_versions(subject) == [2]
    assert client.get_versions(subject, deleted=True) == [1, 2]
    assert client.delete_version(subject, 1, permanent=True) == 1
    assert client.get_versions(subject, deleted=True) == [2]
    assert client.delete_subject(subject) == [2]
    assert subject not in client.get_subjects()
    assert subject in client.get_subjects(deleted=True)
    refused(lambda: client.get_versions(subject), 404, 40401)
    # A client of its own: this one remembers.
    assert SchemaRegistryClient({"url": world.registry}).get_schema(second)
    assert client.delete_subject(subject, permanent=True) == [2]
    assert subject not in client.get_subjects(deleted=True)


@case
def records_are_written_and_read_by_the_serializers(world: World, report: Report) -> None:
    context = SerializationContext(f"things-{uuid.uuid4()}", MessageField.VALUE)
    record = {"a": "x", "b": None}
    for conf in [{}, {"normalize.schemas": True}, {"auto.register.schemas": False}, {"use.latest.version": True}]:
        with report.row(f"a record by a serializer with {conf}"):
            conf = {"auto.register.schemas": False, **conf} if "use.latest.version" in conf else conf
            write = AvroSerializer(SchemaRegistryClient({"url": world.registry}), schema(A, B).schema_str, conf=conf)
            read = AvroDeserializer(SchemaRegistryClient({"url": world.registry}))
            assert read(write(record, context), context) == record
