"""The CronJob that exports the state."""

from typing import Any

from chart import Refused, case, render
from rendering import rendered
from shapes import EMBEDDED, KAFKA

CLAIM = {"exports": {"enabled": True, "claimName": "backup"}}


def job(shape: str) -> dict[str, Any]:
    return rendered(shape).one("CronJob")["spec"]


def pod(shape: str) -> dict[str, Any]:
    return job(shape)["jobTemplate"]["spec"]["template"]["spec"]


def claims(spec: dict[str, Any]) -> dict[str, str]:
    """By the path of its mount."""
    names = {each["name"]: each.get("persistentVolumeClaim", {}).get("claimName") for each in spec["volumes"]}
    mounts = spec["containers"][0]["volumeMounts"]
    return {each["mountPath"]: names[each["name"]] for each in mounts if names.get(each["name"])}


@case
def nothing_is_exported_unless_it_is_asked_for() -> None:
    for shape in ("kafka", "embedded", "example production", "example embedded"):
        assert not rendered(shape).of("CronJob"), shape


@case
def each_export_has_a_directory_of_its_own_in_the_claim() -> None:
    for shape in ("exports", "embedded with exports", "everything"):
        container = pod(shape)["containers"][0]
        assert container["args"][:2] == ["state", "export"]
        assert "--to=/exports/$(POD_NAME)" in container["args"] and "--keep=7" in container["args"]
        name = next(each for each in container["env"] if each["name"] == "POD_NAME")
        assert name["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
        assert job(shape)["concurrencyPolicy"] == "Forbid"
    assert job("everything")["timeZone"] == "Europe/Zurich"
    assert claims(pod("exports")) == {"/exports": "backup"}


@case
def the_export_of_an_embedded_log_runs_beside_the_node_on_its_claim() -> None:
    spec = pod("embedded with exports")
    assert claims(spec) == {"/exports": "backup", "/var/lib/everlog": "data-prod-everlog-0"}
    (term,) = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    nodes = rendered("embedded with exports").nodes["spec"]["template"]["metadata"]["labels"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert term["labelSelector"]["matchLabels"].items() <= nodes.items()
    with_own = render(EMBEDDED, CLAIM, {"nodeSelector": {"disk": "fast"}, "affinity": {"nodeAffinity": {"a": 1}}})
    own = with_own.one("CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert own["nodeSelector"] == {"disk": "fast"} and own["affinity"]["nodeAffinity"] == {"a": 1}
    assert "podAffinity" in own["affinity"]


@case
def exports_need_a_claim_that_can_be_mounted() -> None:
    def refusal(*values: dict[str, Any]) -> str:
        try:
            render(*values)
        except Refused as refused:
            return str(refused)
        raise AssertionError(f"{values} are taken")

    assert "exports.claimName is empty" in refusal(KAFKA, {"exports": {"enabled": True}})
    once = {"persistence": {"accessModes": ["ReadWriteOncePod"]}}
    assert "ReadWriteOncePod" in refusal(EMBEDDED, CLAIM, once)
    assert render(KAFKA, CLAIM, once).of("CronJob")
    for wrong in ({"keep": 0}, {"schedule": ""}, {"every": "day"}):
        assert "exports" in refusal(KAFKA, {"exports": wrong})
