"""Two nodes on one broker: what they serve, what they are told to do, and what their logs say."""

import datetime
import json
import os
import subprocess
import sys
import time

from place import binary, die_with_me

PARTITIONS = 8
WITHIN_S = 120


class Pair:
    def __init__(self, nodes):
        self.nodes = nodes
        if nodes:
            self.a, self.b = nodes

    def begin_command(self, *words):
        """Begins `everlog cluster` with these words."""
        settings = {"BOOTSTRAP_SERVERS": self.a.broker.bootstrap, "PREFIX": self.a.prefix, "REPLICATION": "1"}
        variables = {f"EVERLOG_KAFKA__{key}": value for key, value in settings.items()}
        return subprocess.Popen(
            [binary("everlog"), "cluster", *words],
            env={**os.environ, **variables},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=die_with_me,
        )

    def command(self, *words):
        status = self.begin_command(*words).wait()
        if status:
            sys.exit(f"everlog cluster {' '.join(words)} ends with {status}")

    def serving(self, node):
        """The partitions that a node serves; none where it does not answer."""
        try:
            metrics = node.metrics()
        except OSError:
            return set()
        label = 'everlog_partition_serving{partition="'
        return {int(key.removeprefix(label)[:-2]) for key, value in metrics.items() if key.startswith(label) and value}

    def until_serves(self, node, partitions):
        self.until(lambda: len(self.serving(node)) == partitions, 0.05, f"{node.folder} serves {partitions} partitions")

    def until(self, is_so, look_every_s, what, within_s=WITHIN_S):
        deadline = time.monotonic() + within_s
        while not is_so():
            if time.monotonic() > deadline:
                sys.exit(f"not so within {within_s} s: {what}")
            time.sleep(look_every_s)

    def mark(self):
        return Mark(self.nodes)

    def end(self):
        for node in self.nodes:
            node.end()
        if self.nodes:
            self.a.broker.end()


class Mark:
    """A moment, from which on the logs of nodes are read."""

    def __init__(self, nodes):
        self.at = datetime.datetime.now(datetime.timezone.utc)
        self.places = {f"{node.folder}.log": os.path.getsize(f"{node.folder}.log") for node in nodes}

    def lines(self, message):
        """Those since then whose message begins so, and the seconds until each."""
        found = []
        for path, place in self.places.items():
            with open(path) as log:
                log.seek(place)
                for line in log:
                    if line.startswith("{") and line.endswith("}\n") and f'"message":"{message}' in line:
                        told = json.loads(line)
                        at = datetime.datetime.fromisoformat(told["timestamp"])
                        found.append({**told, "since_mark_s": (at - self.at).total_seconds()})
        return sorted(found, key=lambda line: line["since_mark_s"])
