"""The programs of docs/kafka.md and docs/schedules.md, as they are printed there, and each command in both of its forms."""

import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bytes_of import body, framed
from case import Report, Skipped, case
from effects import REPLY, SALE, SCHEDULE, milliseconds, of_schedule, task_token, worker
from patience import Late, most_s, until_blocking
from records import ids
from world import REPOSITORY, World, free_port

PAGE = REPOSITORY / "docs" / "kafka.md"
SCHEDULES = REPOSITORY / "docs" / "schedules.md"
FENCE = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.MULTILINE)


@dataclass
class Block:
    """What stands between two fences; the first word behind them is its language."""

    info: str
    text: str

    @property
    def file(self) -> str | None:
        """The name that its first line gives it."""
        found = re.match(r"(?:#|//|--|<!--) ([\w/.-]+\.\w+)", self.text)
        return found and found.group(1)


def blocks(page: Path = PAGE) -> list[Block]:
    return [Block(*found) for found in FENCE.findall(page.read_text())]


def paste(folder: Path, page: Path = PAGE) -> None:
    """Every program of the page becomes a file."""
    for block in blocks(page):
        if block.file:
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text)


def shell_lines(word: str) -> list[str]:
    """The commands of the blocks that are marked with this word."""
    texts = [block.text for block in blocks() if block.info.split()[:2] == ["sh", word]]
    return [line for text in texts for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def environment(world: World) -> dict[str, str]:
    return {**os.environ, "KAFKA": world.bootstrap, "REGISTRY": world.registry, "EVERLOG": world.node.address}


def run(command: list[str] | str, folder: Path, world: World, fetches: bool = False) -> str:
    """What it printed; a failure with all that it said. What it fetches and compiles takes longer than a step of a test."""
    shell = isinstance(command, str)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command] if shell else command,
        cwd=folder, env=environment(world), text=True, errors="replace", stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=most_s() * (5 if fetches else 1),
    )  # fmt: skip
    if done.returncode:
        raise AssertionError(f"{command}: {done.returncode}: {done.stdout[-2000:]} {done.stderr[-4000:]}")
    return done.stdout


@contextmanager
def the_pages_worker(world: World, folder: Path) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "worker.py"], cwd=folder, env=environment(world))
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def check_told(said: str) -> None:
    """The programs print the outcome, and then the history of the order."""
    assert "started" in said, said
    wanted = ["WorkflowExecutionStarted", "WorkflowExecutionSignaled", "ActivityTaskCompleted",
              "WorkflowExecutionCompleted"]  # fmt: skip
    places = [said.find(kind) for kind in wanted]
    assert -1 not in places and places == sorted(places), said
    assert "parcel" in said, said


@case
def the_programs_run_as_they_are_printed(world: World, report: Report) -> None:
    folder = world.folder / "page"
    paste(folder)
    with the_pages_worker(world, folder):
        with report.row("Python: a start within a transaction, the reply, the history"):
            check_told(run([sys.executable, "place_order.py"], folder, world))
        with report.row("Java: a start within a transaction, the reply, the history"):
            needs("javac", "a JDK 17 or newer")
            needs("mvn", "Maven")
            own_repository(folder)
            check_told("".join(run(line, folder, world, fetches=True) for line in shell_lines("java")))
        # Apicurio's converter does not speak Confluent's paths.
        if "/apis/" in world.registry:
            with report.row("Kafka Connect: the events in a sink of Apache Kafka's, by Apicurio's converter"):
                connect(world, folder)
            if os.environ.get("EVERLOG_FULL"):
                with report.row("Kafka Connect: the events in PostgreSQL, by Debezium's sink, and a question in SQL"):
                    postgres(world, folder)
        with report.row("redrive: a refused command is sent again, once"):
            redrive(world, folder)
        with report.row("kcat: JSON commands by hand"):
            needs("kcat", "kcat")
            for line in shell_lines("kcat"):
                print(f"#    $ {line[:110]}")
                run(line, folder, world)
            (event,) = world.await_events("order-7", "WorkflowExecutionCompleted")
            assert "parcel" in str(event["workflow_execution_completed"]["result"]), event


def own_repository(folder: Path) -> None:
    """What Maven fetches is kept with the other things that the next run needs."""
    repository = Path(os.environ["EVERLOG_CACHE"]) / "records-maven"
    (folder / ".mvn").mkdir(exist_ok=True)
    (folder / ".mvn" / "maven.config").write_text(f"-Dmaven.repo.local={repository}\n")


def connect(world: World, folder: Path) -> None:
    needs("mvn", "Maven")
    own_repository(folder / "sink")
    fetch, serve = shell_lines("connect")
    run(fetch, folder, world, fetches=True)
    there = folder / "sink" / "events.txt"
    wanted = ["type=WorkflowExecutionCompleted", "workflow_execution_completed=Struct{", "parcel for order-"]
    with sinking(serve, folder, world):
        until_blocking("the sink has the events", lambda: there.exists() and all(word in there.read_text() for word in wanted))


@contextmanager
def sinking(serve: str, folder: Path, world: World, **more: str) -> Iterator[None]:
    """A worker of Kafka Connect; what it has said is told where something came too late."""
    own = {**environment(world), "APICURIO": world.registry.partition("/apis/")[0], **more}
    with open(folder / "sink" / "log", "wb") as log:
        # In a group of its own, so that what the shell starts can be ended.
        process = subprocess.Popen(
            ["bash", "-c", serve], cwd=folder, env=own, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield
    except Late as late:
        raise AssertionError(f"{late}: {(folder / 'sink' / 'log').read_text()[-6000:]}") from late
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def postgres(world: World, folder: Path) -> None:
    """The events in PostgreSQL, each once, and the page's question to them."""
    own_repository(folder / "sink")
    (more,) = [block.text for block in blocks() if block.info.split() == ["xml", "more"]]
    pom = folder / "sink" / "pom.xml"
    pom.write_text(pom.read_text().replace("  </dependencies>\n", f"{more}  </dependencies>\n"))
    fetch, serve = shell_lines("postgres")
    run(fetch, folder, world, fetches=True)
    database = Postgres(folder / "postgres", free_port())
    try:
        with sinking(serve, folder, world, POSTGRES=database.url, POSTGRES_USER=database.USER, POSTGRES_PASSWORD="none"):
            completed = "SELECT count(*) FROM events WHERE type = 'WorkflowExecutionCompleted'"
            until_blocking("the database has the events", lambda: int(database.ask(completed) or 0) >= 2)
            told = database.ask((folder / "sink" / "steps.sql").read_text())
        activity, steps, *spans = told.splitlines()[0].split("|")
        assert activity and int(steps) >= 2 and all(re.match(r"\d\d:\d\d:\d\d", span) for span in spans), told
        twice = "SELECT count(*) - count(DISTINCT (run_id, event_id)) FROM events"
        assert database.ask(twice) == "0", "an event is there twice"
    finally:
        database.stop()


class Postgres:
    """A database server of Debian's, which its own user runs: it refuses to be root's."""

    USER = "postgres"

    def __init__(self, folder: Path, port: int):
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        if not found:
            raise Skipped("PostgreSQL is missing")
        self.bin, self.folder, self.port = found[-1], folder, port
        self.url = f"jdbc:postgresql://127.0.0.1:{port}/postgres"
        self.user = self.USER if os.geteuid() == 0 else None
        folder.mkdir()
        if self.user:
            shutil.chown(folder, self.user)
            # It has to reach what is its own.
            for above in [parent for parent in folder.parents if Path("/tmp") in parent.parents]:
                above.chmod(above.stat().st_mode | 0o011)
        self.call("initdb", "-D", str(folder / "data"), "-U", self.USER, "-A", "trust")
        options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder}"
        self.call("pg_ctl", "-D", str(folder / "data"), "-l", str(folder / "log"), "-o", options, "-w", "start")

    def call(self, program: str, *words: str) -> str:
        done = subprocess.run(
            [str(self.bin / program), *words], user=self.user, cwd=self.folder, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=most_s(),
        )  # fmt: skip
        assert done.returncode == 0, (program, done.stdout)
        return done.stdout.strip()

    def ask(self, question: str) -> str:
        """Rows as lines; empty where the table is not there yet."""
        try:
            return self.call("psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", self.USER, "-At", "-c", question)
        except AssertionError as error:
            if "does not exist" in str(error):
                return ""
            raise

    def stop(self) -> None:
        self.call("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "-w", "stop")


def redrive(world: World, folder: Path) -> None:
    started = world.send("redriven", json.dumps(SALE), {**REPLY, "command-id": "first"})
    refused = world.send("redriven", json.dumps(SALE), {**REPLY, "command-id": "second"})
    world.flush(started)
    world.await_reply(started)
    assert world.await_rejection(refused).value["code"] == "already_started"
    ended = world.send("redriven", json.dumps({"type": "terminate"}), REPLY)
    world.flush(ended)
    world.await_reply(ended)
    for again in (1, 0):
        said = run([sys.executable, "redrive.py", "already_started"], folder, world)
        assert said.count(f"again: already_started everlog.commands {refused.partition} {refused.offset}\n") == again, said
    world.await_events("redriven", "WorkflowExecutionStarted", 2)


@case
def the_next_firings_of_all_schedules_are_read_from_timers(world: World, report: Report) -> None:
    folder = world.folder / "firings"
    folder.mkdir()
    paste(folder, SCHEDULES)

    def firings() -> list[str]:
        return run([sys.executable, "next_firings.py"], folder, world).splitlines()

    with report.row("the next firings, in order, without what was paused or deleted"):
        each = {"next-early": "2090-01-01T00:00:00+00:00", "next-late": "2090-01-01T00:00:07+00:00"}
        for id, moment in each.items():
            spec = {"start_time": milliseconds(datetime.fromisoformat(moment)), "intervals": [{"interval_ms": 1_000}]}
            made = json.loads(json.dumps(SCHEDULE))
            made["create_schedule"]["schedule"] |= {"spec": spec}
            of_schedule(world, id, made)
        wanted = [f"{moment} {id}" for id, moment in each.items()]
        until_blocking("the firings are there", lambda: [line for line in firings() if "next-" in line] == wanted)
        of_schedule(world, "next-early", {"type": "patch_schedule", "patch_schedule": {"pause": "for a while"}})
        until_blocking("a pause takes one away", lambda: [line for line in firings() if "next-" in line] == wanted[1:])
        for id in each:
            of_schedule(world, id, {"type": "delete_schedule"})
        until_blocking("they are gone", lambda: not [line for line in firings() if "next-" in line])


def needs(program: str, what: str) -> None:
    if not shutil.which(program):
        raise Skipped(f"{what} is missing")


@case
def each_documented_command_takes_effect_in_both_forms(world: World, report: Report) -> None:
    schema_id = ids(world).command
    forms = {"json": [], "avro": []}
    for block in blocks():
        words = block.info.split()
        if words[1:] == ["command"]:
            forms["json"].append((json.loads(block.text)["type"], block.text.encode()))
        elif words[1:] == ["avro"]:
            command = ast.literal_eval(block.text)
            forms["avro"].append((command["type"], framed(schema_id, body(command))))
    kinds = ["start", "signal", "signal_with_start", "update", "update_with_start", "cancel", "terminate", "complete_activity",
             "fail_activity", "create_schedule", "update_schedule", "patch_schedule", "delete_schedule", "pause_activity",
             "unpause_activity", "reset_activity", "update_activity_options", "pause", "unpause", "update_options"]  # fmt: skip
    for form, commands in forms.items():
        assert [kind for kind, _ in commands] == kinds, (form, [kind for kind, _ in commands])
    with worker(world):
        for form, commands in forms.items():
            for kind, value in commands:
                with report.row(f"{kind} in {form}"):
                    send(world, f"page-{form}-{kind}", kind, value)


def send(world: World, workflow_id: str, kind: str, value: bytes) -> None:
    """Sends a command of the page to a run for which it makes sense."""
    if kind.endswith("_schedule"):
        send_to_schedule(world, workflow_id, kind, value)
        return
    if "start" not in kind:
        begun = world.send(workflow_id, json.dumps(SALE), REPLY)
        world.flush(begun)
        assert world.await_reply(begun).value["status"] == "started"
    if kind in ("complete_activity", "fail_activity"):
        task_token(world, workflow_id)
    elif "activity" in kind:
        world.await_events(workflow_id, "ActivityTaskScheduled")
    elif kind == "unpause":
        paused = world.send(workflow_id, json.dumps({"type": "pause"}), REPLY)
        world.flush(paused)
        assert world.await_reply(paused).value["status"] == "done"
    sent = world.send(workflow_id, value, REPLY)
    world.flush(sent)
    outcome = world.await_reply(sent).value
    wanted = "completed" if kind.startswith("update") and "options" not in kind else "started" if "start" in kind else "done"
    assert outcome["status"] == wanted, outcome


def send_to_schedule(world: World, schedule_id: str, kind: str, value: bytes) -> None:
    """Sends a command of the page to a schedule, which is there unless it is to be made."""
    if kind != "create_schedule":
        begun = world.send(schedule_id, json.dumps(SCHEDULE), REPLY)
        world.flush(begun)
        assert world.await_reply(begun).value["status"] == "done"
    sent = world.send(schedule_id, value, REPLY)
    world.flush(sent)
    reply = world.await_reply(sent)
    assert (reply.value["status"], reply.value["workflow_id"]) == ("done", schedule_id), reply
    assert (reply.value["conflict_token"] is None) == (kind == "delete_schedule"), reply


@case
def the_page_tells_every_code(world: World, report: Report) -> None:
    text = (REPOSITORY / "processor/avro/src/command/mod.rs").read_text()
    known = set(re.findall(r'Self::\w+ => "(\w+)"', text))
    told = set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE))
    assert len(known) > 20 and known <= told, known - told
