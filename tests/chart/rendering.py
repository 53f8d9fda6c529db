"""Both versions of Helm render the same valid objects, and what cannot be changed stays the same."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml
from chart import CHART, HELMS, HOME, NAMESPACE, Objects, case, helm, render
from shapes import EVERYTHING, KAFKA, SHAPES

# The oldest that the chart takes, the one that the tests have, and the newest that there are schemas of.
VERSIONS = ["1.30", "1.34", "1.37"]
# What no later chart may render otherwise.
FIXED = Path(__file__).with_name("fixed.json")


@cache
def rendered(shape: str) -> Objects:
    return render(*SHAPES[shape])


@case
def both_versions_of_helm_render_the_same() -> None:
    for shape, values in SHAPES.items():
        old, new = render(*values, program="helm 3"), rendered(shape)
        key = lambda each: (each["kind"], each["metadata"]["name"])  # noqa: E731
        assert sorted(old.all, key=key) == sorted(new.all, key=key), shape


@case
def helm_lint_finds_nothing() -> None:
    for program in HELMS:
        for values in ([], *SHAPES.values()):
            with tempfile.TemporaryDirectory() as folder:
                files: list[str] = []
                for number, each in enumerate(values):
                    path = Path(folder) / f"{number}.json"
                    path.write_text(json.dumps(each) if isinstance(each, dict) else each.read_text())
                    files += ["--values", str(path)]
                helm("lint", "--strict", CHART, *files, program=program)


@case
def every_object_is_valid_in_each_version_of_kubernetes() -> None:
    kinds = foreign_kinds()
    for shape in SHAPES:
        for each in rendered(shape).all:
            if schema := kinds.get((each["apiVersion"], each["kind"])):
                jsonschema.Draft7Validator(schema).validate(each)
                continue
            for version in VERSIONS:
                kubernetes_validate.validate(each, version, strict=True)


@cache
def foreign_kinds() -> dict[tuple[str, str], dict[str, Any]]:
    """Schemas of kinds that Kubernetes itself does not know; they refuse unknown keys."""
    found = {}
    folder = subprocess.check_output([HOME / "tests/chart/programs", "kinds"], text=True).strip()
    for kind in (
        "cert-manager.io_certificates",
        "monitoring.coreos.com_servicemonitors",
        "monitoring.coreos.com_prometheusrules",
    ):
        spec = yaml.safe_load((Path(folder) / f"{kind}.yaml").read_text())["spec"]
        for version in spec["versions"]:
            api = f"{spec['group']}/{version['name']}"
            schema = version["schema"]["openAPIV3Schema"]
            schema["properties"]["metadata"] = {"type": "object"}
            found[(api, spec["names"]["kind"])] = closed(schema)
    return found


def closed(schema: Any) -> Any:
    """An API server drops keys that such a schema does not name; here they are faults."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: closed(each) for key, each in schema.items()}
    if "properties" in schema and schema.get("type") == "object" and "additionalProperties" not in schema:
        schema["additionalProperties"] = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    return schema


@case
def an_object_that_is_wrong_is_found() -> None:
    kinds = foreign_kinds()
    objects = render(EVERYTHING)
    certificate = {**objects.one("Certificate", "prod-everlog-nodes")}
    certificate["spec"] = {**certificate["spec"], "dnsNamez": []}
    service = {**objects.one("Service", "prod-everlog"), "specc": {}}
    for validate in (
        lambda: jsonschema.Draft7Validator(kinds[("cert-manager.io/v1", "Certificate")]).validate(certificate),
        lambda: kubernetes_validate.validate(service, "1.34", strict=True),
    ):
        try:
            validate()
        except (jsonschema.ValidationError, kubernetes_validate.ValidationError):
            continue
        raise AssertionError("it passes")


@case
def every_object_names_its_namespace_and_release() -> None:
    for shape in SHAPES:
        for each in rendered(shape).all:
            metadata = each["metadata"]
            assert metadata["namespace"] == NAMESPACE, (shape, each["kind"], metadata["name"])
            if "labels" in metadata:
                assert metadata["labels"]["app.kubernetes.io/instance"] == "prod", (shape, each["kind"])


@case
def no_object_is_rendered_twice_and_names_fit() -> None:
    for shape in SHAPES:
        names = [(each["kind"], each["metadata"]["name"]) for each in rendered(shape).all]
        assert len(names) == len(set(names)), (shape, names)
    long = render(KAFKA, {"fullnameOverride": "a" * 60})
    for each in long.all:
        assert len(each["metadata"]["name"]) <= 63, each["metadata"]["name"]
    # A pod's name and that of its revision are labels.
    assert len(long.nodes["metadata"]["name"]) <= 63 - len("-1234567890") - len("-4095")


def fixed(objects: Objects) -> dict[str, Any]:
    """What cannot be changed by an upgrade: the API server refuses it, or the claims would be other ones."""
    spec = objects.nodes["spec"]
    return {
        "name": objects.nodes["metadata"]["name"],
        "serviceName": spec["serviceName"],
        "podManagementPolicy": spec["podManagementPolicy"],
        "selector": spec["selector"],
        "volumeClaimTemplates": spec.get("volumeClaimTemplates"),
        "services": sorted(objects.names("Service")),
        "selectors of services": sorted({json.dumps(each["spec"]["selector"]) for each in objects.of("Service")}),
        "budgets": [each["spec"]["selector"] for each in objects.of("PodDisruptionBudget")],
        "data_dir": [each["value"] for each in objects.node["env"] if each["name"] == "EVERLOG_SERVER__DATA_DIR"],
        "data is mounted at": [each["mountPath"] for each in objects.node["volumeMounts"] if each["name"] == "data"],
    }


@case
def names_and_selectors_are_those_of_every_version() -> None:
    now = {shape: fixed(rendered(shape)) for shape in ("kafka", "embedded", "everything")}
    if os.environ.get("UPDATE_EXPECT") == "1":
        FIXED.write_text(json.dumps(now, indent=2) + "\n")
    assert now == json.loads(FIXED.read_text()), "an upgrade of what is installed would be refused"


@case
def another_version_of_the_chart_restarts_nothing() -> None:
    with tempfile.TemporaryDirectory() as folder:
        later = Path(folder) / "everlog"
        shutil.copytree(CHART, later)
        text = (later / "Chart.yaml").read_text()
        (later / "Chart.yaml").write_text(re.sub("(?m)^version: .*", "version: 9.9.9+build", text))
        for shape, values in (("kafka", [KAFKA]), ("everything", [EVERYTHING])):
            before, after = rendered(shape).nodes, render(*values, chart=later).nodes
            assert before["spec"] == after["spec"], shape
            assert before["metadata"]["labels"] != after["metadata"]["labels"], shape


@case
def labels_and_annotations_of_all_are_on_all() -> None:
    own = {"prod-more", "text"}
    for each in rendered("everything").all:
        if each["metadata"]["name"] in own:
            continue
        assert each["metadata"]["labels"]["team"] == "flows", each["kind"]
        assert each["metadata"]["annotations"]["owner"] == "flows", each["kind"]
    assert own <= rendered("everything").names("ConfigMap")


@case
def nothing_is_made_by_chance_and_no_secret_is_made() -> None:
    for shape, values in SHAPES.items():
        assert render(*values).all == rendered(shape).all, shape
        assert not rendered(shape).of("Secret"), shape
