"""Logs that are being spoiled: picking a place, and taking events out or putting some in."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from temporalio.api.history.v1 import HistoryEvent

from lineage import reset_of
from logs import Call, Run, Work, attributes_of, fate, name_of, signal_id_of

# Fields by which an event refers to another one of its history.
REFERENCES = [
    "scheduled_event_id",
    "started_event_id",
    "workflow_task_completed_event_id",
    "latest_cancel_requested_event_id",
    "accepted_event_id",
    "accepted_request_sequencing_event_id",
    "initiated_event_id",
]


class Unplantable(Exception):
    """There is no place for this corruption in these logs."""


@dataclass
class Logs:
    runs: list[Run]
    calls: list[Call]
    work: list[Work]
    rng: random.Random

    def pick(self, wanted: Callable[[Run, HistoryEvent], bool]) -> tuple[Run, int]:
        """A run and the index of one of its events that is wanted; of no run that a reset has made."""
        runs = [run for run in self.runs if not reset_of(run)]
        places = [(run, i) for run in runs for i, event in enumerate(run.events) if wanted(run, event)]
        if not places:
            raise Unplantable
        return self.rng.choice(places)

    def pick_named(self, *names: str) -> tuple[Run, int]:
        return self.pick(lambda _, event: name_of(event) in names)

    def calls_known(self, wanted: str) -> set[str]:
        """Calls of which the clients know this; what a reset has written once more has corruptions of its own."""
        tries: dict[str, list[Call]] = {}
        for call in self.calls:
            tries.setdefault(call.id, []).append(call)
        sent_back = {run.workflow_id for run in self.runs if reset_of(run)}
        return {
            call_id for call_id, t in tries.items() if fate(t) == wanted and t[0].workflow_id not in sent_back
        }

    def pick_signal(self, wanted: str = "acked") -> tuple[Run, int]:
        """A signal in a history, of which the clients know this."""
        ids = self.calls_known(wanted)
        return self.pick(
            lambda _, e: (
                name_of(e) == "WorkflowExecutionSignaled" and signal_id_of(attributes_of(e).input) in ids
            )
        )

    def pick_call(self, wanted: Callable[[Call], bool]) -> Call:
        found = [call for call in self.calls if wanted(call)]
        if not found:
            raise Unplantable
        return self.rng.choice(found)


def remove(run: Run, index: int) -> HistoryEvent:
    """Takes an event out as if it had never been: all ids are right afterwards."""
    event = run.events.pop(index)
    _renumber(run)
    return event


def insert(run: Run, index: int, event: HistoryEvent) -> None:
    """Puts an event in as if it had always been there."""
    added = HistoryEvent()
    added.CopyFrom(event)
    added.event_id = 0
    run.events.insert(index, added)
    _renumber(run)


def _renumber(run: Run) -> None:
    new_ids = {event.event_id: place for place, event in enumerate(run.events, 1) if event.event_id}
    for place, event in enumerate(run.events, 1):
        event.event_id = place
        attributes = attributes_of(event)
        for reference in REFERENCES:
            old = getattr(attributes, reference, 0)
            if old in new_ids:
                setattr(attributes, reference, new_ids[old])
