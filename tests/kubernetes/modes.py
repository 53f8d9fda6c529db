"""The other shapes of the chart: the embedded log, and an ordinary Job instead of a hook."""

import os
import subprocess
import sys
from pathlib import Path

import patience
from brokers import Broker
from client import Writer, now
from cluster import HERE, Cluster
from story import CHART

EXAMPLE = HERE.parents[1] / "helm/examples/embedded.yaml"
WORKER = HERE.parents[1] / "helm/examples/worker/worker.py"
SAMPLE = HERE.parents[1] / "tests/samples/python/entity"
NAMESPACE = "apps"
LITTLE = [
    "--set",
    "resources.requests.cpu=50m",
    "--set",
    "image.pullPolicy=Never",
    "--set",
    "persistence.storageClass=local",
    "--set",
    "persistence.size=1Gi",
    "--set",
    "image.repository=localhost/everlog",
]


def install(cluster: Cluster, release: str, version: str, *words: str | Path) -> None:
    cluster.helm(
        "upgrade",
        "--install",
        release,
        CHART,
        "-n",
        NAMESPACE,
        *LITTLE,
        *words,
        "--wait",
        "--timeout",
        f"{int(4 * patience.most_s())}s",
        version=version,
    )


def address(cluster: Cluster, service: str) -> str:
    return cluster.get("-n", NAMESPACE, "service", service)["spec"]["clusterIP"] + ":7233"


def embedded(cluster: Cluster) -> None:
    """What was acknowledged is there after an upgrade, and after the pod is killed."""
    install(cluster, "everlog", "3", "-f", EXAMPLE, "--set-string", "image.tag=1")
    cluster.helm("test", "everlog", "-n", NAMESPACE, version="3")
    writer = Writer(cluster, address(cluster, "everlog"), "embedded", [])
    writer.await_more("install")
    install(cluster, "everlog", "3", "-f", EXAMPLE, "--set-string", "image.tag=2")
    writer.await_more("upgrade")
    cluster.kubectl("-n", NAMESPACE, "delete", "pod", "everlog-0", "--grace-period=0", "--force")
    cluster.kubectl(
        "-n", NAMESPACE, "rollout", "status", "statefulset/everlog", "--timeout", f"{int(patience.most_s())}s"
    )
    writer.await_more("kill")
    workers(cluster)
    writer.stop()
    lost = writer.missing()
    assert not lost, f"of {len(writer.acknowledged)} these are lost: {lost[:5]}"
    cluster.helm("uninstall", "everlog", "-n", NAMESPACE, "--wait", version="3")
    assert [each["metadata"]["name"] for each in cluster.get("-n", NAMESPACE, "pvc")["items"]] == ["data-everlog-0"], (
        "the data stay"
    )


def workers(cluster: Cluster) -> None:
    """The program of the examples is a worker of the sample, and ends well at SIGTERM."""
    variables = {"TEMPORAL_ADDRESS": address(cluster, "everlog"), "PYTHONPATH": str(SAMPLE), "PYTHONSAFEPATH": "1"}
    command = ["nsenter", f"--net={cluster.network}", sys.executable]
    worker = subprocess.Popen([*command, WORKER], env={**os.environ, **variables})
    try:
        done = subprocess.run(
            [*command, HERE / "sample.py"], env={**os.environ, **variables}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    finally:
        worker.terminate()
        status = worker.wait()
    assert status == 0, f"the worker ended with {status}"


def ordinary_job(cluster: Cluster, broker: Broker) -> None:
    """Nodes wait until the Job has made the topics, and another image makes another Job."""
    words = [
        "--set",
        f"config.kafka.bootstrap_servers={broker.open}",
        "--set",
        "config.kafka.prefix=gitops.",
        "--set",
        "replicas=1",
        "--set",
        "config.kafka.partitions=4",
        "--set",
        "config.kafka.replication=1",
        "--set",
        "topics.hook=false",
    ]
    install(cluster, "gitops-everlog", "4", *words, "--set-string", "image.tag=1")
    first = {each["metadata"]["name"] for each in cluster.get("-n", NAMESPACE, "jobs")["items"]}
    install(cluster, "gitops-everlog", "4", *words, "--set-string", "image.tag=2")
    second = {each["metadata"]["name"] for each in cluster.get("-n", NAMESPACE, "jobs")["items"]}
    assert len(first) == len(second) == 1 and first != second, (first, second)
    cluster.helm("test", "gitops-everlog", "-n", NAMESPACE)
    cluster.helm("uninstall", "gitops-everlog", "-n", NAMESPACE, "--wait")


def tell(cluster: Cluster, broker: Broker) -> None:
    for name, each in (
        ("the embedded log", lambda: embedded(cluster)),
        ("an ordinary Job", lambda: ordinary_job(cluster, broker)),
    ):
        began = now()
        each()
        print(f"ok    {name} ({now() - began:.0f} s)", flush=True)
