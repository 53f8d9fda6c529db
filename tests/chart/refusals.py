"""What the chart refuses, and that it says why."""

import json
from typing import Any

from chart import CHART, HELMS, Refused, case, render, render_text
from shapes import EMBEDDED, KAFKA


def refused(sign: str, *values: dict[str, Any]) -> None:
    for program in HELMS:
        try:
            render_text(*values, program=program)
        except Refused as reason:
            assert sign in str(reason), f"{program}, {values}: {reason}"
        else:
            raise AssertionError(f"{program} takes {values}")


def at(path: str, value: Any) -> dict[str, Any]:
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


@case
def a_mistyped_value_is_refused() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    for path in closed_places(schema, schema, ""):
        refused("replicaz", KAFKA, at(f"{path}replicaz", 3))


def closed_places(schema: dict[str, Any], root: dict[str, Any], path: str) -> list[str]:
    if "$ref" in schema:
        schema = root["definitions"][schema["$ref"].rsplit("/", 1)[1]]
    found = []
    if schema.get("additionalProperties") is False:
        found.append(path)
    for key, each in schema.get("properties", {}).items():
        found += closed_places(each, root, f"{path}{key}.")
    return found


@case
def values_of_the_wrong_kind_are_refused() -> None:
    for path, value in {
        "mode": "kafkaa",
        "replicas": -1,
        "image.digest": "sha256:1",
        "listenAddress": "10.0.0.1",
        "config.kafka.partitions": "64",
        "config.kafka.bootstrap_servers": "broker",
        "config.kafka.properties": "security.protocol=SSL",
        "config.logs": "json",
        "kafka.sasl.username": "a;b",
        "resources.limits.memory": "2 GB",
        "persistence.accessModes": ["ReadWriteMany"],
        "probes.liveness.httpGet": {"path": "/", "port": 1},
        "probes.startup.failureThreshold": 0,
        "terminationGracePeriodSeconds": 30,
        "updateStrategy.type": "Recreate",
        "podDisruptionBudget.budget": {"maxUnavailable": 1, "minAvailable": 2},
        "podDisruptionBudget.budget.maxUnavailable": "one",
        "spreading.hosts": "Sometimes",
        "service.type": "ExternalName",
        "service.port": 0,
        "serviceMonitor.interval": "30",
        "commonLabels.number": 1,
    }.items():
        refused(path.split(".")[-1], KAFKA, at(path, value))


@case
def more_nodes_than_groups_are_refused() -> None:
    refused("at most replicas: 16", KAFKA, {"replicas": 17})
    refused("at most replicas: 3", KAFKA, {"replicas": 4, "config": {"kafka": {"partitions": 12}}})
    refused("at most replicas: 2", KAFKA, {"config": {"kafka": {"partitions": 5}}})
    assert render(KAFKA, {"replicas": 16}).nodes["spec"]["replicas"] == 16
    assert render(KAFKA, {"replicas": 2, "config": {"kafka": {"partitions": 5}}}).nodes["spec"]["replicas"] == 2


@case
def modes_are_not_mixed() -> None:
    refused("set replicas: 1", {"mode": "embedded"})
    refused("set replicas: 1", EMBEDDED, {"replicas": 2})
    refused("set mode: kafka", EMBEDDED, KAFKA)
    refused("the claim is the data", EMBEDDED, {"persistence": {"enabled": False}})
    refused("bootstrap_servers is empty", {})
    refused("config.cluster.replicas: 1", KAFKA, {"persistence": {"enabled": False}})


@case
def a_small_memory_limit_is_refused() -> None:
    def limit(quantity: Any, **config: Any) -> dict[str, Any]:
        return {"resources": {"limits": {"memory": quantity}}, "config": config}

    # 256 MiB, 64 MiB, 350 MB and 64 MB in seven tenths: 1,071 MB.
    refused("need at least 1022Mi", KAFKA, limit("1021Mi"))
    refused("need at least 1022Mi", KAFKA, limit("1.07G"))
    refused("need at least 1022Mi", KAFKA, limit(1070000000))
    refused("resources.limits.memory: 2Gi", KAFKA, limit("2Gi", memory={"database_bytes": 1 << 31}))
    refused("resources.limits.memory: 2Gi", KAFKA, limit("2Gi", kafka={"partitions": 4096}))
    refused("need at least 945Mi", EMBEDDED, limit("944Mi"))
    for enough in ("1022Mi", "1.08G", "1072000000", 1072000000, "1Gi", "0.0011T"):
        render(KAFKA, limit(enough))
    render(EMBEDDED, limit("945Mi"))
    render(KAFKA, {"resources": {"limits": {"memory": None}}})


@case
def what_the_chart_sets_is_refused_in_config() -> None:
    for key in (
        "server.name",
        "server.address",
        "kafka.properties_file",
        "tls.key_file",
        "cluster.advertised",
        "tokens.key_file",
    ):
        refused(f"config.{key} is set by the chart", KAFKA, at(f"config.{key}", "x"))


@case
def secrets_are_refused_where_they_would_be_read() -> None:
    for key in ("sasl.password", "ssl.key.password", "ssl.key.pem", "sasl.oauthbearer.client.secret"):
        refused("kafka.propertiesSecret", KAFKA, {"config": {"kafka": {"properties": [f"{key}=hunter2"]}}})


@case
def halves_are_refused() -> None:
    refused("kafka.sasl.username is empty", KAFKA, at("kafka.sasl.passwordSecret.name", "a"))
    refused("topics.sasl.passwordSecret.name is empty", KAFKA, at("topics.sasl.username", "a"))
    refused("takes tls.gateway.secretName", KAFKA, at("tls.gateway.enabled", True))
    refused("takes tls.nodes.enabled", KAFKA, at("tls.nodes.certManager.enabled", True))
    refused("issuerRef is empty", KAFKA, at("tls.nodes", {"enabled": True, "certManager": {"enabled": True}}))
    refused("takes tls.gateway.clientCaSecret.name", KAFKA, at("config.tls.client_certificates", "asked"))


@case
def an_older_kubernetes_is_refused() -> None:
    for program in HELMS:
        try:
            render_text(KAFKA, program=program, options=("--kube-version", "1.29.9"))
        except Refused as reason:
            assert "1.30" in str(reason), reason
        else:
            raise AssertionError(f"{program} takes 1.29")
        render_text(KAFKA, program=program, options=("--kube-version", "1.30.0-gke.100"))
