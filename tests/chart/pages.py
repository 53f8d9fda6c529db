"""The chart's README is that of its values; schema, values, examples and other pages agree."""

import json
import os
import re
import tomllib
from dataclasses import dataclass
from typing import Any

import yaml
from chart import CHART, EXAMPLES, HOME, case

README = CHART / "README.md"
VALUES = CHART / "values.yaml"

HEAD = """# The chart everlog

Everlog on Kubernetes 1.30 or newer, by Helm 3 or 4. How to install, change and upgrade it:
[docs/kubernetes.md](../../docs/kubernetes.md). Values for whole installations: [helm/examples](../examples).

```sh
helm install everlog helm/everlog --set config.kafka.bootstrap_servers=broker-1:9092    # on Kafka, three nodes
helm install everlog helm/everlog -f helm/examples/embedded.yaml                        # one node, without Kafka
```

A mistyped value is refused. This page is made from `values.yaml`.
"""


@dataclass
class Value:
    path: str
    default: Any
    meaning: str
    part: str


def values() -> list[Value]:
    """Each leaf of values.yaml in turn, with what the comment above it says."""
    text = VALUES.read_text()
    lines = text.splitlines()
    parts = {number: line[5:] for number, line in enumerate(lines) if line.startswith("# == ")}
    found = []

    def walk(node: yaml.MappingNode, path: str, plain: Any) -> None:
        for key, each in node.value:
            here, default = path + key.value, plain[key.value]
            if isinstance(each, yaml.MappingNode) and not each.flow_style:
                walk(each, f"{here}.", default)
                continue
            line = key.start_mark.line
            part = parts[max(number for number in parts if number < line)]
            found.append(Value(here, default, meaning(lines, line), part))

    walk(yaml.compose(text), "", yaml.safe_load(text))
    return found


def meaning(lines: list[str], line: int) -> str:
    """The comment that ends above the line, from its `# --` on."""
    words: list[str] = []
    while line and (comment := re.match(r"\s*# ?(.*)", lines[line - 1])):
        line -= 1
        if comment[1].startswith("-- "):
            return " ".join([comment[1][3:], *words])
        words.insert(0, comment[1])
    return ""


def readme() -> str:
    text, part = HEAD, ""
    for each in values():
        if each.part != part:
            part = each.part
            text += f"\n## {part}\n\n| value | default | |\n|---|---|---|\n"
        default = json.dumps(each.default) if not isinstance(each.default, str) else each.default or '""'
        text += f"| `{each.path}` | `{default}` | {each.meaning.replace('|', chr(92) + '|')} |\n"
    return text


@case
def the_readme_is_that_of_the_values() -> None:
    if os.environ.get("UPDATE_EXPECT") == "1":
        README.write_text(readme())
    assert README.read_text() == readme(), (
        "UPDATE_EXPECT=1 tests/chart/run the_readme_is_that_of_the_values writes it anew"
    )


@case
def schema_and_values_have_the_same_keys() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())

    def keys(node: dict[str, Any], path: str) -> set[str]:
        """Those of closed places, down to what goes through."""
        if "$ref" in node:
            node = schema["definitions"][node["$ref"].rsplit("/", 1)[1]]
        found = set()
        for key, each in node.get("properties", {}).items():
            found |= {path + key} | keys(each, f"{path}{key}.")
        return found

    def present(plain: Any, path: str) -> set[str]:
        found = set()
        for key, each in plain.items() if isinstance(plain, dict) else ():
            found |= {path + key} | present(each, f"{path}{key}.")
        return found

    described, there = keys(schema, ""), present(yaml.safe_load(VALUES.read_text()), "")
    # Maps that are empty by default, and what goes through.
    inner = r"\.issuerRef\.|\.budget\.|^jobScheduling\.|^probes\.|resources\.|^global$"
    assert not {key for key in described - there if not re.search(inner, key)}
    through = r"^(config|podSecurityContext|securityContext)\.|\.(requests|limits)\.|^dashboards\.labels\."
    assert not {key for key in there - described if not re.search(through, key)}


@case
def every_object_of_the_schema_says_whether_it_is_closed() -> None:
    def look(node: Any, path: str) -> None:
        if isinstance(node, list):
            for number, each in enumerate(node):
                look(each, f"{path}[{number}]")
        elif isinstance(node, dict):
            kinds = node.get("type")
            if kinds == "object" or (isinstance(kinds, list) and "object" in kinds):
                assert "additionalProperties" in node or path.endswith("config.kafka"), path
            for key, each in node.items():
                look(each, f"{path}.{key}")

    look(json.loads((CHART / "values.schema.json").read_text()), "")


@case
def values_that_need_a_word_have_one() -> None:
    """All but those whose name says it, and those that go to Kubernetes as they are."""
    plain = (
        "key username name certificateKey keyKey annotations labels podAnnotations port type create duration renewBefore "
        "interval scrapeTimeout relabelings metricRelabelings secretName pullPolicy limits requests liveness readiness "
        "backoffLimit activeDeadlineSeconds"
    ).split()
    places = (
        "topics. nodeSelector tolerations affinity priorityClassName runtimeClassName schedulerName pod extra security"
    )
    for each in values():
        if each.path.split(".")[-1] not in plain and not each.path.startswith(tuple(places.split())):
            assert each.meaning, each.path


@case
def versions_are_those_of_the_program() -> None:
    version = tomllib.loads((HOME / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == version


@case
def users_of_strimzi_have_the_rights_of_the_page() -> None:
    users = {
        each["metadata"]["name"]: each for each in yaml.safe_load_all((EXAMPLES / "strimzi/users.yaml").read_text())
    }

    def rights(user: str) -> set[tuple[str, str, str, str]]:
        found = set()
        for acl in users[user]["spec"]["authorization"]["acls"]:
            resource = acl["resource"]
            pattern = {"prefix": "prefixed", "literal": "literal"}[resource["patternType"]]
            found |= {(resource["type"], resource["name"], pattern, operation) for operation in acl["operations"]}
        return found

    page = (HOME / "docs/operating-kafka.md").read_text()
    asked = set()
    for line in re.findall(r"(?m)^kafka-acls.sh .*--allow-principal User:everlog .*$", page):
        pattern = "prefixed" if "--resource-pattern-type prefixed" in line else "literal"
        for option, name in re.findall(r"--(topic|group|transactional-id) (\S+)", line):
            kind = option.replace("transactional-id", "transactionalId")
            asked |= {(kind, name, pattern, operation) for operation in re.findall(r"--operation (\w+)", line)}
    assert len(asked) == 7 and rights("everlog") == asked, rights("everlog") ^ asked
    (row,) = re.findall(r"(?m)^\| `topics create` \| all: (.*); `control`: (.*) \| \|$", page)
    job = {("topic", "everlog.", "prefixed", each) for each in row[0].split(", ")}
    job |= {("topic", "everlog.control", "literal", each) for each in row[1].split(", ")}
    assert rights("everlog-topics") == job, rights("everlog-topics") ^ job
    values_ = yaml.safe_load((EXAMPLES / "strimzi/values.yaml").read_text())
    assert values_["kafka"]["sasl"]["username"] in users and values_["topics"]["sasl"]["username"] in users


@case
def the_worker_of_the_examples_is_that_of_the_sample() -> None:
    deployment = yaml.safe_load((EXAMPLES / "worker/deployment.yaml").read_text())
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    recipe = (EXAMPLES / "worker/Containerfile").read_text()
    for path in re.findall(r"(?:tests|helm)/\S+", recipe.split("COPY", 1)[1]):
        assert (HOME / path).is_file(), path
    wanted = (HOME / "tests/samples/python/requirements.txt").read_text().split()
    assert all(package in recipe for package in wanted), wanted
    program = (EXAMPLES / "worker/worker.py").read_text()
    (drain_s,) = re.findall(r"graceful_shutdown_timeout=timedelta\(seconds=(\d+)\)", program)
    assert int(drain_s) < spec["terminationGracePeriodSeconds"]
    assert container["securityContext"]["readOnlyRootFilesystem"] and spec["securityContext"]["runAsNonRoot"]
    variables = {each["name"]: each["value"] for each in container["env"]}
    assert variables["TEMPORAL_ADDRESS"] == "everlog:7233"
