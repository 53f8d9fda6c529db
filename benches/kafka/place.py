"""Where figures are taken: one broker, one node, the tools beside them, and what each of them uses."""

import ctypes
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

HOME = pathlib.Path(__file__).resolve().parents[2]
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
READY_WITHIN_S = 300
# The state of a connection in /proc.
ESTABLISHED = "01"


def binary(name):
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", HOME / "target"))
    path = target / "release" / name
    if not path.exists():
        sys.exit(f"{path} is not built: cargo build --release --locked --workspace --bins")
    return str(path)


def die_with_me():
    """Before a child's program begins: it is killed when this process ends, however that is."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def cpu_seconds(pid):
    """User and system time of a process so far."""
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


def resident_bytes(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024


def looks(pid):
    """What a process has at the moment: resident MB, threads, open files, connections."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        lines = pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
        inodes.update(fields[9] for fields in map(str.split, lines) if fields[3] == ESTABLISHED)
    files = [os.readlink(file) for file in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
    return {
        "memory": resident_bytes(pid) / 1e6,
        "threads": len(os.listdir(f"/proc/{pid}/task")),
        "files": len(files),
        "connections": sum(file.removeprefix("socket:[").removesuffix("]") in inodes for file in files),
    }


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Broker:
    """Apache Kafka as `tests/kafka/run` starts it. It ends when its standard input closes."""

    def __init__(self, folder):
        command = [str(HOME / "tests/kafka/run"), "broker", "--dir", str(folder), "--control"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.folder = pathlib.Path(self.answer("dir"))
        self.bootstrap = self.answer("ready")
        self.process.stdin.write("pid 1\n")
        self.process.stdin.flush()
        self.pid = int(self.answer("done"))

    def answer(self, expected):
        line = self.process.stdout.readline().strip()
        word, _, rest = line.partition(" ")
        if word != expected:
            sys.exit(f"tests/kafka/run said '{line}'")
        return rest

    def topic_bytes(self, prefix):
        """What lies in the files of each topic of a prefix."""
        sizes = {}
        for folder in (self.folder / "node-1/data").glob(f"{prefix}*-*"):
            topic = folder.name[len(prefix) :].rpartition("-")[0]
            files = sum(file.stat().st_size for file in folder.glob("*.log"))
            sizes[topic] = sizes.get(topic, 0) + files
        return sizes

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Node:
    """`everlog dev`, on the broker or on the embedded log; alone there, or one that joins others."""

    def __init__(self, folder, broker=None, prefix="everlog.", joins=False, program=None, **settings):
        self.folder, self.broker, self.prefix = pathlib.Path(folder), broker, prefix
        self.program = program or binary("everlog")
        self.settings = {"KAFKA__PREFIX": prefix, "KAFKA__PARTITIONS": 8, "HTTP__ADDRESS": "127.0.0.1:0", **settings}
        self.joins = joins
        self.address, self.metrics_address = (f"127.0.0.1:{free_port()}" for _ in range(2))
        self.ready_s = self.start()

    def is_ready(self, metrics):
        """A node that was placed in its life before says for a moment that it is ready, and serves nothing yet."""
        serving = total(metrics, "everlog_partition_serving")
        return metrics.get("everlog_ready") == 1 and (self.joins or serving == self.settings["KAFKA__PARTITIONS"])

    def start(self, is_so=None):
        """Returns the seconds from the start of the process until its metrics are so: until it is ready."""
        command = [self.program, "dev", "--data-dir", str(self.folder)]
        command += ["--address", self.address, "--metrics-address", self.metrics_address]
        if self.broker:
            command += ["--kafka-bootstrap", self.broker.bootstrap]
        variables = {f"EVERLOG_{key}": str(value) for key, value in self.settings.items()}
        self.log = open(f"{self.folder}.log", "ab")
        began = time.monotonic()
        self.process = subprocess.Popen(
            command,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            preexec_fn=die_with_me,
        )
        self.pid = self.process.pid
        self.wait(began, is_so or self.is_ready)
        return time.monotonic() - began

    def wait(self, began, is_so):
        """Looks at the metrics until they are so; what nobody answers is not so."""
        while True:
            try:
                if is_so(self.metrics()):
                    return
            except (OSError, http.client.HTTPException):
                pass
            if self.process.poll() is not None or time.monotonic() - began > READY_WITHIN_S:
                sys.exit(f"the node did not get ready: {self.folder}.log tells why")
            time.sleep(0.01)

    def restore(self):
        """Starts it, and waits until the log has brought all rows. Gives seconds until it is ready and until all are
        there, and seconds, rows and bytes twice: of the state alone, from its first rows until it is ready, and of all."""
        seen = []

        def look(metrics):
            seen.append((time.monotonic(), *brought(metrics)))
            return self.is_ready(metrics)

        began = time.monotonic()
        ready = self.start(look)
        first = next(at for at, (_, rows, _) in enumerate(seen) if rows > 0)
        # The look before has none of the first rows yet.
        state = [last - earlier for last, earlier in zip(seen[-1], seen[max(first - 1, 0)])]
        self.wait(began, lambda metrics: total(metrics, "everlog_restore_behind") == 0)
        whole = time.monotonic() - began
        return ready, state, (whole, *brought(self.metrics()))

    def metrics(self):
        """All samples of its metrics page, by name and labels."""
        with urllib.request.urlopen(f"http://{self.metrics_address}/metrics", timeout=5) as page:
            lines = page.read().decode().splitlines()
        samples = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
        return {name: float(value) for name, value in samples}

    def kill(self):
        self.end(signal.SIGKILL)

    def end(self, with_signal=signal.SIGTERM):
        self.process.send_signal(with_signal)
        self.process.wait()
        self.log.close()

    def remove(self):
        self.end(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


def brought(metrics):
    """Rows and bytes that were restored."""
    return tuple(total(metrics, f"everlog_restore_{what}_total") for what in ("rows", "bytes"))


def total(metrics, name):
    """The sum of a metric over its labels."""
    return sum(value for key, value in metrics.items() if key == name or key.startswith(name + "{"))


def tool(name, *arguments):
    """Starts one of the programs of this folder whose report is JSON on its standard output."""
    command = [binary(name), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=die_with_me)


def report(process):
    out, _ = process.communicate()
    if not out:
        sys.exit(f"{' '.join(process.args)}: there is no report")
    found = json.loads(out)
    if isinstance(found.get("failures"), int) and found["failures"]:
        print(f"FAILED {process.args}: {found['failures']}", file=sys.stderr)
    return found


def open_load(node, rate):
    """Begins to start workflows through a node, so many per second, until it is terminated."""
    flags = ["--rate", rate, "--duration", 1_000_000, "--warmup", 0, "--json", "-"]
    return tool("everlog-load", "open", "--address", node.address, "--pid", node.pid, *flags)


def load(node, scenario, *options, **settings):
    """Runs `everlog-load` to its end; failures are told and do not stop anything."""
    flags = [word for key, value in settings.items() for word in (f"--{key.replace('_', '-')}", value)]
    arguments = [scenario, *options, "--address", node.address, "--pid", node.pid, "--json", "-", *flags]
    answer = report(tool("everlog-load", *arguments))
    for failure in answer["failures"]:
        print(f"FAILED {scenario}: {failure}", file=sys.stderr)
    return answer


class Watch:
    """What a broker and a node have used and done between two moments."""

    def __init__(self, node, broker):
        self.node, self.broker = node, broker
        self.began, self.before = time.monotonic(), self.look()

    def look(self):
        cpu = {"node": cpu_seconds(self.node.pid)}
        topics = {}
        if self.broker:
            cpu["broker"] = cpu_seconds(self.broker.pid)
            topics = self.broker.topic_bytes(self.node.prefix)
        return cpu, topics, self.node.metrics()

    def stop(self):
        after = self.look()
        self.seconds = time.monotonic() - self.began
        self.cpu, self.topics, self.metrics = (
            {key: value - old.get(key, 0) for key, value in new.items()} for old, new in zip(self.before, after)
        )
        return self

    def steps(self):
        """Journal records that were acknowledged."""
        return self.metrics["everlog_kafka_records_total"]

    def requests(self):
        found = {}
        for name, value in self.metrics.items():
            kind = re.fullmatch(r'everlog_kafka_requests_total\{request="(\w+)"\}', name)
            if kind and value:
                found[kind[1]] = value
        return found

    def quantile_ms(self, histogram, quantile):
        """Of a histogram of seconds, interpolated within its bucket."""
        buckets = []
        for name, count in self.metrics.items():
            bound = re.fullmatch(re.escape(histogram) + r'_bucket\{le="([^"]+)"\}', name)
            if bound and bound[1] != "+Inf":
                buckets.append((float(bound[1]), count))
        buckets.sort()
        wanted = quantile * self.metrics[f"{histogram}_count"]
        lower, below = 0.0, 0.0
        for bound, count in buckets:
            if count >= wanted and count > below:
                return 1000 * (lower + (bound - lower) * (wanted - below) / (count - below))
            lower, below = bound, count
        return 1000 * lower
