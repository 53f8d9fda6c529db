"""Pods: what they may do, where they run, how they start and stop."""

import json
from typing import Any

from chart import case, containers, render
from rendering import rendered
from shapes import EMBEDDED, EVERYTHING, KAFKA, SHAPES

# The chart has no say in these.
FOREIGN = {"before", "beside"}


@case
def every_pod_is_restricted() -> None:
    for shape in SHAPES:
        pods = rendered(shape).pods()
        assert pods
        for owner, _, spec in pods:
            where = (shape, owner)
            context = spec["securityContext"]
            assert context["runAsNonRoot"] is True and context["runAsUser"] == 65532, where
            assert context["seccompProfile"] == {"type": "RuntimeDefault"}, where
            assert context["fsGroup"] == 65532 and context["fsGroupChangePolicy"] == "OnRootMismatch", where
            assert spec["automountServiceAccountToken"] is False and spec["enableServiceLinks"] is False, where
            assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys(), where
            assert all("hostPath" not in volume for volume in spec["volumes"]), where
            for container in containers(spec):
                if container["name"] in FOREIGN:
                    continue
                context = container["securityContext"]
                assert context["allowPrivilegeEscalation"] is False, where
                assert context["readOnlyRootFilesystem"] is True, where
                assert context["capabilities"] == {"drop": ["ALL"]}, where
                assert container["resources"]["limits"]["memory"] and "cpu" not in container["resources"]["limits"], (
                    where
                )
                assert container["resources"]["requests"], where


@case
def every_pod_has_the_image_and_its_secrets() -> None:
    for owner, _, spec in rendered("everything").pods():
        assert spec["imagePullSecrets"] == [{"name": "registry"}], owner
        for container in containers(spec):
            assert container["name"] in FOREIGN or container["image"] == "everlog@sha256:" + "0" * 64, owner
    assert rendered("kafka").node["image"] == "everlog:0.1.0"
    assert render(KAFKA, {"image": {"repository": "r.example.org/e", "tag": "2"}}).node["image"] == "r.example.org/e:2"


@case
def probes_ask_for_health_in_plain_text_with_tls_too() -> None:
    for shape in SHAPES:
        node = rendered(shape).node
        for probe, path in (("startup", "/health/live"), ("liveness", "/health/live"), ("readiness", "/health/ready")):
            handler = {key for key in node[f"{probe}Probe"] if not key.endswith(("Seconds", "Threshold"))}
            assert handler == {"httpGet"}, (shape, probe)
            assert node[f"{probe}Probe"]["httpGet"] == {"path": path, "port": "metrics"}, (shape, probe)
    assert {"name": "metrics", "containerPort": 9233} in rendered("kafka").node["ports"]
    changed = render(KAFKA, {"probes": {"startup": {"failureThreshold": 7}}}).node["startupProbe"]
    assert changed == {
        "httpGet": {"path": "/health/live", "port": "metrics"},
        "periodSeconds": 5,
        "timeoutSeconds": 3,
        "failureThreshold": 7,
    }


@case
def a_node_leaves_the_services_before_it_stops() -> None:
    spec = rendered("kafka").nodes["spec"]["template"]["spec"]
    sleep = spec["containers"][0]["lifecycle"]["preStop"]
    assert sleep == {"sleep": {"seconds": 5}}, "a hook that fails would kill the node at once"
    # The sleep comes out of the grace period; a stop takes 29 s.
    assert spec["terminationGracePeriodSeconds"] >= sleep["sleep"]["seconds"] + 29 + 10
    assert "lifecycle" not in render(KAFKA, {"preStopSleepSeconds": 0}).node


@case
def nodes_start_at_once_and_are_replaced_one_by_one() -> None:
    spec = rendered("kafka").nodes["spec"]
    assert spec["podManagementPolicy"] == "Parallel" and spec["minReadySeconds"] == 10 and spec["replicas"] == 3
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    canary = render(KAFKA, {"updateStrategy": {"partition": 2}}).nodes["spec"]["updateStrategy"]
    assert canary["rollingUpdate"] == {"partition": 2}
    by_hand = render(KAFKA, {"updateStrategy": {"type": "OnDelete"}}).nodes["spec"]["updateStrategy"]
    assert by_hand == {"type": "OnDelete"}


@case
def a_budget_lets_one_node_go() -> None:
    budget = rendered("kafka").one("PodDisruptionBudget")["spec"]
    assert budget["maxUnavailable"] == 1 and "minAvailable" not in budget
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    other = render(KAFKA, {"podDisruptionBudget": {"budget": {"minAvailable": "50%"}}}).one("PodDisruptionBudget")[
        "spec"
    ]
    assert other["minAvailable"] == "50%" and "maxUnavailable" not in other
    # One that forbids every eviction of a single node would hold maintenance up for ever.
    for values in ([EMBEDDED], [KAFKA, {"replicas": 1}], [KAFKA, {"podDisruptionBudget": {"enabled": False}}]):
        assert not render(*values).of("PodDisruptionBudget")


@case
def nodes_are_spread() -> None:
    def spread(*values: dict[str, Any]) -> dict[str, str]:
        spec = render(*values).nodes["spec"]
        found = spec["template"]["spec"].get("topologySpreadConstraints", [])
        for each in found:
            if each["topologyKey"] != "rack":
                assert each["labelSelector"] == spec["selector"] and each["maxSkew"] == 1
        return {each["topologyKey"]: each["whenUnsatisfiable"] for each in found}

    zone, host = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
    assert spread(KAFKA) == {zone: "ScheduleAnyway", host: "DoNotSchedule"}
    assert spread(KAFKA, {"replicas": 1}) == {} and spread(EMBEDDED) == {}
    assert spread(KAFKA, {"spreading": {"hosts": "ScheduleAnyway", "zones": ""}}) == {host: "ScheduleAnyway"}
    assert spread(EVERYTHING)["rack"] == "ScheduleAnyway"


@case
def every_pod_is_scheduled_as_asked() -> None:
    fields = ("nodeSelector", "tolerations", "affinity", "priorityClassName", "runtimeClassName", "schedulerName")
    for owner, _, spec in rendered("everything").pods():
        for field in fields:
            if EVERYTHING[field] != {"nodeAffinity": {}}:
                assert spec[field] == EVERYTHING[field], (owner, field)
    for owner, _, spec in render(EVERYTHING, {"jobScheduling": {"nodeSelector": {"jobs": "here"}}}).pods():
        jobs = "StatefulSet" not in owner
        assert ({"jobs": "here"} == spec["nodeSelector"]) == jobs and ("priorityClassName" in spec) != jobs, owner


@case
def claims_stay() -> None:
    spec = rendered("kafka").nodes["spec"]
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    (claim,) = spec["volumeClaimTemplates"]
    assert claim["metadata"]["name"] == "data" and claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert "storageClassName" not in claim["spec"], "empty means the cluster's default, not no class"
    without = rendered("no claims").nodes["spec"]
    assert "volumeClaimTemplates" not in without
    assert {"name": "data", "emptyDir": {"sizeLimit": "1Gi"}} in without["template"]["spec"]["volumes"]


@case
def a_node_may_write_its_data_and_tmp_alone() -> None:
    for shape in SHAPES:
        mounts = {each["name"]: each for each in rendered(shape).node["volumeMounts"] if each["name"] != "more"}
        assert set(mounts) == {"settings", "tmp", "data"}, shape
        assert mounts["settings"]["readOnly"] is True and mounts["data"]["mountPath"] == "/var/lib/everlog"


@case
def a_change_of_settings_restarts_nodes_and_nothing_else_does() -> None:
    def template(*values: dict[str, Any]) -> str:
        return json.dumps(render(KAFKA, *values).nodes["spec"]["template"], sort_keys=True)

    before = template()
    assert template({"config": {"limits": {"signals_max": 5}}}) != before
    for values in ({"replicas": 1}, {"service": {"port": 80}}, {"topics": {"create": True, "backoffLimit": 1}}):
        if "replicas" not in values:
            assert template(values) == before, values


@case
def a_nodes_name_is_its_pods() -> None:
    variables = {each["name"]: each for each in rendered("kafka").node["env"]}
    assert variables["EVERLOG_SERVER__NAME"]["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    advertised = variables["EVERLOG_CLUSTER__ADVERTISED"]["value"]
    assert advertised == "$(EVERLOG_SERVER__NAME).prod-everlog-nodes.flows.svc.cluster.local:7235"
    assert not [each["name"] for each in rendered("embedded").node["env"] if "CLUSTER" in each["name"]]
