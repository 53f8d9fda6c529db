"""Workflows with a retry policy: tried again, with what they began with, until they succeed or may not."""

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.api.enums.v1 import ContinueAsNewInitiator, HistoryEventFilterType, RetryState
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest
from temporalio.client import WorkflowFailureError
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError, TimeoutError, TimeoutType
from temporalio.service import RPCStatusCode

import expect
import history as histories
import patience
from case import case
from history import events_named, shape
from world import World

POLICY = RetryPolicy(initial_interval=timedelta(milliseconds=100), maximum_attempts=3)


@workflow.defn
class Stubborn:
    """Fails until an attempt succeeds; says which one, and what it found."""

    def __init__(self) -> None:
        self.proceed = False

    @workflow.run
    async def run(self, succeeds_at: int, how: str) -> dict[str, Any]:
        info = workflow.info()
        if info.attempt < succeeds_at:
            if how == "never returns":
                await workflow.wait_condition(lambda: self.proceed)
            delay = timedelta(seconds=2) if how == "slowly" else None
            raise ApplicationError(
                f"attempt {info.attempt}", type=how, non_retryable=how == "fatal", next_retry_delay=delay
            )
        return {
            "attempt": info.attempt,
            "memo": dict(workflow.memo()),
            "first": info.first_execution_run_id,
            "continued": info.continued_run_id,
            "last_failure": str(workflow.get_last_failure()),
        }

    @workflow.signal
    def go_on(self) -> None:
        self.proceed = True


async def runs_of(world: World, handle: Any) -> list[Any]:
    return [run async for run in histories.chain(world.client, handle.id, handle.result_run_id)]


def started(run: Any) -> Any:
    return run.events[0].workflow_execution_started_event_attributes


@case()
async def a_workflow_is_tried_again_until_it_succeeds(world: World) -> None:
    async with world.worker(Stubborn):
        handle = await world.start(Stubborn.run, 3, "", retry_policy=POLICY, memo={"colour": "red"})
        found = await handle.result()
    runs = await runs_of(world, handle)
    expect.equal(len(runs), 3, "the runs")
    expect.equal((found["attempt"], found["memo"]), (3, {"colour": "red"}), "what the last one found")
    expect.equal((found["first"], found["continued"]), (runs[0].run_id, runs[1].run_id), "its chain")
    expect.that("attempt 2" in found["last_failure"], "the failure before", found["last_failure"])
    for before, after, attempt in zip(runs, runs[1:], [2, 3]):
        failed = events_named(before, "WorkflowExecutionFailed")[0]
        expect.equal(failed.retry_state, RetryState.RETRY_STATE_IN_PROGRESS, "why it goes on")
        expect.equal(failed.new_execution_run_id, after.run_id, "the next run")
        began = started(after)
        expect.equal(began.attempt, attempt, "the attempt")
        expect.equal(
            began.initiator, ContinueAsNewInitiator.CONTINUE_AS_NEW_INITIATOR_RETRY, "who made the run"
        )
        expect.equal(began.continued_execution_run_id, before.run_id, "the run before")
        expect.equal(began.first_execution_run_id, handle.first_execution_run_id, "the first run")
        expect.equal(began.original_execution_run_id, after.run_id, "its own run")
        expect.equal(began.continued_failure.message, f"attempt {attempt - 1}", "the failure before")
        expect.equal(began.input, started(before).input, "the same arguments")
        expect.equal(began.retry_policy, started(before).retry_policy, "the same policy")
        expect.equal(began.retry_policy.maximum_interval.ToSeconds(), 10, "the longest wait by itself")
        expect.that(began.first_workflow_task_backoff.ToMilliseconds() >= 100, "it waits")
    expect.equal(started(runs[0]).attempt, 1, "the first attempt")


@case()
async def a_client_that_follows_no_runs_is_told_of_a_continuation(world: World) -> None:
    async with world.worker(Stubborn):
        handle = await world.start(Stubborn.run, 2, "", retry_policy=POLICY)
        await handle.result()
    first, last = await runs_of(world, handle)

    async def close_event(run_id: str, **headers: str) -> Any:
        request = GetWorkflowExecutionHistoryRequest(
            namespace=world.client.namespace,
            wait_new_event=True,
            history_event_filter_type=HistoryEventFilterType.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT,
        )
        request.execution.workflow_id, request.execution.run_id = handle.id, run_id
        metadata = {name.replace("_", "-"): value for name, value in headers.items()}
        service = world.client.workflow_service
        answer = await service.get_workflow_execution_history(request, metadata=metadata)
        return answer.history.events[0]

    shown = await close_event(first.run_id)
    continued = shown.workflow_execution_continued_as_new_event_attributes
    expect.equal(shown.event_id, first.events[-1].event_id, "the id of the close event")
    expect.equal(continued.new_execution_run_id, last.run_id, "the run that follows")
    expect.equal(continued.failure.message, "attempt 1", "the failure")
    expect.equal(
        await close_event(first.run_id, supported_features="follows-next-run-id"),
        first.events[-1],
        "the close event as one sees it who follows runs",
    )
    expect.equal(await close_event(last.run_id), last.events[-1], "the close event of the last run")


@case()
async def attempts_are_used_up(world: World) -> None:
    async with world.worker(Stubborn):
        policy = RetryPolicy(initial_interval=timedelta(milliseconds=100), maximum_attempts=2)
        handle = await world.start(Stubborn.run, 9, "", retry_policy=policy)
        error = await expect.fails(WorkflowFailureError, handle.result())
    expect.equal(str(error.cause), "attempt 2", "the last failure")
    runs = await runs_of(world, handle)
    states = [events_named(run, "WorkflowExecutionFailed")[0].retry_state for run in runs]
    expect.equal(
        states,
        [RetryState.RETRY_STATE_IN_PROGRESS, RetryState.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED],
        "why it goes on, and why not",
    )


@case()
async def what_cannot_be_mended_is_not_tried_again(world: World) -> None:
    policy = RetryPolicy(initial_interval=timedelta(milliseconds=100), non_retryable_error_types=["listed"])
    async with world.worker(Stubborn):
        for how in ["fatal", "listed"]:
            handle = await world.start(Stubborn.run, 2, how, retry_policy=policy)
            await expect.fails(WorkflowFailureError, handle.result())
            failed = events_named(await world.history(handle), "WorkflowExecutionFailed")[0]
            expect.equal(failed.retry_state, RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE, how)
            expect.equal(failed.new_execution_run_id, "", "nothing follows")


@case()
async def a_failure_says_when_it_is_tried_again(world: World) -> None:
    async with world.worker(Stubborn):
        handle = await world.start(Stubborn.run, 2, "slowly", retry_policy=POLICY)
        expect.equal((await handle.result())["attempt"], 2, "the attempt")
    second = (await runs_of(world, handle))[1]
    expect.equal(started(second).first_workflow_task_backoff.ToMilliseconds(), 2_000, "the wait")


@case()
async def a_run_timeout_is_a_failed_attempt(world: World) -> None:
    async with world.worker(Stubborn):
        for span_s in patience.spans_s("the second attempt succeeds in time", 1):
            policy = RetryPolicy(initial_interval=timedelta(milliseconds=100))
            options = {"retry_policy": policy, "run_timeout": timedelta(seconds=span_s)}
            handle = await world.start(Stubborn.run, 2, "never returns", **options)
            if (await handle.result())["attempt"] == 2:
                break
        expect.equal(shape((await runs_of(world, handle))[0])[-1], "WorkflowExecutionTimedOut", "the first end")
        policy = RetryPolicy(initial_interval=timedelta(milliseconds=100), maximum_attempts=2)
        handle = await world.start(
            Stubborn.run, 9, "never returns", retry_policy=policy, run_timeout=timedelta(seconds=1)
        )
        error = await expect.fails(WorkflowFailureError, handle.result())
        expect.that(isinstance(error.cause, TimeoutError), "its kind", error.cause)
        expect.equal(error.cause.type, TimeoutType.START_TO_CLOSE, "what took too long")


@case()
async def an_execution_timeout_ends_all_attempts(world: World) -> None:
    async with world.worker(Stubborn):
        # Time for two attempts and not for a third one, however quick they are.
        for span_s in patience.spans_s("two attempts come in time", 1):
            policy = RetryPolicy(initial_interval=timedelta(seconds=span_s), backoff_coefficient=1)
            options = {"retry_policy": policy, "execution_timeout": timedelta(seconds=1.8 * span_s)}
            handle = await world.start(Stubborn.run, 99, "", **options)
            await expect.fails(WorkflowFailureError, handle.result())
            runs = await runs_of(world, handle)
            expect.that(len(runs) <= 2, "attempts", len(runs))
            if shape(runs[-1])[-1] == "WorkflowExecutionFailed" and len(runs) == 2:
                break
    failed = events_named(runs[-1], "WorkflowExecutionFailed")[0]
    expect.equal(failed.retry_state, RetryState.RETRY_STATE_TIMEOUT, "why not again")
    ends = {started(run).workflow_execution_expiration_time.ToMilliseconds() for run in runs}
    expect.equal(len(ends), 1, "all attempts have the same expiration")


@case()
async def a_policy_that_contradicts_itself_is_refused(world: World) -> None:
    long, short = timedelta(seconds=2), timedelta(seconds=1)
    for options in [{}, {"start_signal": "go_on"}]:
        start = world.client.start_workflow(
            Stubborn.run,
            args=[1, ""],
            id=world.id(),
            task_queue=world.queue,
            retry_policy=RetryPolicy(initial_interval=long, maximum_interval=short),
            **options,
        )
        try:
            error = await expect.refused(RPCStatusCode.INVALID_ARGUMENT, start)
        except ValueError:
            # The SDK looks at it first.
            continue
        expect.equal(
            error.message, "MaximumInterval cannot be less than InitialInterval on retry policy.", "why"
        )
