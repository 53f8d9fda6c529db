"""What the checker is fed with: histories, the clients' log of calls, the workers' log of activity attempts.

Times are milliseconds since the epoch by the clock of the machine. A log file holds a JSON object a line.
"""

import dataclasses
import functools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from google.protobuf import json_format
from temporalio.api.common.v1 import Payloads
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import History, HistoryEvent


@dataclass
class Run:
    """One run's history, as the server gave it."""

    workflow_id: str
    run_id: str
    events: list[HistoryEvent]


@dataclass
class Call:
    """One try of a client's call.

    Tries of one call share its id, which is its request id; so they share its effect, too. A signal carries
    the id as the member `id` of its first argument, a JSON object. Refused means: the server said no, and did
    nothing; unknown: no answer, or one that leaves open whether something was done.
    """

    id: str
    kind: Literal[
        "start",
        "signal",
        "query",
        "describe",
        "update",
        "reset",
        "terminate",
        "pause",
        "unpause",
        "pause activity",
        "unpause activity",
    ]
    workflow_id: str
    sent_ms: float
    ended_ms: float
    outcome: Literal["acked", "refused", "unknown"]
    # The run in the answer to a start, or to a reset.
    run_id: str = ""
    # Of a signal: who sent it, and the number that grows with each signal of this sender to this workflow. Of a reset
    # the number is that of the first event that is not to be taken over.
    sender: str = ""
    number: int = 0
    # Of a query: the ids of the signals that the workflow says it has seen.
    seen: list[str] = dataclasses.field(default_factory=list)
    why: str = ""
    # The server has said something for good; what an update came to may be unknown all the same.
    answered: bool = True
    # Of an update that is acknowledged: accepted, or completed with this result.
    stage: str = ""
    result: Any = None
    # Of a reset: the run that is to go back.
    base_run_id: str = ""


@dataclass
class Work:
    """One activity attempt, received by a worker or answered by it."""

    kind: Literal["received", "sent"]
    workflow_id: str
    run_id: str
    activity_id: str
    attempt: int
    at_ms: float
    # Of an answer: the result as JSON, or the message of the failure.
    result: Any = None
    failure: str = ""


def json_of(arguments: Payloads) -> Any:
    """The first payload, if it is JSON."""
    try:
        return json.loads(arguments.payloads[0].data)
    except (IndexError, ValueError):
        return None


def signal_id_of(arguments: Payloads) -> str:
    """The member `id` of the first argument, empty if there is none."""
    value = json_of(arguments)
    return str(value.get("id", "")) if isinstance(value, dict) else ""


def fate(tries: Sequence[Call]) -> str:
    """What a client knows of its call after all tries: acked, refused by each, or unknown."""
    outcomes = {call.outcome for call in tries}
    if "acked" in outcomes:
        return "acked"
    return "refused" if outcomes == {"refused"} else "unknown"


def name_of(event: HistoryEvent) -> str:
    """EVENT_TYPE_TIMER_STARTED -> TimerStarted."""
    return _name_of_type(event.event_type)


@functools.cache
def _name_of_type(event_type: int) -> str:
    words = EventType.Name(event_type).removeprefix("EVENT_TYPE_").split("_")
    return "".join(word.capitalize() for word in words)


def attributes_of(event: HistoryEvent) -> Any:
    return getattr(event, event.WhichOneof("attributes"))


def write_lines(path: Path, entries: Iterable[Call | Work]) -> None:
    with open(path, "w", encoding="utf-8") as out:
        out.writelines(json.dumps(dataclasses.asdict(entry)) + "\n" for entry in entries)


def read_calls(path: Path) -> list[Call]:
    return [Call(**entry) for entry in _read_lines(path)]


def read_work(path: Path) -> list[Work]:
    return [Work(**entry) for entry in _read_lines(path)]


def _read_lines(path: Path) -> list[dict[str, Any]]:
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write_histories(folder: Path, runs: Iterable[Run]) -> None:
    """A file RUN.binpb each: the message temporal.api.history.v1.History."""
    folder.mkdir(parents=True, exist_ok=True)
    for run in runs:
        (folder / f"{run.run_id}.binpb").write_bytes(History(events=run.events).SerializeToString())


def read_histories(folder: Path) -> list[Run]:
    """Each file is the message History: RUN.binpb in binary, RUN.json in protobuf's JSON."""
    runs = []
    for path in sorted(folder.iterdir()):
        history = History()
        if path.suffix == ".binpb":
            history.ParseFromString(path.read_bytes())
        elif path.suffix == ".json":
            json_format.Parse(path.read_text(), history)
        else:
            continue
        started = history.events[0].workflow_execution_started_event_attributes if history.events else None
        runs.append(Run(started.workflow_id if started else "", path.stem, list(history.events)))
    return runs
