// Activities that are completed from outside, by their tokens and by ids.
import type { Info } from '@temporalio/activity';
import { ActivityCancelledError, ActivityNotFoundError, WorkflowFailedError, type WorkflowHandle } from '@temporalio/client';
import { ActivityFailure, ApplicationFailure } from '@temporalio/common';
import { leftOf } from './activities';
import { MOST_MS } from './patience';
import { giveUp, outside } from './workflows/outside';
import { count, type World } from './world';

/** The info of an attempt, once it has come to its activity. */
async function left(w: World, run: WorkflowHandle, attempt: number): Promise<Info> {
  const found = () => leftOf(run.workflowId).find((info) => info.attempt === attempt);
  await w.until(() => !!found());
  return found()!;
}

export async function fromOutside(w: World): Promise<void> {
  const { activity } = w.client;
  await w.serve(async () => {
    const byToken = await w.start(outside, { args: [1, MOST_MS] });
    const { taskToken } = await left(w, byToken, 1);
    await activity.heartbeat(taskToken, 'half');
    await activity.complete(taskToken, 'by token');
    w.equal(await byToken.result(), 'by token', 'the result by token');
    await w.fails(activity.complete(taskToken, 'twice'), ActivityNotFoundError, 'a second completion is refused');

    const byIds = await w.start(outside, { args: [1, MOST_MS] });
    const { activityId } = await left(w, byIds, 1);
    const ids = { workflowId: byIds.workflowId, runId: byIds.firstExecutionRunId, activityId };
    await activity.heartbeat(ids, 'half');
    await activity.complete(ids, 'by ids');
    w.equal(await byIds.result(), 'by ids', 'the result by ids');

    const failing = await w.start(outside, { args: [1, MOST_MS] });
    const failure = ApplicationFailure.create({ message: 'from outside', type: 'Outside' });
    await activity.fail((await left(w, failing, 1)).taskToken, failure);
    const { cause } = await w.fails(failing.result(), WorkflowFailedError, 'it fails');
    const why = cause instanceof ActivityFailure ? cause.cause : cause;
    w.that(why instanceof ApplicationFailure && why.type === 'Outside', 'the failure', String(why));
  });
}

export async function cancellationsAreHeardOf(w: World): Promise<void> {
  const { activity } = w.client;
  await w.serve(async () => {
    const run = await w.start(outside, { args: [1, MOST_MS] });
    const { taskToken } = await left(w, run, 1);
    await activity.heartbeat(taskToken);
    await run.signal(giveUp);
    await w.until(async () => count(await w.events(run.workflowId), 'activityTaskCancelRequestedEventAttributes') === 1);
    await w.fails(activity.heartbeat(taskToken), ActivityCancelledError, 'a heartbeat tells of it');
    await activity.reportCancellation(taskToken, 'gave up');
    w.equal(await run.result(), 'gave up', 'what the workflow hears');
  });
}

export async function lateResultsAreRefused(w: World): Promise<void> {
  const { activity } = w.client;
  await w.serve(async () => {
    const run = await w.start(outside, { args: [undefined, 2_000] });
    const complete = async (attempt: number, result: string) => activity.complete((await left(w, run, attempt)).taskToken, result);
    await left(w, run, 2);
    await w.fails(complete(1, 'late'), ActivityNotFoundError, 'the result of an attempt whose time is over');
    // A slow machine may take longer than an attempt has.
    const isInTime = (attempt: number) =>
      complete(attempt, 'in time').then(
        () => true,
        (error: unknown) => {
          if (!(error instanceof ActivityNotFoundError)) throw error;
          return false;
        }
      );
    for (let attempt = 2; !(await isInTime(attempt)); ) attempt += 1;
    w.equal(await run.result(), 'in time', 'the result');
  });
}
