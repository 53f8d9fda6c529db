"""A release on Kafka under a writer: each step is what operators do, and ends when all nodes are ready again."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import patience
from brokers import Broker
from client import Writer, now
from cluster import HERE, Certificates, Cluster

CHART = HERE.parents[1] / "helm/everlog"
EVERLOG_CONFIG = ["--config", "/etc/everlog/everlog.toml"]
NAMESPACE, RELEASE = "flows", "everlog"
SERVICE = "everlog.flows.svc"
STEPS: list[Callable[["Story"], None]] = []


def step(function: Callable[["Story"], None]) -> Callable[["Story"], None]:
    STEPS.append(function)
    return function


class Story:
    def __init__(
        self, cluster: Cluster, broker: Broker, authority: Certificates, images: list[str], binary: Path
    ) -> None:
        self.cluster, self.broker, self.authority, self.images = cluster, broker, authority, images
        self.binary = binary
        self.values_file = cluster.work / "values.json"
        self.values: dict[str, Any] = {
            "image": {"repository": images[0].split(":")[0], "tag": "1", "pullPolicy": "Never"},
            "config": {
                "kafka": {
                    "bootstrap_servers": broker.secure,
                    "partitions": 16,
                    "replication": 1,
                    "properties": ["security.protocol=SASL_SSL", "sasl.mechanism=SCRAM-SHA-512"],
                },
                "memory": {"database_bytes": 67108864},
                "auth": {"enabled": True},
            },
            "kafka": {"propertiesSecret": {"name": "everlog-kafka"}, "caSecret": {"name": "kafka-ca"}},
            "topics": {"propertiesSecret": {"name": "everlog-kafka-admin"}},
            "nodeSecret": {"name": "everlog-nodes"},
            "tokens": {"secret": {"name": "everlog-tokens"}},
            "auth": {"apiKeysSecret": {"name": "everlog-api-keys"}},
            "tls": {
                "gateway": {"enabled": True, "secretName": "gateway"},
                "nodes": {"enabled": True, "secretName": "nodes"},
            },
            # There is one machine.
            "spreading": {"hosts": "ScheduleAnyway"},
            "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
            "persistence": {"size": "1Gi", "storageClass": "local"},
            "networkPolicy": {"enabled": True},
        }
        made = subprocess.check_output(
            [binary, "auth", "key", "--name", "writer", "--grant", "default:write"], text=True
        ).split("\n")
        (self.key,) = [word for line in made for word in line.split() if word.startswith("elk_")]
        (self.key_line,) = [line.strip() for line in made if line.strip().startswith("writer ")]
        self.writer: Writer | None = None

    # --------------------------------------------------------------------------------------------- what it uses

    def prepare(self) -> None:
        """Users, and the Secrets that the chart does not make."""
        for user in ("first", "second", "admin"):
            self.broker.user(user, f"{user}-password")
        self.broker.grant(["first", "second"], "admin")
        cluster = self.cluster
        self.login("everlog-kafka", "first")
        self.login("everlog-kafka-admin", "admin")
        cluster.secret(NAMESPACE, "kafka-ca", {"ca.crt": self.authority.pem})
        cluster.secret(NAMESPACE, "everlog-nodes", {"secret": "0123456789abcdef0123456789abcdef"})
        cluster.secret(NAMESPACE, "everlog-tokens", {"keys": "ab" * 32 + "\n"})
        cluster.secret(NAMESPACE, "everlog-api-keys", {"api-keys": self.key_line + "\n"})
        self.certify("gateway", [SERVICE, "everlog", "everlog.flows"])
        self.certify("nodes", ["*.everlog-nodes.flows.svc.cluster.local"])

    def login(self, name: str, user: str) -> None:
        text = f"sasl.username={user}\nsasl.password={user}-password\n"
        self.cluster.secret(NAMESPACE, name, {"kafka.properties": text})

    def certify(self, name: str, names: list[str]) -> str:
        """A new certificate in its Secret; its serial number."""
        pem, key = self.authority.sign(name, names)
        data: dict[str, str | Path] = {"tls.crt": pem, "tls.key": key, "ca.crt": self.authority.pem}
        self.cluster.secret(NAMESPACE, name, data, "kubernetes.io/tls")
        return subprocess.check_output(["openssl", "x509", "-in", pem, "-noout", "-serial"], text=True).strip()

    def begin_to_write(self) -> None:
        address = patience.until_blocking(
            "the service has an address",
            lambda: self.cluster.try_kubectl(
                "-n", NAMESPACE, "get", "service", RELEASE, "-o", "jsonpath={.spec.clusterIP}", "--ignore-not-found"
            ),
        )
        self.writer = Writer(self.cluster, f"{address}:7233", "run", [str(self.authority.pem), self.key])

    def release(self, *words: str, version: str = "4") -> None:
        """Installs or upgrades to the values as they are, and waits for the nodes."""
        self.install(*words, version=version)
        self.await_nodes()

    def install(self, *words: str, version: str = "4") -> None:
        self.values_file.write_text(json.dumps(self.values))
        self.cluster.helm(
            "upgrade",
            "--install",
            RELEASE,
            CHART,
            "-n",
            NAMESPACE,
            "--values",
            self.values_file,
            "--wait",
            "--timeout",
            f"{int(4 * patience.most_s())}s",
            *words,
            version=version,
        )

    def await_nodes(self) -> None:
        """All are ready, all have their version, and every partition is served."""
        count = self.values.get("replicas", 3)

        def ready() -> bool:
            status = self.cluster.get("-n", NAMESPACE, "statefulset", RELEASE)["status"]
            is_new = status.get("updateRevision") == status.get("currentRevision")
            return (
                is_new
                and status.get("readyReplicas", 0) == status["replicas"] == status.get("availableReplicas", 0) == count
            )

        patience.until_blocking("all nodes are ready", ready)
        patience.until_blocking("every partition is served", self.is_served)

    def is_served(self) -> bool:
        try:
            self.cluster.kubectl(
                "-n",
                NAMESPACE,
                "exec",
                f"{RELEASE}-0",
                "-c",
                "everlog",
                "--",
                "everlog",
                "cluster",
                "status",
                *EVERLOG_CONFIG,
            )
        except RuntimeError:
            return False
        return True

    def pods(self) -> list[dict[str, Any]]:
        return self.cluster.get("-n", NAMESPACE, "pods", "-l", "app.kubernetes.io/component=node")["items"]

    def log(self, pod: str) -> str:
        return self.cluster.kubectl("-n", NAMESPACE, "logs", pod, "-c", "everlog")

    def serial(self, pod: dict[str, Any], port: int) -> str:
        """Of the certificate that a node shows."""
        address = f"{pod['status']['podIP']}:{port}"
        said = self.cluster.inside(
            "timeout",
            str(int(patience.most_s())),
            "openssl",
            "s_client",
            "-connect",
            address,
            "-alpn",
            "h2",
            fails=True,
        )
        if "-----BEGIN" not in said:
            return ""
        pem = (
            "-----BEGIN"
            + said.split("-----BEGIN", 1)[1].split("-----END CERTIFICATE-----")[0]
            + "-----END CERTIFICATE-----\n"
        )
        return subprocess.run(
            ["openssl", "x509", "-noout", "-serial"], input=pem, capture_output=True, text=True
        ).stdout.strip()


# ------------------------------------------------------------------------------------------------- the steps


@step
def install(story: Story) -> None:
    begun = Thread(target=story.begin_to_write)
    begun.start()
    story.release()
    begun.join()
    left = story.cluster.get(
        "-n", NAMESPACE, "jobs,pods,configmaps,serviceaccounts", "-l", "app.kubernetes.io/component=topics"
    )
    assert not left["items"], "the hook leaves nothing"


@step
def helm_test(story: Story) -> None:
    story.cluster.helm("test", RELEASE, "-n", NAMESPACE)


@step
def upgrade(story: Story) -> None:
    story.values["image"]["tag"] = "2"
    story.values["config"]["limits"] = {"signals_max": 9999}
    story.release()
    assert all(pod["spec"]["containers"][0]["image"] == story.images[1] for pod in story.pods())


@step
def rollback(story: Story) -> None:
    story.cluster.helm("rollback", RELEASE, "-n", NAMESPACE, "--wait", "--timeout", f"{int(4 * patience.most_s())}s")
    story.await_nodes()
    assert all(pod["spec"]["containers"][0]["image"] == story.images[0] for pod in story.pods())


@step
def upgrade_by_helm_3(story: Story) -> None:
    story.release(version="3")
    assert all(pod["spec"]["containers"][0]["image"] == story.images[1] for pod in story.pods())


@step
def a_mistyped_setting_stops_nothing(story: Story) -> None:
    before = [pod["metadata"]["uid"] for pod in story.pods()]
    try:
        story.release("--set", "config.limits.signals_maxx=1", "--set", "topics.backoffLimit=0")
    except RuntimeError as reason:
        assert "topics" in str(reason), reason
    else:
        raise AssertionError("it is installed")
    assert "limits.signals_maxx is unknown" in story.cluster.kubectl("-n", NAMESPACE, "logs", "job/everlog-topics")
    assert [pod["metadata"]["uid"] for pod in story.pods()] == before
    story.release()
    assert [pod["metadata"]["uid"] for pod in story.pods()] == before, "and the same values restart nothing"


@step
def another_login_at_kafka(story: Story) -> None:
    story.login("everlog-kafka", "second")
    for pod in story.pods():
        name = pod["metadata"]["name"]
        patience.until_blocking(f"{name} takes it", lambda name=name: "Kafka credentials changed" in story.log(name))
    story.broker.forget("first")
    assert all(not restarts(pod) for pod in story.pods())


@step
def another_certificate_of_the_gateway(story: Story) -> None:
    serial = story.certify("gateway", [SERVICE, "everlog", "everlog.flows"])
    for pod in story.pods():
        patience.until_blocking("it is shown", lambda pod=pod: story.serial(pod, 7233) == serial)
    assert all(not restarts(pod) for pod in story.pods())


@step
def other_certificates_of_nodes(story: Story) -> None:
    serial = story.certify("nodes", ["*.everlog-nodes.flows.svc.cluster.local"])
    for pod in story.pods():
        patience.until_blocking("it is shown", lambda pod=pod: story.serial(pod, 7235) == serial)
    assert all(not restarts(pod) for pod in story.pods())


def restarts(pod: dict[str, Any]) -> int:
    return pod["status"]["containerStatuses"][0]["restartCount"]


@step
def a_pod_is_killed(story: Story) -> None:
    name = f"{RELEASE}-1"
    before = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in story.pods()}
    story.cluster.kubectl("-n", NAMESPACE, "delete", "pod", name, "--grace-period=0", "--force")
    patience.until_blocking(
        "there is another one",
        lambda: any(pod["metadata"]["name"] == name and pod["metadata"]["uid"] != before[name] for pod in story.pods()),
    )
    story.await_nodes()


@step
def a_process_is_killed(story: Story) -> None:
    (pod,) = [each for each in story.pods() if each["metadata"]["name"] == f"{RELEASE}-2"]
    container = pod["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
    before = restarts(pod)
    story.cluster.inside(
        "ctr",
        "--address",
        story.cluster.work / "containerd.sock",
        "-n",
        "k8s.io",
        "tasks",
        "kill",
        "--signal",
        "SIGKILL",
        container,
    )
    patience.until_blocking(
        "its container is started again",
        lambda: any(restarts(each) > before for each in story.pods() if each["metadata"]["name"] == f"{RELEASE}-2"),
    )
    story.await_nodes()


@step
def evictions_go_one_at_a_time(story: Story) -> None:
    def evict(name: str) -> str:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": NAMESPACE}}
        path = story.cluster.work / "eviction.json"
        path.write_text(json.dumps(body))
        return story.cluster.try_kubectl(
            "create", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction", "-f", path
        )

    assert "Success" in evict(f"{RELEASE}-0")
    refused = evict(f"{RELEASE}-1")
    assert "disruption budget" in refused, refused
    patience.until_blocking(
        "it is replaced", lambda: all("deletionTimestamp" not in pod["metadata"] for pod in story.pods())
    )
    story.await_nodes()


@step
def larger_claims(story: Story) -> None:
    """The way of the page; the volumes of the tests cannot grow themselves."""
    before = [pod["metadata"]["uid"] for pod in story.pods()]
    story.values["persistence"]["size"] = "2Gi"
    try:
        story.release()
    except RuntimeError as reason:
        assert "Larger claims" in str(reason), reason
    else:
        raise AssertionError("it is installed")
    story.cluster.kubectl("-n", NAMESPACE, "delete", "statefulset", RELEASE, "--cascade=orphan")
    story.release()
    assert [pod["metadata"]["uid"] for pod in story.pods()] == before, "the nodes go on"


@step
def one_node_more(story: Story) -> None:
    story.values["replicas"] = 4
    story.release()


@step
def two_nodes_less(story: Story) -> None:
    story.values["replicas"] = 2
    story.release()
    claims = story.cluster.get("-n", NAMESPACE, "pvc")["items"]
    assert len(claims) == 4, "claims stay"


@step
def all_nodes_again(story: Story) -> None:
    story.values["replicas"] = 3
    story.release()


def another_secret_of_nodes(story: Story) -> None:
    """Nodes with different ones do not trust each other: all stop, and begin again with what topics and claims hold."""
    story.values["replicas"] = 0
    story.install()
    patience.until_blocking("all nodes have stopped", lambda: not story.pods())
    story.cluster.secret(NAMESPACE, "everlog-nodes", {"secret": "fedcba9876543210fedcba9876543210"})
    story.values["replicas"] = 3
    story.release()


def look_for_all(writer: Writer) -> None:
    lost = writer.missing()
    assert not lost, f"{len(lost)} of {len(writer.acknowledged)} are lost: {lost[:5]}"


def tell(story: Story) -> None:
    """Each step under the writer, with the longest gap that it made, and then every id that was acknowledged."""
    for each in STEPS:
        began = now()
        each(story)
        assert story.writer
        story.writer.await_more(each.__name__)
        gap, call = story.writer.longest_gap_s(began), story.writer.longest_call_s(began)
        print(
            f"ok    {each.__name__} ({now() - began:.0f} s; longest gap {gap:.1f} s, longest call {call:.1f} s)",
            flush=True,
        )
    assert story.writer
    story.writer.stop()
    look_for_all(story.writer)
    # Before a node was ready the service leads to nobody.
    first = story.writer.times[0]
    failures = [line for line in story.writer.failures if float(line.split()[1]) > first]
    print(
        f"ok    {len(story.writer.acknowledged)} starts were acknowledged and are there; "
        f"{len(failures)} calls failed since the first; "
        f"longest gap {story.writer.longest_gap_s(0):.1f} s, longest call {story.writer.longest_call_s(0):.1f} s",
        flush=True,
    )
    for failure in failures:
        print(f"      {failure[:200]}")
    began = now()
    another_secret_of_nodes(story)
    look_for_all(story.writer)
    print(f"ok    another_secret_of_nodes ({now() - began:.0f} s)", flush=True)
