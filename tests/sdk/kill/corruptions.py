"""Corruptions that are planted in good logs, each with the rules of which one must find it."""

import copy
import random
import uuid
from collections.abc import Callable, Sequence

from temporalio.api.history.v1 import HistoryEvent

from checker import check
from history_rules import CLOSING, closing_of
from kin_corruptions import KIN
from logs import Call, Run, Work, attributes_of, name_of, signal_id_of
from planting import Logs, Unplantable, insert, remove


def drop_event(logs: Logs) -> None:
    run, index = logs.pick(lambda run, event: 1 < event.event_id < len(run.events))
    del run.events[index]


def double_event(logs: Logs) -> None:
    run, index = logs.pick(lambda run, event: event.event_id < len(run.events))
    run.events.insert(index, copy.deepcopy(run.events[index]))


def swap_events(logs: Logs) -> None:
    run, index = logs.pick(lambda run, event: 1 < event.event_id < len(run.events))
    run.events[index], run.events[index + 1] = run.events[index + 1], run.events[index]


def lose_the_beginning(logs: Logs) -> None:
    run, _ = logs.pick_named("WorkflowExecutionStarted")
    remove(run, 0)


def begin_twice(logs: Logs) -> None:
    run, index = logs.pick_named("WorkflowTaskScheduled")
    insert(run, index, run.events[0])


def go_on_after_the_end(logs: Logs) -> None:
    # A run that was ended while it waited for its first task has none that it could go on with.
    run, index = logs.pick(
        lambda run, event: name_of(event) == "WorkflowTaskScheduled" and closing_of(run) is not None
    )
    insert(run, len(run.events), run.events[index])


def end_twice(logs: Logs) -> None:
    run, index = logs.pick_named(*CLOSING)
    insert(run, index, run.events[index])


def never_end(logs: Logs) -> None:
    run, index = logs.pick_named("WorkflowExecutionCompleted")
    remove(run, index)


def lose_an_acknowledged_signal(logs: Logs) -> None:
    remove(*logs.pick_signal())


def record_a_signal_twice(logs: Logs) -> None:
    run, index = logs.pick_signal()
    insert(run, index, run.events[index])


def record_an_unknown_signal_twice(logs: Logs) -> None:
    run, index = logs.pick_signal("unknown")
    insert(run, index, run.events[index])


def record_a_refused_signal(logs: Logs) -> None:
    run, index = logs.pick_signal()
    call_id = signal_id_of(attributes_of(run.events[index]).input)
    for call in logs.calls:
        if call.id == call_id:
            call.outcome = "refused"


def invent_a_signal(logs: Logs) -> None:
    run, index = logs.pick_signal()
    payload = attributes_of(run.events[index]).input.payloads[0]
    call_id = signal_id_of(attributes_of(run.events[index]).input)
    added = copy.deepcopy(run.events[index])
    attributes_of(added).input.payloads[0].data = payload.data.replace(
        call_id.encode(), uuid.uuid4().hex.encode()
    )
    insert(run, index, added)


def deliver_a_signal_to_another(logs: Logs) -> None:
    run, index = logs.pick_signal()
    other, place = logs.pick(
        lambda r, e: r.workflow_id != run.workflow_id and name_of(e) == "WorkflowTaskScheduled"
    )
    insert(other, place, remove(run, index))


def swap_signals_of_a_sender(logs: Logs) -> None:
    senders = {call.id: (call.workflow_id, call.sender) for call in logs.calls if call.kind == "signal" and call.sender}

    def sender_of(event: HistoryEvent) -> tuple[str, str] | None:
        is_signal = name_of(event) == "WorkflowExecutionSignaled"
        return senders.get(signal_id_of(attributes_of(event).input)) if is_signal else None

    def has_another(run: Run, event: HistoryEvent) -> bool:
        sender = sender_of(event)
        return bool(sender) and sum(sender_of(e) == sender for e in run.events) > 1

    run, index = logs.pick(has_another)
    sender = sender_of(run.events[index])
    other = logs.rng.choice([i for i, e in enumerate(run.events) if i != index and sender_of(e) == sender])
    first, second = attributes_of(run.events[index]), attributes_of(run.events[other])
    kept = copy.deepcopy(first.input)
    first.input.CopyFrom(second.input)
    second.input.CopyFrom(kept)


def hide_a_signal_from_the_last_task(logs: Logs) -> None:
    """The signal stands between the last task and the end: the workflow never saw it."""
    run, index = logs.pick(
        lambda run, e: (
            name_of(e) == "WorkflowExecutionSignaled"
            and name_of(run.events[-1]) == "WorkflowExecutionCompleted"
        )
    )
    insert(run, len(run.events) - 2, remove(run, index))


def fire_a_timer_early(logs: Logs) -> None:
    run, index = logs.pick_named("TimerFired")
    fired = run.events[index]
    started = next(e for e in run.events if e.event_id == attributes_of(fired).started_event_id)
    due_ns = started.event_time.ToNanoseconds() + attributes_of(started).start_to_fire_timeout.ToNanoseconds()
    fired.event_time.FromNanoseconds(due_ns - 1_000_001)


def fire_a_timer_twice(logs: Logs) -> None:
    run, index = logs.pick_named("TimerFired")
    insert(run, index, run.events[index])


def fire_a_timer_that_was_never_started(logs: Logs) -> None:
    run, index = logs.pick_named("TimerFired")
    attributes_of(run.events[index]).started_event_id += 1


def complete_an_activity_twice(logs: Logs) -> None:
    run, index = logs.pick_named("ActivityTaskCompleted")
    insert(run, index, run.events[index])


def complete_an_activity_that_never_started(logs: Logs) -> None:
    run, index = logs.pick_named("ActivityTaskStarted")
    remove(run, index)


def start_an_activity_that_was_never_scheduled(logs: Logs) -> None:
    # One that was never started either leaves no trace.
    run, started = logs.pick_named("ActivityTaskStarted")
    scheduled = attributes_of(run.events[started]).scheduled_event_id
    remove(run, next(at for at, event in enumerate(run.events) if event.event_id == scheduled))


def take_the_result_of_another_attempt(logs: Logs) -> None:
    run, index = logs.pick_named("ActivityTaskStarted")
    attributes_of(run.events[index]).attempt += 1


def change_a_result(logs: Logs) -> None:
    run, index = logs.pick_named("ActivityTaskCompleted")
    attributes_of(run.events[index]).result.payloads[0].data = b'{"value": 0, "nonce": "of nobody"}'


def change_a_failure(logs: Logs) -> None:
    run, index = logs.pick_named("ActivityTaskFailed")
    attributes_of(run.events[index]).failure.message = "something else"


def record_a_result_that_no_worker_sent(logs: Logs) -> None:
    run, _ = logs.pick_named("ActivityTaskCompleted")
    logs.work = [w for w in logs.work if w.run_id != run.run_id or w.kind == "received"]


def schedule_a_second_task(logs: Logs) -> None:
    run, index = logs.pick_named("WorkflowTaskScheduled")
    insert(run, index, run.events[index])


def complete_a_task_that_never_started(logs: Logs) -> None:
    run, index = logs.pick_named("WorkflowTaskStarted")
    remove(run, index)


def write_into_a_running_task(logs: Logs) -> None:
    run, index = logs.pick_signal()
    event = remove(run, index)
    starts = [i for i, e in enumerate(run.events) if name_of(e) == "WorkflowTaskStarted"]
    insert(run, logs.rng.choice(starts) + 1, event)


def name_the_wrong_task_for_a_command(logs: Logs) -> None:
    run, index = logs.pick_named("TimerStarted", "ActivityTaskScheduled", "WorkflowExecutionCompleted")
    attributes_of(run.events[index]).workflow_task_completed_event_id -= 1


def break_a_chain(logs: Logs) -> None:
    run, _ = logs.pick_named("WorkflowExecutionContinuedAsNew")
    closing_of(run).new_execution_run_id = str(uuid.uuid4())


def lose_a_continued_run(logs: Logs) -> None:
    run, _ = logs.pick_named("WorkflowExecutionContinuedAsNew")
    after = closing_of(run).new_execution_run_id
    logs.runs = [r for r in logs.runs if r.run_id != after]


def forget_the_first_run(logs: Logs) -> None:
    run, _ = logs.pick(
        lambda _, e: (
            name_of(e) == "WorkflowExecutionStarted" and bool(attributes_of(e).continued_execution_run_id)
        )
    )
    attributes_of(run.events[0]).first_execution_run_id = run.run_id


def lose_an_acknowledged_start(logs: Logs) -> None:
    call = logs.pick_call(lambda c: c.kind == "start" and c.outcome == "acked")
    logs.runs = [run for run in logs.runs if run.workflow_id != call.workflow_id]


def answer_a_start_with_two_runs(logs: Logs) -> None:
    call = logs.pick_call(lambda c: c.kind == "start" and c.outcome == "acked")
    again = copy.copy(call)
    again.run_id = next(run.run_id for run in logs.runs if run.workflow_id != call.workflow_id)
    logs.calls.append(again)


def pick_first_run(logs: Logs, is_fit: Callable[[Run], bool] = lambda _: True) -> Run:
    return logs.pick(
        lambda run, e: (
            name_of(e) == "WorkflowExecutionStarted"
            and not attributes_of(e).continued_execution_run_id
            and not attributes_of(e).HasField("parent_workflow_execution")
            and is_fit(run)
        )
    )[0]


def start_one_id_twice(logs: Logs) -> None:
    """Another whole run of the same id, that no start accounts for: no rival of unknown fate either."""
    starts = [call for call in logs.calls if call.kind == "start"]
    acked = {call.id for call in starts if call.outcome == "acked"}
    doubtful = {c.workflow_id for c in starts if c.outcome == "unknown" and c.id not in acked}
    run = pick_first_run(logs, lambda run: run.workflow_id not in doubtful)
    twin = Run(run.workflow_id, str(uuid.uuid4()), copy.deepcopy(run.events[:1] + run.events[-1:]))
    attributes_of(twin.events[0]).first_execution_run_id = twin.run_id
    logs.runs.append(twin)


def begin_before_the_start(logs: Logs) -> None:
    run = pick_first_run(logs)
    run.events[0].event_time.FromMilliseconds(run.events[0].event_time.ToMilliseconds() - 3_600_000)


def answer_a_query_with_old_state(logs: Logs) -> None:
    acked = {c.id: c.ended_ms for c in logs.calls if c.kind == "signal" and c.outcome == "acked"}
    query = logs.pick_call(
        lambda c: (
            c.kind == "query"
            and c.outcome == "acked"
            and any(acked.get(s, c.sent_ms) < c.sent_ms for s in c.seen)
        )
    )
    missing = next(s for s in query.seen if acked.get(s, query.sent_ms) < query.sent_ms)
    query.seen = [s for s in query.seen if s != missing]


def answer_a_query_with_what_nobody_sent(logs: Logs) -> None:
    logs.pick_call(lambda c: c.kind == "query" and c.outcome == "acked").seen.append(str(uuid.uuid4()))


# Each with the rules of which at least one must speak.
CORRUPTIONS: dict[Callable[[Logs], None], set[str]] = {
    drop_event: {"ids"},
    double_event: {"ids"},
    swap_events: {"ids"},
    lose_the_beginning: {"first"},
    begin_twice: {"first"},
    go_on_after_the_end: {"end"},
    end_twice: {"end"},
    never_end: {"open"},
    lose_an_acknowledged_signal: {"signal"},
    record_a_signal_twice: {"signal"},
    record_an_unknown_signal_twice: {"signal"},
    record_a_refused_signal: {"signal"},
    invent_a_signal: {"signal"},
    deliver_a_signal_to_another: {"signal"},
    swap_signals_of_a_sender: {"order"},
    hide_a_signal_from_the_last_task: {"missed", "tasks"},
    fire_a_timer_early: {"early"},
    fire_a_timer_twice: {"pairs"},
    fire_a_timer_that_was_never_started: {"pairs"},
    complete_an_activity_twice: {"pairs"},
    complete_an_activity_that_never_started: {"pairs"},
    start_an_activity_that_was_never_scheduled: {"pairs"},
    take_the_result_of_another_attempt: {"answer"},
    change_a_result: {"answer"},
    change_a_failure: {"answer"},
    record_a_result_that_no_worker_sent: {"answer"},
    schedule_a_second_task: {"tasks"},
    complete_a_task_that_never_started: {"tasks"},
    write_into_a_running_task: {"tasks"},
    name_the_wrong_task_for_a_command: {"commands"},
    break_a_chain: {"chain"},
    lose_a_continued_run: {"chain"},
    forget_the_first_run: {"chain"},
    lose_an_acknowledged_start: {"start"},
    answer_a_start_with_two_runs: {"start"},
    start_one_id_twice: {"start"},
    begin_before_the_start: {"times"},
    answer_a_query_with_old_state: {"query"},
    answer_a_query_with_what_nobody_sent: {"query"},
} | KIN
# So many must find a place in any logs, lest the proof be empty.
LEAST_PLANTED = 30


def sample(
    runs: Sequence[Run], calls: Sequence[Call], work: Sequence[Work], workflows: int = 60
) -> tuple[list[Run], list[Call], list[Work]]:
    """The logs of some workflows only."""
    chosen = set(sorted({run.workflow_id for run in runs})[:workflows])
    return (
        [run for run in runs if run.workflow_id in chosen],
        [call for call in calls if call.workflow_id in chosen],
        [entry for entry in work if entry.workflow_id in chosen],
    )


def plant_each(
    runs: Sequence[Run], calls: Sequence[Call], work: Sequence[Work], seed: int, grain_ms: float = 0
) -> tuple[int, list[str]]:
    """How many corruptions were planted, each in logs of its own, and those that no right rule found."""
    missed = [f"in the good logs: {violation}" for violation in check(runs, calls, work, grain_ms=grain_ms)]
    planted = 0
    for plant, rules in CORRUPTIONS.items():
        logs = Logs(
            *copy.deepcopy((list(runs), list(calls), list(work))), random.Random(f"{seed}-{plant.__name__}")
        )
        try:
            plant(logs)
        except Unplantable:
            continue
        planted += 1
        found = {violation.rule for violation in check(logs.runs, logs.calls, logs.work, grain_ms=grain_ms)}
        if not found & rules:
            missed.append(f"{plant.__name__}: expected {sorted(rules)}, found {sorted(found)}")
    if planted < LEAST_PLANTED:
        missed.append(f"only {planted} corruptions found a place")
    return planted, missed
