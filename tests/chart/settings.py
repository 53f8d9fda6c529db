"""everlog.toml and secrets, as the program reads them."""

import json
import os
import re
import subprocess
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from chart import NAME, case, containers, render
from hooks import sources
from rendering import rendered
from shapes import EVERYTHING, KAFKA, SHAPES

EVERLOG = os.environ["EVERLOG"]
PASSWORD = "hunter2$(HOME)"


def variables(container: dict[str, Any]) -> dict[str, str]:
    """Those that Kubernetes would give the container."""
    found: dict[str, str] = {}
    for each in container.get("env", []):
        value = each.get("value", "")
        if origin := each.get("valueFrom"):
            value = "prod-everlog-0" if "fieldRef" in origin else PASSWORD
        found[each["name"]] = re.sub(
            r"\$\$|\$\((\w+)\)", lambda match: "$" if match[0] == "$$" else found.get(match[1], match[0]), value
        )
    return found


def read(toml: str, container: dict[str, Any]) -> dict[str, Any]:
    """Every setting, as the program would use it."""
    with tempfile.TemporaryDirectory() as folder:
        path, properties = Path(folder) / "everlog.toml", Path(folder) / "properties"
        # The program reads this one with its settings, and all others where it needs them.
        properties.write_text("sasl.username=everlog\nsasl.password=hunter2\n")
        path.write_text(toml.replace("/etc/everlog/kafka/properties", str(properties)))
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith("EVERLOG_") or key == "EVERLOG_CACHE"
        }
        done = subprocess.run(
            [EVERLOG, "config", "--config", path],
            capture_output=True,
            text=True,
            env={**environment, **variables(container)},
        )
    assert done.returncode == 0, f"{done.stderr}\n{toml}"
    return tomllib.loads(done.stdout)


@case
def the_program_takes_the_settings_of_every_shape() -> None:
    for shape in SHAPES:
        objects = rendered(shape)
        settings = read(objects.settings(), objects.node)
        on_kafka = "embedded" not in shape
        assert bool(settings["kafka"]["bootstrap_servers"]) == on_kafka, shape
        assert settings["server"]["name"] == "prod-everlog-0" and settings["server"]["data_dir"].startswith(
            "/var/lib/everlog/"
        )
        assert settings["server"]["metrics_address"].endswith(":9233") and settings["logs"]["format"] == "json"
        if on_kafka:
            assert settings["cluster"]["advertised"] == "prod-everlog-0.prod-everlog-nodes.flows.svc.cluster.local:7235"
            # 64 partitions, and room for 16 nodes.
            assert settings["kafka"]["partitions"] == 64 and settings["kafka"]["group_partitions"] == 4
        for job in objects.of("Job"):
            name = job["metadata"]["name"]
            of_job = read(objects.settings(name), job["spec"]["template"]["spec"]["containers"][0])
            for key in ("bootstrap_servers", "prefix", "partitions", "group_partitions", "replication"):
                assert of_job["kafka"][key] == settings["kafka"][key], (shape, key)


@case
def settings_arrive_as_they_are_written() -> None:
    settings = read(rendered("everything").settings(), rendered("everything").node)
    assert settings["server"]["address"] == "[::]:7233"
    assert settings["memory"]["database_bytes"] == 536870912
    assert settings["auth"]["issuers"] == ["https://id.example.org/?a&b<c>"]
    assert settings["cluster"]["certificate_file"] == "/etc/everlog/nodes/tls.crt"
    assert settings["tls"]["client_ca_file"] == "/etc/everlog/gateway/clients-ca.crt"
    large = {
        "config": {
            "limits": {"history_events_max": 10_000_000},
            "log": {"sync": "never"},
            "tls": {"min_version": "1.3"},
        }
    }
    settings = read(render(KAFKA, large).settings(), rendered("kafka").node)
    assert settings["limits"]["history_events_max"] == 10_000_000 and settings["tls"]["min_version"] == "1.3"


@case
def a_mistyped_setting_is_refused_by_the_program() -> None:
    objects = render(KAFKA, {"config": {"limits": {"signals_maxx": 1}}})
    try:
        read(objects.settings(), objects.node)
    except AssertionError as reason:
        assert "limits.signals_maxx is unknown" in str(reason), reason
    else:
        raise AssertionError("it is taken")


@case
def every_file_that_settings_name_is_mounted() -> None:
    for shape in SHAPES:
        objects = rendered(shape)
        for owner, _, spec in objects.pods():
            mounted = {
                item["path"] for each in sources(spec) for part in each.values() for item in part.get("items", [])
            }
            (settings,) = [
                each["configMap"]["name"]
                for each in sources(spec)
                if "configMap" in each and "items" not in each["configMap"]
            ]
            named = set(re.findall(r"/etc/everlog/([\w./-]+)", objects.settings(settings)))
            if "StatefulSet" in owner:
                assert named == mounted, (shape, owner)
            # These read what reaches the brokers, and what reaches nodes.
            assert {path for path in named if path.startswith("kafka/")} <= mounted, (shape, owner)
            (volume,) = [each for each in spec["volumes"] if each["name"] == "settings"]
            # Of the group alone, which a node is in by fsGroup.
            assert volume["projected"]["defaultMode"] == 0o440, (shape, owner)


@case
def a_password_reaches_the_program_and_no_object() -> None:
    objects = rendered("example strimzi")
    for container in (objects.node, objects.one("Job")["spec"]["template"]["spec"]["containers"][0]):
        properties = variables(container)["EVERLOG_KAFKA__PROPERTIES"].split(";")
        assert properties[:3] == [
            "security.protocol=SASL_SSL",
            "sasl.mechanism=SCRAM-SHA-512",
            "ssl.ca.location=/etc/everlog/kafka/ca.crt",
        ]
        assert properties[4] == f"sasl.password={PASSWORD}", properties
    read(objects.settings(), objects.node)
    dollar = render(
        KAFKA,
        {
            "config": {"kafka": {"properties": ["a=$(KAFKA_PASSWORD)"]}},
            "kafka": {"sasl": {"username": "u", "passwordSecret": {"name": "s"}}},
        },
    )
    assert variables(dollar.node)["EVERLOG_KAFKA__PROPERTIES"].startswith("a=$(KAFKA_PASSWORD);sasl.username=u;")


@case
def secrets_are_named_by_volumes_and_variables_alone() -> None:
    for shape in SHAPES:
        objects = rendered(shape)
        for each in objects.of("ConfigMap"):
            for text in (each.get("data") or {}).values():
                assert not re.search(r"(password|passphrase|secret)\s*[=:]\s*[^\s\"]", text), (shape, text)
        for _, _, spec in objects.pods():
            for container in containers(spec):
                words = json.dumps([container.get("args"), container.get("command")])
                assert not re.search("password|secret|api-key", words), (shape, words)


@case
def what_pods_run_is_known_to_the_program() -> None:
    seen = set()
    for shape in SHAPES:
        for _, _, spec in rendered(shape).pods():
            seen |= {tuple(each["args"]) for each in containers(spec) if "args" in each}
    assert len(seen) == 7, seen
    for arguments in seen:
        done = subprocess.run([EVERLOG, *arguments, "--help"], capture_output=True, text=True)
        assert done.returncode == 0 and "Usage: everlog" in done.stdout, (arguments, done.stderr)


@case
def everything_is_on_everything() -> None:
    """Values that go through reach their place."""
    spec = rendered("everything").nodes["spec"]["template"]
    for key, place in (
        ("extraVolumes", "volumes"),
        ("extraInitContainers", "initContainers"),
        ("extraContainers", "containers"),
    ):
        assert EVERYTHING[key][0] in spec["spec"][place], key
    node = rendered("everything").node
    assert EVERYTHING["extraVolumeMounts"][0] in node["volumeMounts"] and EVERYTHING["extraEnv"][0] in node["env"]
    assert spec["metadata"]["labels"]["mesh"] == "yes" and spec["metadata"]["annotations"]["mesh"] == "yes"
    assert rendered("everything").nodes["metadata"]["annotations"]["set"] == "yes"
    assert NAME in rendered("everything").names("ServiceAccount")
