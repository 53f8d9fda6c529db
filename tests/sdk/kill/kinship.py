"""Parents and children, and what runs tell each other by signals: each asked for once, begun once, heard of once."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from history_rules import Violation, closing_of
from lineage import Lineage, started_of
from logs import Run, attributes_of, name_of

# How a child's end is told, and the event that it was.
ENDS = {
    "ChildWorkflowExecutionCompleted": "WorkflowExecutionCompleted",
    "ChildWorkflowExecutionFailed": "WorkflowExecutionFailed",
    "ChildWorkflowExecutionCanceled": "WorkflowExecutionCanceled",
    "ChildWorkflowExecutionTimedOut": "WorkflowExecutionTimedOut",
    "ChildWorkflowExecutionTerminated": "WorkflowExecutionTerminated",
}
BEGINS = {"ChildWorkflowExecutionStarted", "StartChildWorkflowExecutionFailed"}
SIGNAL_ANSWERS = {"ExternalWorkflowExecutionSignaled", "SignalExternalWorkflowExecutionFailed"}


@dataclass
class Child:
    asked: Any
    begun: list[Any] = field(default_factory=list)
    ended: list[Any] = field(default_factory=list)


def check_kinship(lineage: Lineage) -> Iterator[Violation]:
    received: Counter[tuple[str, str, bytes]] = Counter()
    for run in lineage.runs.values():
        for event in run.events:
            if name_of(event) == "WorkflowExecutionSignaled":
                attributes = attributes_of(event)
                sender = attributes.external_workflow_execution
                if sender.workflow_id:
                    key = (sender.workflow_id, run.workflow_id, attributes.input.SerializeToString())
                    received[key] += 1
    for run in lineage.runs.values():
        yield from _children(lineage, run)
        yield from _letters(run, received)
        yield from _parent(lineage, run)
    for (sender, workflow_id, _), count in received.items():
        if count:
            what = f"{count} signals of {sender} that it has not sent"
            yield Violation("letter", workflow_id, "", 0, what)


def _children(lineage: Lineage, run: Run) -> Iterator[Violation]:
    children: dict[int, Child] = {}
    for event in run.events:
        name = name_of(event)
        if name == "StartChildWorkflowExecutionInitiated":
            children[event.event_id] = Child(event)
        if name not in BEGINS and name not in ENDS:
            continue
        child = children.get(attributes_of(event).initiated_event_id)
        if not child:
            yield Violation("child", run.workflow_id, run.run_id, event.event_id, f"{name} of no child")
        elif name in ENDS:
            child.ended.append(event)
        else:
            child.begun.append(event)
    returned = bool(run.events) and name_of(run.events[-1]) == "WorkflowExecutionCompleted"
    for event_id, child in children.items():

        def wrong(what: str, event_id: int = event_id) -> Violation:
            return Violation("child", run.workflow_id, run.run_id, event_id, what)

        failed = [e for e in child.begun if name_of(e) != "ChildWorkflowExecutionStarted"]
        heard = len(child.ended) + len(failed)
        if len(child.begun) > 1 or heard > 1 or (child.ended and not child.begun) or (returned and not heard):
            yield wrong(f"its child began {len(child.begun)} times and ended {heard} times")
            continue
        if failed or not child.begun:
            continue
        execution = attributes_of(child.begun[0]).workflow_execution
        its = lineage.runs.get(execution.run_id)
        if not its or not its.events or its.workflow_id != attributes_of(child.asked).workflow_id:
            yield wrong(f"its child {execution.run_id} is not there")
            continue
        started = started_of(its)
        is_named = (started.parent_workflow_execution.run_id, started.parent_initiated_event_id) == (
            run.run_id,
            event_id,
        )
        if not is_named:
            yield wrong(f"its child {execution.run_id} has another parent")
        if child.ended:
            yield from _end(lineage, run, child, its)


def _end(lineage: Lineage, run: Run, child: Child, its: Run) -> Iterator[Violation]:
    """The end of the last run of the child's chain."""
    while after := lineage.runs.get(getattr(closing_of(its), "new_execution_run_id", "")):
        its = after
    ended, last = child.ended[0], its.events[-1]
    told, was = name_of(ended), name_of(last)
    is_same = ENDS[told] == was and (
        was != "WorkflowExecutionCompleted" or attributes_of(ended).result == attributes_of(last).result
    )
    if not is_same:
        what = f"{told} of {its.run_id}, which ended with {was}, or with another result"
        yield Violation("child", run.workflow_id, run.run_id, ended.event_id, what)


def _letters(run: Run, received: Counter[tuple[str, str, bytes]]) -> Iterator[Violation]:
    """Each signal to another is answered once, and stands there once if the answer says so."""
    sent: dict[int, Any] = {}
    answered: dict[int, str] = {}
    for event in run.events:
        name = name_of(event)
        if name == "SignalExternalWorkflowExecutionInitiated":
            sent[event.event_id] = attributes_of(event)
        if name in SIGNAL_ANSWERS:
            initiated = attributes_of(event).initiated_event_id
            if initiated not in sent or initiated in answered:
                what = f"{name} answers {initiated}, which is answered or was never sent"
                yield Violation("letter", run.workflow_id, run.run_id, event.event_id, what)
            answered[initiated] = name
    for event_id, signal in sent.items():
        key = (run.workflow_id, signal.workflow_execution.workflow_id, signal.input.SerializeToString())
        arrived = received[key] > 0
        received[key] -= arrived
        answer = answered.get(event_id)
        is_told = answer == "ExternalWorkflowExecutionSignaled"
        if answer is not None and is_told != arrived:
            what = f"its signal has {'' if arrived else 'not '}arrived; the answer is {answer}"
            yield Violation("letter", run.workflow_id, run.run_id, event_id, what)


def _parent(lineage: Lineage, run: Run) -> Iterator[Violation]:
    """A child is there because its parent asked for it."""
    if not run.events:
        return
    started = started_of(run)
    parent = started.parent_workflow_execution
    if not parent.workflow_id or started.continued_execution_run_id:
        return
    events = lineage.runs[parent.run_id].events if parent.run_id in lineage.runs else []
    place = started.parent_initiated_event_id
    asked = events[place - 1] if 0 < place <= len(events) else None
    is_it = asked is not None and name_of(asked) == "StartChildWorkflowExecutionInitiated"
    if not is_it or attributes_of(asked).workflow_id != run.workflow_id:
        what = f"event {place} of {parent.run_id} did not ask for it"
        yield Violation("child", run.workflow_id, run.run_id, 1, what)
