// Activities: attempts, timeouts, heartbeats, cancellation; and runs that are described meanwhile.
import { defaultPayloadConverter } from '@temporalio/common';
import { temporal } from '@temporalio/proto';
import { seenOf } from './activities';
import { beating, busy, cancelling, enough, expiring, hopeless, remote } from './workflows/activities';
import { pending } from './workflows/pending';
import { count, type World } from './world';

const { ParentClosePolicy, PendingActivityState } = temporal.api.enums.v1;

export async function areRetried(w: World): Promise<void> {
  await w.serve(async () => {
    const run = await w.start(remote, { args: [], staticSummary: 'a workflow of TypeScript' });
    w.equal(await run.result(), 3, 'the attempt that succeeded');
    const events = await w.events(run.workflowId);
    const scheduled = events.find((event) => event.activityTaskScheduledEventAttributes);
    const summary = Buffer.from(scheduled?.userMetadata?.summary?.data ?? []).toString();
    w.equal(summary, '"an activity of TypeScript"', 'the summary');
    const started = events.find((event) => event.activityTaskStartedEventAttributes)?.activityTaskStartedEventAttributes;
    w.equal([started?.attempt, started?.lastFailure?.message], [3, 'not yet'], 'the attempt and the failure before');
    const failing = await w.start(hopeless, { args: [] });
    const why = ['Early: MAXIMUM_ATTEMPTS_REACHED', 'Early: NON_RETRYABLE_FAILURE'];
    w.equal(await failing.result(), why, 'why they are not tried again');
    w.equal(seenOf(failing.workflowId).sort(), ['none', 'two', 'two'], 'attempts');
  });
}

export async function timeOut(w: World): Promise<void> {
  await w.serve(async () => {
    let run = await w.start(expiring, { args: [300] });
    // A slow machine may take longer to begin an activity than there is until its close: then it gets twice as long.
    for (let ms = 600; (await run.result())[1] === 'SCHEDULE_TO_START'; ms *= 2) run = await w.start(expiring, { args: [ms] });
    const kinds = ['START_TO_CLOSE', 'SCHEDULE_TO_CLOSE', 'HEARTBEAT', 'SCHEDULE_TO_START'];
    w.equal(await run.result(), kinds, 'the timeouts');
    w.equal(count(await w.events(run.workflowId), 'activityTaskTimedOutEventAttributes'), 4, 'in the history');
  });
}

export async function heartbeatsReachTheNextAttempt(w: World): Promise<void> {
  await w.serve(async () => {
    const run = await w.start(beating, { args: [] });
    w.equal(await run.result(), [1, 2, 3], 'each attempt goes on from the one before');
  });
}

export async function areCancelledInThreeWays(w: World): Promise<void> {
  await w.serve(async () => {
    const run = await w.start(cancelling, { args: [] });
    await w.until(() => seenOf(run.workflowId).length === 3);
    await run.signal(enough);
    const ends = await run.result();
    w.equal([ends.try, ends.wait, ends.abandon], ['cancelled', 'cancelled', 'cancelled'], 'what the workflow hears');
    w.that(seenOf(run.workflowId).includes('wait cancelled'), 'it has waited for this one', seenOf(run.workflowId));
    const events = await w.events(run.workflowId);
    w.equal(count(events, 'activityTaskCancelRequestedEventAttributes'), 2, 'those that are told');
    w.that(count(events, 'activityTaskCanceledEventAttributes') >= 1, 'the end that was waited for');
  });
}

export async function runsAreDescribed(w: World): Promise<void> {
  await w.serve(async () => {
    const options = { staticSummary: 'a workflow of TypeScript', staticDetails: 'that waits', memo: { of: 'the case' } };
    const run = await w.start(busy, { args: [], ...options });
    await w.until(() => seenOf(run.workflowId).length === 1);
    const open = await run.describe();
    w.equal([open.status.name, open.type, open.taskQueue], ['RUNNING', 'busy', w.queue], 'the open run');
    w.equal([await open.staticSummary(), await open.staticDetails()], [options.staticSummary, options.staticDetails], 'what it is');
    w.equal(open.memo, options.memo, 'its memo');
    const [pending] = open.raw.pendingActivities ?? [];
    w.equal([pending?.activityType?.name, pending?.attempt], ['linger', 1], 'its pending activity');
    await run.signal(enough);
    await run.result();
    const closed = await run.describe();
    const { length } = await w.events(run.workflowId);
    w.equal([closed.status.name, closed.historyLength], ['COMPLETED', length], 'the closed run');
    w.that(!!closed.closeTime && closed.closeTime >= closed.startTime, 'its times', closed.startTime, closed.closeTime);
  });
}

interface Moment {
  seconds?: unknown;
  nanos?: number | null;
}

const secondsOf = (moment: Moment | null | undefined): number => Number(moment?.seconds ?? 0) + (moment?.nanos ?? 0) / 1e9;

export async function pendingWorkIsDescribed(w: World): Promise<void> {
  await w.serve(async () => {
    const run = await w.start(pending, { args: [] });
    let open = await run.describe();
    await w.until(async () => {
      open = await run.describe();
      return open.raw.pendingActivities?.[0]?.attempt === 2 && !!open.raw.pendingChildren?.[0]?.runId;
    });
    const [activity] = open.raw.pendingActivities!;
    w.equal([activity.activityType?.name, activity.maximumAttempts], ['stumble', 3], 'the activity');
    w.equal(activity.state, PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED, 'its state');
    const { message, applicationFailureInfo } = activity.lastFailure!;
    w.equal([message, applicationFailureInfo?.type], ['not yet', 'Early'], 'its last failure');
    w.that(!!activity.lastWorkerIdentity, 'who has had it', activity);
    const [details] = activity.heartbeatDetails?.payloads ?? [];
    w.equal(details && defaultPayloadConverter.fromPayload(details), 'half the way', 'what it last told');
    w.equal(Math.round(secondsOf(activity.currentRetryInterval)), 3600, 'how long it waits');
    const waits = secondsOf(activity.nextAttemptScheduleTime) - secondsOf(activity.lastAttemptCompleteTime);
    w.equal(Math.round(waits), 3600, 'from the last attempt to the next');

    const [waiting] = open.raw.pendingChildren!;
    w.equal([waiting.workflowId, waiting.workflowTypeName], [`${run.workflowId}-child`, 'child'], 'the child');
    w.equal(waiting.parentClosePolicy, ParentClosePolicy.PARENT_CLOSE_POLICY_ABANDON, 'what becomes of it');
    const initiated = (await w.events(run.workflowId))[Number(waiting.initiatedId) - 1];
    const { workflowId } = initiated.startChildWorkflowExecutionInitiatedEventAttributes ?? {};
    w.equal(workflowId, waiting.workflowId, 'the event that it comes from');

    await run.signal(enough);
    w.equal(await run.result(), ['cancelled', 'cancelled'], 'how both have ended');
    const { raw } = await run.describe();
    w.equal([raw.pendingActivities?.length, raw.pendingChildren?.length], [0, 0], 'what is pending at last');
    w.that(!raw.pendingWorkflowTask, 'no task is pending', raw.pendingWorkflowTask);
  });
}
