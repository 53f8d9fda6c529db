"""Checks the alert rules and the dashboards of the Helm chart.

Each alert fires where it must and is silent where it must be; each query of each panel is answered by loaded nodes, one with the
embedded log and TLS, two on Kafka; each metric that is named is in docs/metrics.md; each alert has an entry in docs/runbook.md.
"""

import asyncio
import json
import logging
import math
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
sys.path += [str(TESTS / part) for part in ("sdk/python", "patience")]

import files  # noqa: E402
import load  # noqa: E402
import patience  # noqa: E402
from cleanup import LEFT, end_on_signals  # noqa: E402
from server import Broker, free_port  # noqa: E402
from temporalio.client import Client  # noqa: E402
from temporalio.service import TLSConfig  # noqa: E402

EVERLOG = os.environ.get("EVERLOG", files.REPOSITORY / "everlog")
CONFIG = """global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs: [{{job_name: everlog, static_configs: [{{targets: [{targets}]}}]}}]
"""
# In place of Grafana's.
VALUES = {"job": "everlog", "instance": ".*", "namespace": ".*", "__rate_interval": "10m"}


class Prometheus:
    """A server of its own, and what it says."""

    def __init__(self, folder: Path, targets: list[str]) -> None:
        config, self.port = folder / "prometheus.yml", free_port()
        config.write_text(CONFIG.format(rules=files.ALERTS, targets=", ".join(f"'{target}'" for target in targets)))
        command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}", f"--web.listen-address=127.0.0.1:{self.port}"]
        self.log = folder / "prometheus.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        LEFT.append(self.process.kill)

    def ask(self, path: str, **parameters: str | list[str]) -> object:
        """The data of an answer. Raises what Prometheus says where it is none."""
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters, doseq=True)}"
        try:
            with urllib.request.urlopen(url, timeout=patience.most_s()) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise ValueError(f"{error.code}: {error.read().decode()}") from error

    async def serves(self) -> None:
        async def look() -> bool:
            if self.process.poll() is not None:
                raise RuntimeError(f"Prometheus ended: {self.log.read_text()[-2000:]}")
            try:
                return bool(await asyncio.to_thread(self.ask, "status/buildinfo"))
            except (OSError, ValueError):
                return False

        await patience.until("Prometheus serves", look)

    async def says(self, query: str) -> None:
        await patience.until(query, lambda: asyncio.to_thread(self.has_answer, query))

    def has_answer(self, query: str) -> bool:
        """True where there is a value. Raises where there is an error."""
        samples = self.ask("query", query=query)["result"]
        return any(not math.isnan(float(sample["value"][1])) for sample in samples)


class Node:
    """A node with ports and a folder of its own, which it keeps when it is started again."""

    def __init__(self, name: str, folder: Path, arguments: list[str], variables: dict[str, str]) -> None:
        self.address, self.metrics = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        self.log = folder / f"{name}.log"
        listens = ["--address", self.address, "--metrics-address", self.metrics, "--http-address", "127.0.0.1:0"]
        variables = {"EVERLOG_SERVER__NAME": name, "EVERLOG_GATEWAY__NAMESPACE_POLLS_MAX": str(load.POLLS_MAX)} | variables
        words = ["env", *(f"{key}={value}" for key, value in variables.items()), EVERLOG, "dev", *listens]
        self.command = [*words, "--data-dir", folder / name, *arguments]
        self.start()

    def start(self) -> None:
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        LEFT.append(self.process.kill)

    async def stop(self) -> None:
        """It hands over its groups, and ends."""
        self.process.terminate()
        await asyncio.to_thread(self.process.wait, patience.most_s())


async def client_of(node: Node, authority: Path | None) -> Client:
    async def look() -> Client | None:
        try:
            tls = TLSConfig(server_root_ca_cert=authority.read_bytes()) if authority else False
            return await Client.connect(node.address, tls=tls)
        except (RuntimeError, OSError):
            return None

    try:
        return await patience.until(f"{node.address} serves", look)
    except patience.Late as late:
        raise RuntimeError(f"{late}: {node.log.read_text()[-2000:]}") from late


async def passed(name: str, faults: list[str]) -> bool:
    for fault in faults:
        print(f"FAIL {name}: {fault}")
    if not faults:
        print(f"ok   {name}")
    return not faults


async def promtool() -> bool:
    ok = True
    for name, arguments in (("rules", ["check", "rules", files.ALERTS]), ("alerts", ["test", "rules", *files.ALERT_TESTS])):
        process = await asyncio.create_subprocess_exec("promtool", *map(str, arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said, _ = await process.communicate()
        ok &= await passed(f"promtool {arguments[0]} {name}", [said.decode()] if process.returncode else [])
    return ok


async def answered(prometheus: Prometheus, query: str) -> str | None:
    """Why a query has no answer; none where it has one."""
    for name, value in VALUES.items():
        query = query.replace(f"${name}", value)
    try:
        await prometheus.says(query)
    except (patience.Late, ValueError) as error:
        return str(error)
    return None


async def dashboards(prometheus: Prometheus) -> bool:
    ok = await passed("dashboards: files", list(files.of_dashboards()))
    for name, board in files.boards():
        asked = list(files.queries(board))
        answers = await asyncio.gather(*(answered(prometheus, query) for _, query in asked))
        faults = [f"{title}: {why}" for (title, _), why in zip(asked, answers, strict=True) if why]
        for variable in board["templating"]["list"]:
            if variable["type"] == "query" and not values_of(prometheus, variable["definition"]):
                faults.append(f"the variable {variable['name']} has no values: {variable['definition']}")
        ok &= await passed(f"{name}: {len(asked)} queries", faults)
    return ok


def values_of(prometheus: Prometheus, definition: str) -> object:
    """What a variable offers: label_values(SERIES, LABEL)."""
    series, _, label = definition.removeprefix("label_values(").removesuffix(")").rpartition(", ")
    return prometheus.ask(f"label/{label}/values", **{"match[]": series.replace("$job", VALUES["job"])})


async def alerts(prometheus: Prometheus) -> bool:
    async def evaluated() -> list[dict]:
        groups = (await asyncio.to_thread(prometheus.ask, "rules"))["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        return rules if all(rule["health"] != "unknown" for rule in rules) else []

    rules = await patience.until("the rules are evaluated", evaluated)
    faults = [f"{rule['name']}: {rule['lastError']}" for rule in rules if rule["health"] != "ok"]
    return await passed(f"alerts: {len(rules)} rules", faults + list(files.of_alerts(rules)))


async def against_nodes(folder: Path) -> bool:
    broker = Broker(TESTS / "kafka" / "run")
    LEFT.append(broker.stop)
    brokers = await asyncio.to_thread(broker.ready)
    embedded = Node("embedded", folder, ["--tls"], {})
    shared = (folder, ["--kafka-bootstrap", brokers], {"EVERLOG_KAFKA__PREFIX": "watching."})
    on_kafka = Node("kafka-a", *shared)
    clients = await asyncio.gather(client_of(embedded, folder / "embedded" / "tls" / "ca.pem"), client_of(on_kafka, None))
    joined = Node("kafka-b", *shared)
    prometheus = Prometheus(folder, [node.metrics for node in (embedded, on_kafka, joined)])
    await prometheus.serves()
    await prometheus.says("count(everlog_ready == 1) == 3")
    await prometheus.says(f"everlog_cluster_groups_owned{{instance='{joined.metrics}'}} > 0")
    # What grows has to do it between two looks: the first takes over the groups of the other.
    await joined.stop()
    await prometheus.says("sum(increase(everlog_cluster_takeovers_total[10m])) > 0")
    joined.start()
    await prometheus.says("count(everlog_ready == 1) == 3")
    await asyncio.gather(*(load.run(client) for client in clients))
    return all([await dashboards(prometheus), await alerts(prometheus)])


async def run() -> int:
    # It builds what has changed, which may take longer than a server may take to answer.
    subprocess.run([EVERLOG, "--help"], stdout=subprocess.DEVNULL, check=True)
    folder = Path(tempfile.mkdtemp(prefix="everlog-watching-"))
    LEFT.append(lambda: shutil.rmtree(folder, ignore_errors=True))
    passed = await asyncio.gather(promtool(), against_nodes(folder))
    print(f"{sum(passed)} of {len(passed)} parts passed")
    return 0 if all(passed) else 1


def main() -> None:
    end_on_signals()
    # Workflows and activities fail, as they are meant to.
    logging.getLogger("temporalio").setLevel(logging.CRITICAL)
    try:
        status = asyncio.run(run())
    finally:
        for step in reversed(LEFT):
            step()
    sys.exit(status)


main()
