"""The topics Job, and `helm test`."""

from typing import Any

from chart import Objects, case, containers, render
from rendering import rendered
from shapes import EVERYTHING, KAFKA, SHAPES

HOOK, WEIGHT, POLICY = "helm.sh/hook", "helm.sh/hook-weight", "helm.sh/hook-delete-policy"


def annotations(each: dict[str, Any]) -> dict[str, str]:
    return each["metadata"].get("annotations") or {}


def sources(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """What the volumes of a pod are made of."""
    found = []
    for volume in spec["volumes"]:
        found += volume.get("projected", {}).get("sources", []) + (
            [volume] if "configMap" in volume or "secret" in volume else []
        )
    return found


@case
def the_job_runs_before_nodes_with_what_is_there_by_then() -> None:
    for shape in ("kafka", "everything", "example strimzi", "example production"):
        objects = rendered(shape)
        job = objects.one("Job")
        assert job["metadata"]["name"] == "prod-everlog-topics"
        assert annotations(job)[HOOK] == "pre-install,pre-upgrade" and annotations(job)[WEIGHT] == "-5"
        assert annotations(job)[POLICY] == "before-hook-creation,hook-succeeded"
        assert job["spec"]["backoffLimit"] == 6 and job["spec"]["activeDeadlineSeconds"] == 300
        spec = job["spec"]["template"]["spec"]
        assert spec["containers"][0]["args"] == ["topics", "create", "--config", "/etc/everlog/everlog.toml"]
        needed = [("ServiceAccount", spec["serviceAccountName"])]
        needed += [("ConfigMap", each["configMap"]["name"]) for each in sources(spec) if "configMap" in each]
        for kind, name in needed:
            first = annotations(objects.one(kind, name))
            assert first[HOOK] == "pre-install,pre-upgrade" and int(first[WEIGHT]) < -5, (shape, kind, name)
        assert spec["restartPolicy"] == "Never"


@case
def what_is_no_hook_is_of_the_release() -> None:
    for shape in SHAPES:
        for each in rendered(shape).all:
            is_hook = HOOK in annotations(each)
            component = each["metadata"].get("labels", {}).get("app.kubernetes.io/component")
            assert not is_hook or component in ("topics", "test"), (shape, each["kind"], each["metadata"]["name"])


@case
def an_ordinary_job_has_another_name_for_other_settings() -> None:
    def job(*values: dict[str, Any]) -> dict[str, Any]:
        objects = render(KAFKA, {"topics": {"hook": False}}, *values)
        assert not any(HOOK in annotations(each) for each in objects.all if each["kind"] != "Pod")
        name = objects.one("Job")["metadata"]["name"]
        assert name in objects.names("ConfigMap") and name.startswith("prod-everlog-topics-")
        return objects.one("Job")

    first = job()
    same = job({"replicas": 2, "service": {"port": 80}})
    assert first == same
    others = [
        {"image": {"tag": "9"}},
        {"config": {"kafka": {"partitions": 128}}},
        {"topics": {"backoffLimit": 1}},
        {"kafka": {"propertiesSecret": {"name": "a"}}},
        {"topics": {"sasl": {"username": "u", "passwordSecret": {"name": "a"}}}},
        {"extraEnv": [{"name": "A", "value": "b"}]},
    ]
    names = {job(each)["metadata"]["name"] for each in others} | {first["metadata"]["name"]}
    assert len(names) == len(others) + 1, names


@case
def a_job_of_one_name_is_one_job() -> None:
    """An API server refuses a change of a Job's pods."""
    seen: dict[str, Any] = {}
    for values in (
        {},
        {"podSecurityContext": {"runAsUser": 7}},
        {"commonLabels": {"a": "b"}},
        {"jobScheduling": {"nodeSelector": {"a": "b"}}},
    ):
        job = render(KAFKA, {"topics": {"hook": False}}, values).one("Job")
        assert seen.setdefault(job["metadata"]["name"], job["spec"]) == job["spec"], values


@case
def nodes_check_topics_where_no_hook_has_made_them() -> None:
    def first(objects: Objects) -> list[str]:
        return [each["name"] for each in objects.nodes["spec"]["template"]["spec"].get("initContainers", [])]

    assert first(rendered("kafka")) == []
    assert first(rendered("ordinary Job")) == ["check-topics"]
    assert first(rendered("topics are there")) == ["check-topics"] and not rendered("topics are there").of("Job")
    assert first(render(KAFKA, {"topics": {"create": False}, "extraInitContainers": [{"name": "a"}]})) == [
        "check-topics",
        "a",
    ]
    for shape in ("embedded", "example embedded"):
        assert first(rendered(shape)) == [] and not rendered(shape).of("Job")


@case
def the_job_logs_in_by_its_own_secrets_if_it_has_some() -> None:
    def names(spec: dict[str, Any]) -> set[str]:
        found = {each["secret"]["name"] for each in sources(spec) if "secret" in each}
        for container in containers(spec):
            for variable in container.get("env", []):
                found |= {ref["name"] for key, ref in variable.get("valueFrom", {}).items() if key == "secretKeyRef"}
        return found

    def both(shape: str) -> tuple[set[str], set[str]]:
        objects = rendered(shape)
        return names(objects.nodes["spec"]["template"]["spec"]), names(objects.one("Job")["spec"]["template"]["spec"])

    nodes, job = both("example kafka-sasl-tls")
    assert nodes == {"everlog-kafka", "kafka-ca", "everlog-nodes", "everlog-tokens"} and job == {
        "everlog-kafka",
        "kafka-ca",
    }
    nodes, job = both("example production")
    assert "everlog-kafka" in nodes and job == {"everlog-kafka-admin", "kafka-ca"}
    nodes, job = both("example strimzi")
    assert nodes == {"everlog", "kafka-cluster-ca-cert", "everlog-nodes"} and job == {
        "everlog-topics",
        "kafka-cluster-ca-cert",
    }
    nodes, job = both("everything")
    assert job == {"brokers-ca", "admin"}
    assert "ssl.certificate.location" not in rendered("everything").settings("prod-everlog-topics")
    assert "ssl.certificate.location" in rendered("everything").settings()


@case
def helm_test_asks_whether_every_partition_is_served() -> None:
    pod = rendered("everything").one("Pod")
    assert annotations(pod)[HOOK] == "test"
    assert pod["spec"]["containers"][0]["args"] == ["cluster", "status", "--config", "/etc/everlog/everlog.toml"]
    # Nodes answer only those with a certificate of theirs and the secret.
    assert {"nodes", "prod-everlog-nodes-tls"} <= {
        each["secret"]["name"] for each in sources(pod["spec"]) if "secret" in each
    }
    schemas = rendered("example embedded").one("Pod")["spec"]["containers"][0]["args"]
    assert schemas == ["schemas", "check", "--registry", "http://prod-everlog-http.flows.svc:7234"]
    by_tls = rendered("embedded with TLS and HTTP").one("Pod")["spec"]["containers"][0]["args"]
    assert by_tls[3:] == ["https://prod-everlog-http.flows.svc:7234", "--ca-file", "/etc/everlog/gateway/ca.crt"]
    assert not rendered("embedded").of("Pod")


@case
def what_everything_has_is_on_the_job() -> None:
    job = rendered("everything").one("Job")
    assert annotations(job)["topics"] == "job" and job["spec"]["template"]["metadata"]["annotations"]["topics"] == "pod"
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert EVERYTHING["extraEnv"][0] in container["env"] and container["envFrom"] == EVERYTHING["extraEnvFrom"]
    assert EVERYTHING["extraVolumes"][0] in job["spec"]["template"]["spec"]["volumes"]
