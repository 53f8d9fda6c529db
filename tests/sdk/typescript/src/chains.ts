// Runs that go on in others, and how they end.
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure, CancelledFailure, defaultPayloadConverter, RetryState, TimeoutFailure } from '@temporalio/common';
import { temporal } from '@temporalio/proto';
import { again, ferry, layUp, third, trip } from './workflows/chains';
import { register } from './workflows/register';
import { count, startOf, successor, type Event, type World } from './world';

const { ContinueAsNewInitiator, RetryState: ProtoRetryState } = temporal.api.enums.v1;

export async function workflowsAreRetried(w: World): Promise<void> {
  await w.serve(async () => {
    const run = await w.start(third, { args: [], retry: { initialInterval: '100ms', maximumAttempts: 3 } });
    w.equal(await run.result(), 3, 'the attempt that succeeds');
    const first = await w.events(run.workflowId, run.firstExecutionRunId);
    const failed = first.at(-1)!.workflowExecutionFailedEventAttributes;
    w.equal(failed?.retryState, ProtoRetryState.RETRY_STATE_IN_PROGRESS, 'the first failure is retried');
    const started = startOf(await w.events(run.workflowId, failed?.newExecutionRunId ?? ''));
    w.equal(started.continuedExecutionRunId, run.firstExecutionRunId, 'the run before');
    w.equal(started.continuedFailure?.message, 'not yet', 'the failure before');
    w.equal(started.attempt, 2, 'the attempt');
    const refused = await w.start(third, { args: [], retry: { nonRetryableErrorTypes: ['Early'], maximumAttempts: 3 } });
    const error = await w.fails(refused.result(), WorkflowFailedError, 'what is not to be retried fails');
    w.equal(error.retryState, RetryState.NON_RETRYABLE_FAILURE, 'why it is not');
    w.that(error.cause instanceof ApplicationFailure && error.cause.type === 'Early', 'the failure', String(error.cause));
  });
}

export async function runsCarryTheirState(w: World): Promise<void> {
  await w.serve(async () => {
    const run = await w.start(ferry, { args: [] });
    for (let n = 0; n < 30; n++) await w.handle(run.workflowId).signal(trip, n);
    await w.handle(run.workflowId).signal(layUp);
    const { trips, passengers, runs } = await run.result();
    w.equal([trips, passengers], [30, 435], 'the state');
    let signals = 0;
    let seen = 0;
    for (let next: string | null | undefined = run.firstExecutionRunId; next; seen++) {
      const events: Event[] = await w.events(run.workflowId, next);
      w.equal(startOf(events).firstExecutionRunId, run.firstExecutionRunId, 'the first run');
      signals += count(events, 'workflowExecutionSignaledEventAttributes');
      next = successor(events);
    }
    w.equal(signals, 31, 'signals in the histories');
    w.that(seen === runs && runs > 1, 'runs', seen, runs);
  });
}

export async function runsAreSignalledWithTheirStart(w: World): Promise<void> {
  await w.serve(async () => {
    const options = w.options<typeof ferry>({ args: [] });
    const send = () => w.client.workflow.signalWithStart(ferry, { ...options, signal: trip, signalArgs: [1] });
    const sent = await Promise.all([send(), send(), send(), send()]);
    w.equal(new Set(sent.map((handle) => handle.signaledRunId)).size, 1, 'the runs that were signalled');
    w.remember(sent[0].workflowId, sent[0].signaledRunId);
    await sent[0].signal(layUp);
    w.equal((await sent[0].result()).passengers, 4, 'every signal once');
  });
}

export async function cronRunsGoOnFromTheirResults(w: World): Promise<void> {
  await w.serve(async () => {
    const run = await w.start(again, { args: [], cronSchedule: '@every 1s' });
    let started: ReturnType<typeof startOf>;
    await w.until(async () => {
      const { runId } = await w.handle(run.workflowId).describe();
      started = startOf(await w.events(run.workflowId, runId));
      const payload = started.lastCompletionResult?.payloads?.[0];
      return !!payload && defaultPayloadConverter.fromPayload<number>(payload) >= 2;
    });
    w.equal(started!.initiator, ContinueAsNewInitiator.CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE, 'who has begun it');
    w.equal(started!.firstExecutionRunId, run.firstExecutionRunId, 'the first run');
    w.equal(started!.cronSchedule, '@every 1s', 'the schedule');
  });
}

export async function runsAreCancelledAndTimeOut(w: World): Promise<void> {
  await w.serve(async () => {
    const cancelled = await w.start(register, { args: [] });
    const expiring = await w.start(register, { args: [], workflowExecutionTimeout: '1s' });
    const terminated = await w.start(register, { args: [] });
    await cancelled.cancel();
    await terminated.terminate('the case wants it');
    const ends = [];
    for (const run of [cancelled, expiring, terminated]) {
      const { cause } = await w.fails(run.result(), WorkflowFailedError, 'it does not complete');
      ends.push(cause?.name);
    }
    w.equal(ends, [CancelledFailure.name, TimeoutFailure.name, 'TerminatedFailure'], 'how they end');
  });
}
