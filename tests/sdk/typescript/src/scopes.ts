// Timers and cancellation scopes.
import { WorkflowFailedError } from '@temporalio/client';
import { CancelledFailure } from '@temporalio/common';
import { seenOf } from './activities';
import { scoped, timers, waiting } from './workflows/scopes';
import { count, type World } from './world';

export async function timersFireInOrder(w: World): Promise<void> {
  await w.serve(async () => {
    const run = await w.start(timers, { args: [] });
    w.equal(await run.result(), ['first', 'second', 'last', 'cancelled', 'timed out'], 'the order');
    const events = await w.events(run.workflowId);
    w.equal(count(events, 'timerStartedEventAttributes'), 6, 'started');
    w.equal(count(events, 'timerFiredEventAttributes'), 5, 'fired');
    w.equal(count(events, 'timerCanceledEventAttributes'), 1, 'cancelled');
  });
}

export async function areCancelled(w: World): Promise<void> {
  await w.serve(async () => {
    const run = await w.start(scoped, { args: [] });
    await w.until(() => run.query(waiting));
    await run.cancel();
    const { cause } = await w.fails(run.result(), WorkflowFailedError, 'it does not complete');
    w.that(cause instanceof CancelledFailure, 'it is cancelled', String(cause));
    const told = 'by itself cancelled, by its time cancelled, with the workflow cancelled';
    w.equal(seenOf(run.workflowId), [told], 'what was cancelled, told by an activity that was not');
    const events = await w.events(run.workflowId);
    w.equal(count(events, 'timerCanceledEventAttributes'), 3, 'timers cancelled');
    w.equal(count(events, 'activityTaskCompletedEventAttributes'), 1, 'activities after the cancellation');
  });
}
