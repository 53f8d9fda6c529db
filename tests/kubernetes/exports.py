"""Exports by the CronJob of the chart, and an import of one: every start that was acknowledged before it is there."""

import subprocess
from pathlib import Path

import patience
from client import missing
from cluster import Cluster
from story import NAMESPACE, RELEASE, Story, step

CLAIM = "exports"
PORTS = [17233, 17234, 17235]


def claim(cluster: Cluster) -> None:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    metadata = {"name": CLAIM, "namespace": NAMESPACE}
    cluster.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})


def run_once(cluster: Cluster, name: str) -> None:
    """As an operator does who will not wait for the schedule."""
    cluster.kubectl("-n", NAMESPACE, "create", "job", name, f"--from=cronjob/{RELEASE}-exports")
    within = f"--timeout={int(4 * patience.most_s())}s"
    cluster.kubectl("-n", NAMESPACE, "wait", "--for=condition=complete", f"job/{name}", within)


def folder(cluster: Cluster) -> Path:
    """Where the claim is on the machine."""
    volume = cluster.get("-n", NAMESPACE, "pvc", CLAIM)["spec"]["volumeName"]
    return Path(cluster.get("pv", volume)["spec"]["local"]["path"])


@step
def exports_are_made_and_imported(story: Story) -> None:
    assert story.writer
    cluster = story.cluster
    claim(cluster)
    story.values["exports"] = {"enabled": True, "claimName": CLAIM, "keep": 1}
    story.release()
    known: list[str] = []
    for name in ("first-export", "second-export"):
        known = list(story.writer.acknowledged)
        run_once(cluster, name)
    (made,) = [each for each in folder(cluster).iterdir() if each.is_dir()]
    assert "second-export" in made.name, "one stays, the newest"
    imported = cluster.work / "imported"
    said = cluster.inside(story.binary, "state", "import", "--from", made, "--data-dir", imported)
    assert said.startswith("ok "), said
    lost = served(story, imported, known)
    assert not lost, f"{len(lost)} of {len(known)} are not in the export: {lost[:5]}"


def served(story: Story, data: Path, ids: list[str]) -> list[str]:
    """What an embedded node does not have of these."""
    calls, metrics, face = (f"127.0.0.1:{port}" for port in PORTS)
    addresses = ["--address", calls, "--metrics-address", metrics, "--http-address", face]
    command = ["nsenter", f"--net={story.cluster.network}", story.binary, "dev"]
    node = subprocess.Popen(
        [*command, "--data-dir", data, *addresses], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        ready = ["curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}"]
        patience.until_blocking(
            "the imported log is served",
            lambda: story.cluster.inside(*ready, f"http://{metrics}/health/ready", fails=True) == "200",
        )
        return missing(story.cluster, calls, [], ids)
    finally:
        node.terminate()
        node.wait()
