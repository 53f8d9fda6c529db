"""Histories as the tests read them: event names in order, and runs followed through their chain."""

import re
from collections.abc import AsyncIterator
from typing import Any

from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowHistory

from history_rules import CLOSING
from logs import attributes_of, name_of


def shape(history: WorkflowHistory) -> list[str]:
    return [name_of(event) for event in history.events]


def lines(text: str) -> list[str]:
    """An expected shape, written as words with any white space between them; `3*Word` repeats a word."""
    names: list[str] = []
    for word in text.split():
        count, name = re.fullmatch(r"(?:(\d+)\*)?(\w+)", word).groups()
        names += [name] * int(count or 1)
    return names


def events_named(history: WorkflowHistory, name: str) -> list[Any]:
    """The attributes of all events of this name, in order."""
    return [attributes_of(event) for event in history.events if name_of(event) == name]


def event_named(history: WorkflowHistory, name: str) -> HistoryEvent:
    """The first event of this name."""
    return next(event for event in history.events if name_of(event) == name)


def is_closed(history: WorkflowHistory) -> bool:
    return name_of(history.events[-1]) in CLOSING


def next_run(history: WorkflowHistory) -> str:
    """The run that the closing event names as the next one, empty if there is none."""
    return (
        getattr(attributes_of(history.events[-1]), "new_execution_run_id", "") if is_closed(history) else ""
    )


def children(history: WorkflowHistory) -> list[tuple[str, str]]:
    """The workflow id and the first run of each child that the run has started."""
    began = [a.workflow_execution for a in events_named(history, "ChildWorkflowExecutionStarted")]
    return [(child.workflow_id, child.run_id) for child in began]


def is_child(history: WorkflowHistory) -> bool:
    started = history.events[0].workflow_execution_started_event_attributes
    return started.HasField("parent_workflow_execution")


async def fetch(client: Client, workflow_id: str, run_id: str | None = None) -> WorkflowHistory:
    return await client.get_workflow_handle(workflow_id, run_id=run_id).fetch_history()


async def chain(client: Client, workflow_id: str, run_id: str) -> AsyncIterator[WorkflowHistory]:
    """The history of this run and of all that continue it."""
    while run_id:
        history = await fetch(client, workflow_id, run_id)
        history.run_id  # noqa: B018  a run without its Started event fails here, not later
        yield history
        run_id = next_run(history)
