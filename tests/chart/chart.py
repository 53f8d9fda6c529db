"""Renders the chart, and finds objects in what comes out."""

import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

HOME = Path(__file__).resolve().parents[2]
CHART = HOME / "helm/everlog"
EXAMPLES = HOME / "helm/examples"
HELMS = {"helm 3": os.environ["HELM_3"], "helm 4": os.environ["HELM_4"]}
RELEASE, NAMESPACE = "prod", "flows"
NAME = "prod-everlog"


# Each case by its name.
CASES: dict[str, Callable[[], None]] = {}


def case(function: Callable[[], None]) -> Callable[[], None]:
    CASES[function.__name__] = function
    return function


class Refused(Exception):
    """Helm has refused the values, or the chart."""


def helm(*arguments: str | Path, program: str = "helm 4", environment: dict[str, str] | None = None) -> str:
    command = [HELMS[program], *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(environment or {})})
    if done.returncode:
        raise Refused(done.stderr + done.stdout)
    return done.stdout


def render_text(
    *values: dict[str, Any] | Path,
    program: str = "helm 4",
    chart: Path = CHART,
    release: str = RELEASE,
    options: tuple[str, ...] = (),
) -> str:
    """Helm's text for values that go over one another in turn."""
    with tempfile.TemporaryDirectory() as folder:
        files: list[str] = []
        for number, each in enumerate(values):
            path = each
            if not isinstance(each, Path):
                path = Path(folder) / f"{number}.json"
                path.write_text(json.dumps(each))
            files += ["--values", str(path)]
        return helm("template", release, chart, "--namespace", NAMESPACE, *files, *options, program=program)


@dataclass
class Objects:
    """What a chart renders."""

    all: list[dict[str, Any]]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [each for each in self.all if each["kind"] == kind]

    def names(self, kind: str) -> set[str]:
        return {each["metadata"]["name"] for each in self.of(kind)}

    def one(self, kind: str, name: str = "") -> dict[str, Any]:
        found = [each for each in self.of(kind) if not name or each["metadata"]["name"] == name]
        assert len(found) == 1, f"{len(found)} of {kind} {name}: {self.names(kind)}"
        return found[0]

    @property
    def nodes(self) -> dict[str, Any]:
        return self.one("StatefulSet")

    @property
    def node(self) -> dict[str, Any]:
        """The container of a node."""
        return self.nodes["spec"]["template"]["spec"]["containers"][0]

    def pods(self) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
        """Owner, metadata and spec of each pod: nodes, the topics Job, exports, test pods."""
        found = []
        for each in self.all:
            owner = f"{each['kind']} {each['metadata']['name']}"
            if each["kind"] == "Pod":
                found.append((owner, each["metadata"], each["spec"]))
            elif each["kind"] == "CronJob":
                template = each["spec"]["jobTemplate"]["spec"]["template"]
                found.append((owner, template["metadata"], template["spec"]))
            elif "template" in (each.get("spec") or {}):
                found.append((owner, each["spec"]["template"]["metadata"], each["spec"]["template"]["spec"]))
        return found

    def settings(self, name: str = NAME) -> str:
        return self.one("ConfigMap", name)["data"]["everlog.toml"]


def render(*values: dict[str, Any] | Path, **more: Any) -> Objects:
    text = render_text(*values, **more)
    return Objects([each for each in yaml.safe_load_all(text) if each])


def containers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [*spec.get("initContainers", []), *spec["containers"]]
