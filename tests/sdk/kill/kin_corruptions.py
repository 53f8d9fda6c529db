"""Corruptions of updates, resets, pauses, children and chains, each with the rules of which one must find it."""

import copy
import uuid
from collections.abc import Callable

from lineage import CRON, RETRY, Lineage, accepted_before, reset_of, signal_key
from logs import Run, attributes_of, name_of
from planting import Logs, Unplantable, insert, remove


def pick_reset(logs: Logs, is_fit: Callable[[Run], bool] = lambda _: True) -> Run:
    found = [run for run in logs.runs if reset_of(run) and is_fit(run)]
    if not found:
        raise Unplantable
    return logs.rng.choice(found)


def lose_an_accepted_update(logs: Logs) -> None:
    """It was acknowledged, and nothing is left of it."""
    ids = logs.calls_known("acked")
    run, index = logs.pick(
        lambda _, e: (
            name_of(e) == "WorkflowExecutionUpdateAccepted" and attributes_of(e).protocol_instance_id in ids
        )
    )
    remove_all_of(run, attributes_of(run.events[index]).protocol_instance_id)


def lose_the_acceptance_of_an_update(logs: Logs) -> None:
    """It is answered, and was never accepted."""
    run, index = logs.pick_named("WorkflowExecutionUpdateCompleted")
    remove(run, attributes_of(run.events[index]).accepted_event_id - 1)


def remove_all_of(run: Run, update_id: str) -> None:
    for index in reversed(range(len(run.events))):
        if update_id.encode() in run.events[index].SerializeToString():
            remove(run, index)


def answer_an_update_twice(logs: Logs) -> None:
    run, index = logs.pick_named("WorkflowExecutionUpdateCompleted")
    insert(run, index, run.events[index])


def never_answer_an_update(logs: Logs) -> None:
    run, index = logs.pick(
        lambda run, e: (
            name_of(e) == "WorkflowExecutionUpdateCompleted"
            and name_of(run.events[-1]) == "WorkflowExecutionCompleted"
        )
    )
    remove(run, index)


def answer_an_update_otherwise(logs: Logs) -> None:
    call = logs.pick_call(lambda c: c.kind == "update" and c.stage == "completed")
    call.result = {"id": call.id, "value": "another"}


def accept_a_refused_update(logs: Logs) -> None:
    run, index = logs.pick_named("WorkflowExecutionUpdateAccepted")
    update_id = attributes_of(run.events[index]).protocol_instance_id
    for call in logs.calls:
        if call.id == update_id:
            call.outcome = "refused"


def accept_what_nobody_sent(logs: Logs) -> None:
    run, index = logs.pick_named("WorkflowExecutionUpdateAccepted")
    update_id = attributes_of(run.events[index]).protocol_instance_id
    logs.calls = [call for call in logs.calls if call.id != update_id]


def lose_an_update_by_a_reset(logs: Logs) -> None:
    """It was accepted before the reset, and nothing is left of it."""
    lineage = Lineage.of(logs.runs)
    run = pick_reset(logs, lambda run: bool(accepted_before(lineage, run)))
    remove_all_of(run, sorted(accepted_before(lineage, run))[0])


def lose_a_signal_by_a_reset(logs: Logs) -> None:
    lineage = Lineage.of(logs.runs)
    run = pick_reset(logs, lambda run: bool(lineage.repeated_signals(run)))
    lost = next(iter(lineage.repeated_signals(run)))
    signals = [i for i, e in enumerate(run.events) if name_of(e) == "WorkflowExecutionSignaled"]
    remove(run, next(i for i in signals if signal_key(run.events[i]) == lost))


def repeat_a_signal_twice_in_a_reset(logs: Logs) -> None:
    run = pick_reset(logs, lambda run: any(name_of(e) == "WorkflowExecutionSignaled" for e in run.events))
    index = next(i for i, e in enumerate(run.events) if name_of(e) == "WorkflowExecutionSignaled")
    insert(run, index, run.events[index])


def change_the_beginning_of_a_reset(logs: Logs) -> None:
    attributes_of(pick_reset(logs).events[0]).identity = "somebody else"


def send_back_without_an_order(logs: Logs) -> None:
    reason = reset_of(pick_reset(logs)).reason
    logs.calls = [call for call in logs.calls if call.id != reason]


def send_back_twice(logs: Logs) -> None:
    run = pick_reset(logs)
    twin = Run(run.workflow_id, str(uuid.uuid4()), copy.deepcopy(run.events))
    for event in twin.events:
        if name_of(event) == "WorkflowTaskFailed" and attributes_of(event).new_run_id == run.run_id:
            attributes_of(event).new_run_id = twin.run_id
    logs.runs.append(twin)


def hear_of_a_child_twice(logs: Logs) -> None:
    run, index = logs.pick_named("ChildWorkflowExecutionCompleted", "ChildWorkflowExecutionFailed")
    insert(run, index, run.events[index])


def never_hear_of_a_child(logs: Logs) -> None:
    run, index = logs.pick_named("ChildWorkflowExecutionCompleted", "ChildWorkflowExecutionFailed")
    remove(run, index)


def begin_a_child_twice(logs: Logs) -> None:
    run, index = logs.pick_named("ChildWorkflowExecutionStarted")
    insert(run, index, run.events[index])


def change_what_a_child_came_to(logs: Logs) -> None:
    run, index = logs.pick_named("ChildWorkflowExecutionCompleted")
    attributes_of(run.events[index]).result.payloads[0].data = b"\"another\""


def have_a_child_that_nobody_asked_for(logs: Logs) -> None:
    run, _ = logs.pick(
        lambda _, e: (
            name_of(e) == "WorkflowExecutionStarted" and attributes_of(e).HasField("parent_workflow_execution")
        )
    )
    attributes_of(run.events[0]).parent_initiated_event_id += 1


def lose_a_child(logs: Logs) -> None:
    run, index = logs.pick_named("ChildWorkflowExecutionStarted")
    child = attributes_of(run.events[index]).workflow_execution.run_id
    logs.runs = [run for run in logs.runs if run.run_id != child]


def pick_letter(logs: Logs) -> tuple[Run, int]:
    return logs.pick(
        lambda _, e: (
            name_of(e) == "WorkflowExecutionSignaled"
            and bool(attributes_of(e).external_workflow_execution.workflow_id)
        )
    )


def lose_a_letter(logs: Logs) -> None:
    remove(*pick_letter(logs))


def deliver_a_letter_twice(logs: Logs) -> None:
    run, index = pick_letter(logs)
    insert(run, index, run.events[index])


def pick_follower(logs: Logs, initiator: int) -> Run:
    return logs.pick(
        lambda _, e: (
            name_of(e) == "WorkflowExecutionStarted"
            and attributes_of(e).initiator == initiator
            and bool(attributes_of(e).continued_execution_run_id)
        )
    )[0]


def skip_an_attempt(logs: Logs) -> None:
    attributes_of(pick_follower(logs, RETRY).events[0]).attempt += 1


def forget_the_last_result(logs: Logs) -> None:
    attributes_of(pick_follower(logs, CRON).events[0]).ClearField("last_completion_result")


def make_a_retry_by_a_schedule(logs: Logs) -> None:
    attributes_of(pick_follower(logs, RETRY).events[0]).initiator = CRON


# Each with the rules of which at least one must speak.
def lose_a_pause(logs: Logs) -> None:
    """It was acknowledged, as was its end, and nothing is left of both."""
    run, index = logs.pick_named("WorkflowExecutionPaused")
    ends = [i for i, e in enumerate(run.events) if i > index and name_of(e) == "WorkflowExecutionUnpaused"]
    for place in [*ends[:1], index]:
        remove(run, place)


def pause_twice(logs: Logs) -> None:
    run, index = logs.pick_named("WorkflowExecutionPaused")
    insert(run, index, run.events[index])


def pause_what_nobody_asked_for(logs: Logs) -> None:
    run, index = logs.pick_named("WorkflowExecutionPaused")
    asked = attributes_of(run.events[index]).request_id
    logs.calls = [call for call in logs.calls if call.id != asked]


def go_on_while_it_is_paused(logs: Logs) -> None:
    run, index = logs.pick_named("WorkflowExecutionPaused")
    task = next(event for event in run.events if name_of(event) == "WorkflowTaskScheduled")
    insert(run, index + 1, task)


KIN: dict[Callable[[Logs], None], set[str]] = {
    lose_an_accepted_update: {"update"},
    lose_the_acceptance_of_an_update: {"update"},
    answer_an_update_twice: {"update"},
    never_answer_an_update: {"update"},
    answer_an_update_otherwise: {"update"},
    accept_a_refused_update: {"update"},
    accept_what_nobody_sent: {"update"},
    lose_an_update_by_a_reset: {"reset"},
    lose_a_signal_by_a_reset: {"reset"},
    repeat_a_signal_twice_in_a_reset: {"reset"},
    change_the_beginning_of_a_reset: {"reset"},
    send_back_without_an_order: {"reset"},
    send_back_twice: {"reset"},
    hear_of_a_child_twice: {"child"},
    never_hear_of_a_child: {"child"},
    begin_a_child_twice: {"child"},
    change_what_a_child_came_to: {"child"},
    have_a_child_that_nobody_asked_for: {"child"},
    lose_a_child: {"child"},
    lose_a_letter: {"letter"},
    deliver_a_letter_twice: {"letter"},
    lose_a_pause: {"pause"},
    pause_twice: {"pause"},
    pause_what_nobody_asked_for: {"pause"},
    go_on_while_it_is_paused: {"pause"},
    skip_an_attempt: {"follow"},
    forget_the_last_result: {"follow"},
    make_a_retry_by_a_schedule: {"follow"},
}
