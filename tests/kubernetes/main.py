"""Installs the Helm chart on a real Kubernetes, and lives with it; see run."""

import argparse
import os
import signal
import sys
import tempfile
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "patience")]
os.environ["PYTHONPATH"] = str(HERE.parent / "patience")

import exports  # noqa: E402, F401 # a step of the story
import modes  # noqa: E402
import story  # noqa: E402
from brokers import Broker  # noqa: E402
from cluster import Certificates, Cluster  # noqa: E402
from images import Images  # noqa: E402

VOLUMES = 8


def namespace(name: str) -> dict:
    # The strictest level: an API server refuses every pod that asks for more.
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def volumes(work: Path) -> list[dict]:
    """Local ones, for those of a path of the host ignore the group of a pod."""
    made: list[dict] = [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    ]
    for number in range(VOLUMES):
        path = work / f"volumes/{number}"
        path.mkdir(parents=True)
        terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["machine"]}]}]
        made.append(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": f"local-{number}"},
                "spec": {
                    "capacity": {"storage": "5Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": "local",
                    "local": {"path": str(path)},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
                },
            }
        )
    return made


def live(work: Path, keep: bool) -> None:
    variables = {
        name: Path(os.environ[name]) for name in ("PARTS", "KUBECTL", "HELM_3", "HELM_4", "EVERLOG", "EVERLOG_CACHE")
    }
    cluster = Cluster(
        work, variables["PARTS"], variables["KUBECTL"], {"3": variables["HELM_3"], "4": variables["HELM_4"]}
    )
    broker = None
    try:
        cluster.start()
        authority = Certificates(work, "authority")
        broker = Broker(cluster, authority)
        images = Images(work, variables["EVERLOG_CACHE"])
        everlog = images.everlog(variables["EVERLOG"], ["1", "2"])
        for name in [images.pause(variables["PARTS"] / "pause"), *everlog]:
            cluster.load(images.archive(name))
        cluster.apply(namespace("flows"), namespace("apps"), *volumes(work))
        cluster.await_machine()
        broker.await_ready()
        print(
            f"ok    a cluster, a broker and the images; kubectl --kubeconfig {work}/kubeconfig in {cluster.network}",
            flush=True,
        )
        release = story.Story(cluster, broker, authority, everlog, variables["EVERLOG"])
        release.prepare()
        try:
            story.tell(release)
            modes.tell(cluster, broker)
        except BaseException:
            traceback.print_exc()
            explain(cluster)
            raise
    finally:
        if keep:
            input(f"kubectl --kubeconfig {work}/kubeconfig; nsenter --net={cluster.network}; Enter ends it ")
        if broker:
            broker.stop()
        cluster.stop()


def explain(cluster: Cluster) -> None:
    """What a reader of the failure wants to know."""
    for words in (("get", "pods,jobs,pvc", "-A", "-o", "wide"), ("get", "events", "-A", "--sort-by=.lastTimestamp")):
        print("\n".join(cluster.try_kubectl(*words).split("\n")[-40:]))
    for name in ("flows", "apps"):
        for line in cluster.try_kubectl("-n", name, "get", "pods", "-o", "name").split():
            print(f"{name} {line}: ...")
            print(cluster.try_kubectl("-n", name, "logs", line, "--all-containers", "--tail", "15"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests/kubernetes/run", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave the cluster until Enter")
    chosen = parser.parse_args()
    for sent in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(sent, lambda *_: sys.exit(143))
    # The path of a socket has 108 bytes at most.
    with tempfile.TemporaryDirectory(prefix="k8s-", ignore_cleanup_errors=True) as folder:
        live(Path(folder), chosen.keep)


if __name__ == "__main__":
    main()
