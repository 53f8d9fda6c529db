"""The writer of the tests, and what it has seen: writer.py in the cluster's network."""

import subprocess
import sys
import threading
import time

import patience
from cluster import HERE, Cluster


def start(cluster: Cluster, address: str, name: str, rest: list[str]) -> subprocess.Popen[str]:
    command = ["nsenter", f"--net={cluster.network}", sys.executable, HERE / "writer.py", address, name, *rest]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def missing(cluster: Cluster, address: str, rest: list[str], ids: list[str]) -> list[str]:
    """Those that are not there."""
    said, _ = start(cluster, address, "read", rest).communicate("\n".join(ids))
    lines = said.split("\n")
    lost = [line for line in lines if line.startswith("missing ")]
    assert f"found {len(ids) - len(lost)}" in lines, said
    return lost


class Writer:
    """Writes until it is stopped. A gap is the time between two starts that were acknowledged one after the other."""

    def __init__(self, cluster: Cluster, address: str, name: str, rest: list[str]) -> None:
        self.cluster, self.address, self.rest = cluster, address, rest
        self.acknowledged: list[str] = []
        self.times: list[float] = []
        self.took: list[float] = []
        self.failures: list[str] = []
        self.process = start(cluster, address, name, rest)
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            kind, *rest = line.split()
            if kind == "ack":
                self.acknowledged.append(rest[0])
                self.took.append(float(rest[2]))
                self.times.append(float(rest[1]))
            else:
                self.failures.append(line.strip())

    def await_more(self, what: str, count: int = 4) -> None:
        """Until it has written so much more: what was done before has had its effect on calls by then."""
        before = len(self.times)

        def more() -> bool:
            assert self.process.poll() is None, f"the writer ended with {self.process.returncode}"
            return len(self.times) >= before + count

        patience.until_blocking(f"calls are acknowledged after {what}; {self.failures[-1:]}", more)

    def longest_gap_s(self, since: float) -> float:
        """Of those that ended since then."""
        times = sorted(self.times)
        ends = [(later - earlier, later) for earlier, later in zip(times, times[1:], strict=False)]
        return max((gap for gap, end in ends if end >= since), default=0.0)

    def longest_call_s(self, since: float) -> float:
        """Of those that ended since then."""
        return max((took for took, end in zip(self.took, self.times, strict=False) if end >= since), default=0.0)

    def stop(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()

    def missing(self) -> list[str]:
        """Those that were acknowledged and are not there."""
        return missing(self.cluster, self.address, self.rest, self.acknowledged)


def now() -> float:
    return time.time()
