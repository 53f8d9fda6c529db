"""A broker, a schema registry and a node, each a process of its own, and the topics as stock clients see them."""

import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from patience import Deadline, Late, most_s, until_blocking

REPOSITORY = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")) / "debug" / "everlog"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Part:
    """A cluster of one broker, or Apicurio: run by tests/kafka/run, which ends it when our end of its input closes."""

    def __init__(self, kind: str, *options: str) -> None:
        command = [REPOSITORY / "tests/kafka/run", kind, "--short-lived", "--temporary", "--control", *options]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.dir = Path(self._answer("dir"))

    def ready(self) -> str:
        """Where it serves: host:port, or a URL."""
        return self._answer("ready")

    def order(self, verb: str) -> None:
        """kill, restart, pause or resume."""
        self.process.stdin.write(f"{verb} 1\n")
        self.process.stdin.flush()
        self._answer("done")

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()

    def _answer(self, expected: str) -> str:
        line = self.process.stdout.readline().rstrip("\n")
        word, _, rest = line.partition(" ")
        if word != expected:
            raise RuntimeError(f"tests/kafka/run said {line!r}, not {expected}")
        return rest


class Node:
    """`everlog dev` on a broker, with further settings."""

    def __init__(self, folder: Path, bootstrap: str, **settings: str) -> None:
        self.folder = folder
        self.port, self.metrics_port = free_port(), free_port()
        self.settings = {"EVERLOG_KAFKA__BOOTSTRAP_SERVERS": bootstrap, "EVERLOG_KAFKA__PARTITIONS": "4", **settings}
        self.process: subprocess.Popen | None = None
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def launch(self) -> None:
        command = [BINARY, "dev", "--address", self.address, "--data-dir", self.folder / "data"]
        command += ["--metrics-address", f"127.0.0.1:{self.metrics_port}"]
        environment = {**os.environ, "NO_COLOR": "1", **self.settings}
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )

    def start(self) -> None:
        self.launch()
        self.wait_ready()

    def wait_ready(self) -> None:
        try:
            until_blocking("the node serves", self._serves)
        except Late as late:
            raise RuntimeError(f"{late}: {self.page('/health/ready')}: {self.said()}") from late

    def _serves(self) -> bool:
        if self.process.poll() is not None:
            raise RuntimeError(f"the node ended with {self.process.returncode}: {self.said()}")
        return self.page("/health/ready")[0] == 200

    def page(self, path: str) -> tuple[int, str]:
        """Status and body of a page of its metrics address; status 0 where nobody answers."""
        try:
            with socket.create_connection(("127.0.0.1", self.metrics_port), timeout=most_s()) as link:
                link.sendall(f"GET {path} HTTP/1.0\r\nHost: everlog\r\n\r\n".encode())
                answer = b"".join(iter(lambda: link.recv(65536), b"")).decode()
        except OSError:
            return 0, ""
        head, _, body = answer.partition("\r\n\r\n")
        return int(head.split(" ")[1]), body

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(most_s())

    def ended(self) -> tuple[int, str]:
        """The exit code and the last words of a node that was launched to be refused."""
        until_blocking("the node ends", lambda: self.process.poll() is not None)
        return self.process.returncode, self.said()

    def said(self, lines: int = 12) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def memory_bytes(self) -> int:
        """The most that it ever had in memory."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError("the system does not tell")


@dataclass
class Read:
    """A record as it was consumed."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    raw: bytes | None
    headers: dict[str, bytes | None]
    time_ms: int
    value: dict[str, Any] | None = None


class Follower:
    """Reads a topic, committed records only, as fast as they come; Avro by the schema id from the registry."""

    def __init__(self, bootstrap: str, topic: str, registry: str | None, isolation: str = "read_committed") -> None:
        self.topic = topic
        self.records: list[Read] = []
        self._decode = AvroDeserializer(SchemaRegistryClient({"url": registry})) if registry else None
        self._changed = threading.Condition()
        self._failure: BaseException | None = None
        self._stop = False
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"test-{topic}-{time.monotonic_ns()}",
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 50,
                "topic.metadata.refresh.interval.ms": 1000,
            }
        )
        partitions = self._consumer.list_topics(topic, timeout=most_s()).topics[topic].partitions
        self._consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop = True
        self._thread.join()
        self._consumer.close()

    def wait(self, what: str, look: Callable[[list[Read]], Any]) -> Any:
        """The first true answer of `look`, asked again when something has come."""
        deadline = Deadline()
        with self._changed:
            while not (answer := look(self.records)):
                if self._failure:
                    raise RuntimeError(f"{self.topic} cannot be read: {self._failure!r}")
                if deadline.is_over():
                    raise Late(f"{what}, in {self.topic}")
                self._changed.wait(deadline.left_s())
            return answer

    def _run(self) -> None:
        try:
            while not self._stop:
                batch = [self._take(message) for message in self._consumer.consume(500, 0.1)]
                if batch:
                    with self._changed:
                        self.records.extend(batch)
                        self._changed.notify_all()
        except BaseException as error:
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _take(self, message: Message) -> Read:
        if message.error():
            raise RuntimeError(str(message.error()))
        read = Read(
            message.topic(),
            message.partition(),
            message.offset(),
            message.key(),
            message.value(),
            dict(message.headers() or []),
            message.timestamp()[1],
        )
        if self._decode and read.raw is not None and read.raw[:1] == b"\0":
            read.value = self._decode(read.raw, SerializationContext(read.topic, MessageField.VALUE))
        return read


@dataclass
class Sent:
    """A record that stands in the topic."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    partition: int = -1
    offset: int = -1
    error: str | None = None

    @property
    def place(self) -> tuple[int, int]:
        return self.partition, self.offset


@dataclass
class World:
    """What a case needs."""

    bootstrap: str
    registry: str
    node: Node
    folder: Path
    prefix: str = "everlog."
    followers: dict[str, Follower] = field(default_factory=dict)
    _producer: Producer | None = None

    def topic(self, noun: str) -> str:
        return self.prefix + noun

    def follow(self, noun: str) -> Follower:
        if noun not in self.followers:
            self.followers[noun] = Follower(self.bootstrap, self.topic(noun), self.registry)
        return self.followers[noun]

    @property
    def events(self) -> Follower:
        return self.follow("events")

    @property
    def replies(self) -> Follower:
        return self.follow("replies")

    @property
    def rejections(self) -> Follower:
        return self.follow("rejections")

    def producer(self) -> Producer:
        if not self._producer:
            limits = {"message.max.bytes": 100_000_000, "queue.buffering.max.kbytes": 1_000_000}
            settings = {"bootstrap.servers": self.bootstrap, "linger.ms": 5, "enable.idempotence": True}
            self._producer = Producer({**settings, **limits})
        return self._producer

    def send(
        self,
        key: bytes | str | None,
        value: bytes | str | None,
        headers: dict[str, str | bytes | None] | None = None,
        partition: int | None = None,
        time_ms: int = 0,
        producer: Producer | None = None,
    ) -> Sent:
        """Hands a record to the client; it stands in the topic after `flush`."""
        encoded = lambda given: given.encode() if isinstance(given, str) else given
        sent = Sent(encoded(key), encoded(value), [(n, encoded(v)) for n, v in (headers or {}).items()])

        def delivered(error: Any, message: Message) -> None:
            sent.error = str(error) if error else None
            sent.partition, sent.offset = message.partition(), message.offset()

        options = {} if partition is None else {"partition": partition}
        (producer or self.producer()).produce(
            self.topic("commands"),
            sent.value,
            sent.key,
            headers=sent.headers,
            timestamp=time_ms,
            on_delivery=delivered,
            **options,
        )
        (producer or self.producer()).poll(0)
        return sent

    def flush(self, *sent: Sent) -> None:
        """Returns when all that was handed over stands in the topic."""
        if self.producer().flush(most_s()):
            raise Late("the broker takes no records")
        for one in sent:
            assert one.error is None, one.error

    def close(self) -> None:
        for follower in self.followers.values():
            follower.close()
        self.followers.clear()

    # ------------------------------------------------------------------------------ what there is to see

    def history(self, workflow_id: str) -> list[dict[str, Any]]:
        """The events of a Workflow Id, in order."""
        key = workflow_id.encode()
        return [read.value for read in list(self.events.records) if read.key == key]

    def await_events(self, workflow_id: str, kind: str, count: int = 1) -> list[dict]:
        key = workflow_id.encode()

        def found(records: list[Read]) -> list[dict]:
            events = [read.value for read in records if read.key == key and read.value["type"] == kind]
            return events if len(events) >= count else []

        return self.events.wait(f"{count} {kind} of {workflow_id}", found)

    def await_rejection(self, sent: Sent) -> Read:
        at = (self.topic("commands"), *sent.place)
        is_its = lambda read: (read.value["topic"], read.value["partition"], read.value["offset"]) == at
        found = lambda records: [read for read in records if is_its(read)]
        return self.rejections.wait(f"the rejection of {at}", found)[0]

    def await_reply(self, sent: Sent) -> Read:
        at = (self.topic("commands"), *sent.place)
        is_its = lambda read: (read.value["topic"], read.value["partition"], read.value["offset"]) == at
        found = lambda records: [read for read in records if is_its(read)]
        return self.replies.wait(f"the reply to {at}", found)[0]


def temporary_folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="everlog-records-")
