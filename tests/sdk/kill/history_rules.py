"""What must hold in every single history, whatever the workflow does.

The rules know nothing of the server under test: they are read off Temporal's event model.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from temporalio.api.enums.v1 import TimeoutType
from temporalio.api.history.v1 import HistoryEvent

from logs import Run, attributes_of, name_of


@dataclass(frozen=True)
class Violation:
    """A rule that does not hold, and where."""

    rule: str
    workflow_id: str
    run_id: str
    event_id: int
    what: str

    def __str__(self) -> str:
        place = f"workflow {self.workflow_id}, run {self.run_id}, event {self.event_id}"
        return f"{self.rule}: {self.what} ({place})"


CLOSED_BY_COMMAND = {
    "WorkflowExecutionCompleted",
    "WorkflowExecutionFailed",
    "WorkflowExecutionCanceled",
    "WorkflowExecutionContinuedAsNew",
}
CLOSING = CLOSED_BY_COMMAND | {"WorkflowExecutionTimedOut", "WorkflowExecutionTerminated"}
# What a workflow must not miss: none of these may stand between its last task and the command that closes it.
NEWS = {"WorkflowExecutionSignaled", "WorkflowExecutionCancelRequested", "TimerFired"}
# The cause of the failure of a workflow task that a pause has ended before a worker had it.
PAUSE_REQUESTED = 39
TASK_ENDS = {"WorkflowTaskCompleted", "WorkflowTaskFailed", "WorkflowTaskTimedOut"}
ACTIVITY_ENDS = {
    "ActivityTaskCompleted",
    "ActivityTaskFailed",
    "ActivityTaskTimedOut",
    "ActivityTaskCanceled",
}


@dataclass
class Activity:
    """An activity that is scheduled and not closed."""

    activity_id: str
    scheduled_ns: int
    started_event_id: int = 0


@dataclass
class Reading:
    """Where the reader of a history stands."""

    grain_ms: float
    scheduled_task: HistoryEvent | None = None
    started_task: HistoryEvent | None = None
    completed_task_id: int = 0
    news_id: int = 0
    closed_by: str = ""
    cancel_requested: bool = False
    paused: bool = False
    # By the id of the event that scheduled or started them.
    activities: dict[int, Activity] = field(default_factory=dict)
    closed_activities: set[int] = field(default_factory=set)
    timers: dict[int, HistoryEvent] = field(default_factory=dict)


Finding = tuple[str, str]


def check_run(run: Run, grain_ms: float = 0) -> list[Violation]:
    """The violations in one history.

    grain_ms: how much earlier than due a timer may fire. A Temporal server's timers have a grain of 1 ms.
    """
    if not run.events:
        return [Violation("first", run.workflow_id, run.run_id, 0, "the history is empty")]
    reading = Reading(grain_ms)
    found = []
    for place, event in enumerate(run.events, 1):
        for rule, what in _of_event(reading, place, event):
            found.append(Violation(rule, run.workflow_id, run.run_id, event.event_id, what))
    for rule, what in _at_end(reading):
        found.append(Violation(rule, run.workflow_id, run.run_id, run.events[-1].event_id, what))
    return found


# What others have answered to a command: it has a field for the task, and belongs to none.
ANSWERS = {
    "StartChildWorkflowExecutionFailed",
    "RequestCancelExternalWorkflowExecutionFailed",
    "SignalExternalWorkflowExecutionFailed",
}


def _of_event(reading: Reading, place: int, event: HistoryEvent) -> Iterator[Finding]:
    name = name_of(event)
    if event.event_id != place:
        yield "ids", f"event {place} has the id {event.event_id}"
    if (name == "WorkflowExecutionStarted") != (place == 1):
        yield "first", f"{name} stands at {place}"
    if reading.closed_by:
        yield "end", f"{name} follows {reading.closed_by}"
    if reading.started_task and name not in TASK_ENDS:
        yield "tasks", f"{name} stands where the started workflow task must end"
    completed_id = getattr(attributes_of(event), "workflow_task_completed_event_id", None)
    if name not in ANSWERS and completed_id is not None and completed_id != reading.completed_task_id:
        yield (
            "commands",
            f"{name} is of task {completed_id}, the last completed one is {reading.completed_task_id}",
        )
    if name.startswith("WorkflowTask"):
        yield from _of_task(reading, name, event)
    elif name.startswith("ActivityTask"):
        yield from _of_activity(reading, name, event)
    elif name.startswith("Timer"):
        yield from _of_timer(reading, name, event)
    elif name in CLOSING:
        yield from _of_closing(reading, name)
    elif name in ("WorkflowExecutionPaused", "WorkflowExecutionUnpaused"):
        pauses = name == "WorkflowExecutionPaused"
        if reading.paused == pauses:
            yield "pause", f"{name} of a run that is so already"
        reading.paused = pauses
    elif name == "WorkflowExecutionCancelRequested":
        if reading.cancel_requested:
            yield "cancel", "cancellation is requested twice"
        reading.cancel_requested = True
    if name in NEWS:
        reading.news_id = event.event_id


def _of_task(reading: Reading, name: str, event: HistoryEvent) -> Iterator[Finding]:
    """(none) -> scheduled -> started -> (none) by its end; scheduled -> (none) by a timeout or a pause."""
    attributes = attributes_of(event)
    scheduled, started = reading.scheduled_task, reading.started_task
    if name == "WorkflowTaskScheduled":
        if scheduled:
            yield "tasks", f"a second task, {scheduled.event_id} is pending"
        if reading.paused:
            yield "pause", "a paused run gets a task"
        reading.scheduled_task, reading.started_task = event, None
        return
    if not scheduled:
        yield "tasks", f"{name} without a pending task"
        return
    if attributes.scheduled_event_id != scheduled.event_id:
        yield "tasks", f"{name} is of task {attributes.scheduled_event_id}, pending is {scheduled.event_id}"
    if name == "WorkflowTaskStarted":
        if started:
            yield "tasks", f"started twice, before at {started.event_id}"
        if event.event_time.ToNanoseconds() < scheduled.event_time.ToNanoseconds():
            yield "times", "a workflow task is started before it is scheduled"
        reading.started_task = event
        return
    never_started = (
        name == "WorkflowTaskTimedOut"
        and attributes.timeout_type == TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START
    ) or (name == "WorkflowTaskFailed" and attributes.cause == PAUSE_REQUESTED)
    if never_started == bool(started):
        yield "tasks", f"{name}, and the task is {'' if started else 'not '}started"
    elif started and attributes.started_event_id != started.event_id:
        yield "tasks", f"{name} names the start {attributes.started_event_id}, it is {started.event_id}"
    if name == "WorkflowTaskCompleted":
        reading.completed_task_id = event.event_id
        reading.news_id = 0
    reading.scheduled_task = reading.started_task = None


def _of_activity(reading: Reading, name: str, event: HistoryEvent) -> Iterator[Finding]:
    attributes = attributes_of(event)
    now_ns = event.event_time.ToNanoseconds()
    if name == "ActivityTaskScheduled":
        if any(a.activity_id == attributes.activity_id for a in reading.activities.values()):
            yield "pairs", f"activity {attributes.activity_id} is scheduled while one of that id is open"
        reading.activities[event.event_id] = Activity(attributes.activity_id, now_ns)
        return
    activity = reading.activities.get(attributes.scheduled_event_id)
    if name == "ActivityTaskCancelRequested":
        # An activity may have closed while the task that asked for its end was running.
        if not activity and attributes.scheduled_event_id not in reading.closed_activities:
            yield "pairs", f"cancel of an activity {attributes.scheduled_event_id} that was never scheduled"
        return
    if not activity:
        yield "pairs", f"{name} of {attributes.scheduled_event_id}, where no activity is open"
        return
    if now_ns < activity.scheduled_ns:
        yield "times", f"{name} is before the activity was scheduled"
    if name == "ActivityTaskStarted":
        if activity.started_event_id:
            yield "pairs", f"activity {activity.activity_id} is started twice"
        if attributes.attempt < 1:
            yield "pairs", f"activity {activity.activity_id} is started at attempt {attributes.attempt}"
        activity.started_event_id = event.event_id
        return
    if name not in ACTIVITY_ENDS:
        yield "pairs", f"an unknown event {name}"
    if attributes.started_event_id != activity.started_event_id:
        yield (
            "pairs",
            f"{name} names the start {attributes.started_event_id}, it is {activity.started_event_id}",
        )
    if name in ("ActivityTaskCompleted", "ActivityTaskFailed") and not activity.started_event_id:
        yield "pairs", f"{name} of an activity that never started"
    reading.closed_activities.add(attributes.scheduled_event_id)
    del reading.activities[attributes.scheduled_event_id]


def _of_timer(reading: Reading, name: str, event: HistoryEvent) -> Iterator[Finding]:
    attributes = attributes_of(event)
    if name == "TimerStarted":
        if any(attributes_of(t).timer_id == attributes.timer_id for t in reading.timers.values()):
            yield "pairs", f"timer {attributes.timer_id} is started while one of that id is open"
        reading.timers[event.event_id] = event
        return
    started = reading.timers.pop(attributes.started_event_id, None)
    if not started:
        yield "pairs", f"{name} of {attributes.started_event_id}, where no timer is open"
        return
    timer = attributes_of(started)
    if timer.timer_id != attributes.timer_id:
        yield (
            "pairs",
            f"{name} of timer {attributes.timer_id}, at {started.event_id} is timer {timer.timer_id}",
        )
    due_ns = started.event_time.ToNanoseconds() + timer.start_to_fire_timeout.ToNanoseconds()
    early_ns = due_ns - event.event_time.ToNanoseconds()
    if name == "TimerFired" and early_ns > reading.grain_ms * 1e6:
        yield "early", f"timer {timer.timer_id} fired {early_ns / 1e6:.3f} ms early"


def _of_closing(reading: Reading, name: str) -> Iterator[Finding]:
    reading.closed_by = name
    if name in CLOSED_BY_COMMAND and reading.news_id:
        yield "missed", f"{name}, and the workflow never saw event {reading.news_id}"
    if name in CLOSED_BY_COMMAND and reading.scheduled_task:
        yield "tasks", f"{name} by command while task {reading.scheduled_task.event_id} is pending"


def _at_end(reading: Reading) -> Iterator[Finding]:
    if not reading.closed_by:
        return
    for activity in reading.activities.values():
        if activity.started_event_id:
            yield "pairs", f"activity {activity.activity_id} has a start and no end"


def is_closed(run: Run) -> bool:
    return bool(run.events) and any(name_of(event) in CLOSING for event in run.events)


def closing_of(run: Run) -> Any:
    """The attributes of the event that closed the run, None if it is open."""
    return next((attributes_of(event) for event in run.events if name_of(event) in CLOSING), None)
