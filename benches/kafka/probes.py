"""Calls for chosen partitions at a steady pace, and how long nobody answers them: what a client sees of a move.

Each probe is a start that is sent again, with the same Workflow Id and the same request id: it goes through the
partition's journal like any step, and leaves nothing behind. It needs no library: a call is two frames of HTTP/2.
"""

import bisect
import heapq
import operator
import re
import select
import socket
import struct
import sys
import threading
import time
import zlib

SERVICE = "/temporal.api.workflowservice.v1.WorkflowService/"
BUCKETS = 16_384
# Types and flags of frames.
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
HEADER_TABLE_SIZE, INITIAL_WINDOW_SIZE = 1, 4
WINDOW_BYTES = 1 << 30
ANSWERS_WITHIN_S = 30
# Of a call as it is noted.
ANSWERED = operator.itemgetter(1)


class Connection:
    """A client's connection: unary calls, many at once. Whether a call was answered is told by its message, not by its
    status, which would need the whole of HPACK: a call that fails has none."""

    def __init__(self, address):
        host, _, port = address.rpartition(":")
        self.address = address
        self.socket = socket.create_connection((host, int(port)), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream, self.window, self.unread = 1, 65_535, b""
        self.messages, self.blocks = {}, {}
        settings = struct.pack(">HIHI", HEADER_TABLE_SIZE, 0, INITIAL_WINDOW_SIZE, WINDOW_BYTES)
        self.socket.sendall(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            + frame(SETTINGS, 0, 0, settings)
            + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", WINDOW_BYTES))
        )

    def send(self, method, message):
        """Sends a call; its number. None where the server takes no more bytes at the moment."""
        body = struct.pack(">BI", 0, len(message)) + message
        if self.window < len(body):
            return None
        self.window -= len(body)
        number, self.stream = self.stream, self.stream + 2
        if method not in self.blocks:
            self.blocks[method] = headers(method, self.address)
        call = frame(HEADERS, END_HEADERS, number, self.blocks[method]) + frame(DATA, END_STREAM, number, body)
        self.socket.sendall(call)
        return number

    def ended(self, within_s):
        """The calls that ended by now, or that end first: number and answer, which is none for one that failed."""
        if not select.select([self.socket], [], [], max(within_s, 0))[0]:
            return []
        came = self.socket.recv(1 << 18)
        if not came:
            raise ConnectionError(f"{self.address} has closed the connection")
        self.unread += came
        ended, at = [], 0
        while len(self.unread) - at >= 9:
            length = int.from_bytes(self.unread[at : at + 3], "big")
            kind, flags, stream = struct.unpack_from(">BBI", self.unread, at + 3)
            if len(self.unread) - at < 9 + length:
                break
            self.take(kind, flags, stream, self.unread[at + 9 : at + 9 + length], ended)
            at += 9 + length
        self.unread = self.unread[at:]
        return ended

    def take(self, kind, flags, stream, payload, ended):
        if kind == DATA:
            self.messages[stream] = self.messages.get(stream, b"") + payload
            if payload:
                # The connection's window never gets small; a stream's is large enough for any answer here.
                self.socket.sendall(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", len(payload))))
        elif kind == SETTINGS and not flags & ACK:
            self.socket.sendall(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self.socket.sendall(frame(PING, ACK, 0, payload))
        elif kind == WINDOW_UPDATE and stream == 0:
            self.window += struct.unpack(">I", payload)[0]
        elif kind == GOAWAY:
            raise ConnectionError(f"{self.address} says goodbye: {payload!r}")
        if kind == RST_STREAM or (kind in (DATA, HEADERS) and flags & END_STREAM):
            message = self.messages.pop(stream, b"")
            ended.append((stream, message[5:] if len(message) >= 5 and kind != RST_STREAM else None))

    def call(self, method, message):
        """A call by itself: its answer."""
        number, deadline = self.send(method, message), time.monotonic() + ANSWERS_WITHIN_S
        while time.monotonic() < deadline:
            for ended, answer in self.ended(1):
                if ended == number and answer is not None:
                    return answer
                if ended == number:
                    break
        sys.exit(f"{method} at {self.address} is not answered")


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + payload


def headers(method, authority):
    """Without compression: each name and each value is written out."""
    told = {
        ":method": "POST",
        ":scheme": "http",
        ":path": SERVICE + method,
        ":authority": authority,
        "content-type": "application/grpc",
        "te": "trailers",
    }
    text = lambda word: bytes([len(word)]) + word.encode()  # noqa: E731
    return b"".join(b"\0" + text(name) + text(value) for name, value in told.items())


def field(number, value):
    """A field of a message that holds text or a message; shorter than 128 bytes."""
    value = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2, len(value)]) + value


def start_request(workflow_id):
    queue = field(1, "nobody polls it")
    fields = {1: "default", 2: workflow_id, 3: field(1, "probe"), 4: queue, 9: "probe", 10: workflow_id}
    return b"".join(field(number, value) for number, value in fields.items())


class Probes(threading.Thread):
    """Probes partitions through one node, each as often as its entry of `every_s` says, until it is ended."""

    def __init__(self, address, partitions, every_s):
        super().__init__(daemon=True)
        self.connection, self.every_s = Connection(address), every_s
        described = self.connection.call("DescribeNamespace", field(1, "default"))
        namespace_id = re.search(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", described)[0]
        self.requests = {each: start_request(workflow_in(each, partitions, namespace_id)) for each in every_s}
        # Of each partition: when calls were sent and answered, and when others failed.
        self.good = {each: [] for each in every_s}
        self.failed = {each: [] for each in every_s}
        # How late this process itself ever was.
        self.late_s, self.held, self.is_over, self.broken = 0, 0, False, None
        self.under_way = {}
        self.start()

    def run(self):
        now = time.monotonic()
        due = [(now + every_s, each) for each, every_s in self.every_s.items()]
        heapq.heapify(due)
        try:
            while not self.is_over:
                self.listen(due[0][0] - time.monotonic())
                now = time.monotonic()
                while due[0][0] <= now:
                    at, each = due[0]
                    self.late_s = max(self.late_s, now - at)
                    self.probe(each)
                    heapq.heapreplace(due, (max(at, now - 1) + self.every_s[each], each))
        except OSError as error:
            self.broken = error

    def probe(self, each):
        sent = time.monotonic()
        number = self.connection.send("StartWorkflowExecution", self.requests[each])
        if number is None:
            self.held += 1
        else:
            self.under_way[number] = (each, sent)

    def listen(self, within_s):
        for number, answer in self.connection.ended(within_s):
            each, sent = self.under_way.pop(number)
            ended = time.monotonic()
            if answer is None:
                self.failed[each].append(ended)
            else:
                self.good[each].append((sent, ended))

    def first(self, each, sent_after):
        """When the first of the calls that were sent after a moment was answered; none so far."""
        calls = self.good[each]
        since = bisect.bisect_left(calls, sent_after, key=ANSWERED)
        return next((ended for sent, ended in calls[since:] if sent > sent_after), None)

    def until_answered(self, partitions, sent_after, within_s):
        """Waits until a call to each of the partitions that was sent after a moment is answered: when each was."""
        deadline = time.monotonic() + within_s
        while True:
            if self.broken:
                sys.exit(f"the probes broke off: {self.broken}")
            found = {each: self.first(each, sent_after) for each in partitions}
            if None not in found.values():
                return found
            if time.monotonic() > deadline:
                silent = [each for each in found if found[each] is None]
                sys.exit(f"no call is answered within {within_s} s by partitions {silent}")
            time.sleep(0.005)

    def pauses(self, partitions, began, ended):
        """For each partition the longest time without an answer, in seconds, that ends in a span; and that until its end."""
        found = {}
        for each in partitions:
            calls = self.good[each]
            since = max(bisect.bisect_right(calls, began, key=ANSWERED) - 1, 0)
            times = [moment for _, moment in calls[since:] if moment <= ended]
            found[each] = max((later - earlier for earlier, later in zip(times, [*times[1:], ended])), default=ended - began)
        return found

    def failures(self, began, ended):
        return sum(began <= moment <= ended for moments in self.failed.values() for moment in moments)

    def end(self):
        self.is_over = True
        self.join()
        self.connection.socket.close()
        if self.broken:
            sys.exit(f"the probes broke off: {self.broken}")


def workflow_in(partition, partitions, namespace_id):
    """A Workflow Id of a partition, as `partition/src/model/keys.rs` spreads them."""
    for number in range(100 * partitions):
        workflow_id = f"probe-{partition}-{number}"
        bucket = zlib.crc32(namespace_id + b"\0" + workflow_id.encode()) % BUCKETS
        if bucket * partitions // BUCKETS == partition:
            return workflow_id
    sys.exit(f"no Workflow Id is found for partition {partition} of {partitions}")
