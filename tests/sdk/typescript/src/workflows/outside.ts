// A workflow whose activity is completed from outside.
import {
  ActivityCancellationType,
  ActivityFailure,
  CancellationScope,
  CancelledFailure,
  defineSignal,
  proxyActivities,
  setHandler,
} from '@temporalio/workflow';
import type * as activities from '../activities';

export const giveUp = defineSignal('give up');

/** Calls an activity that is completed from outside, and cancels it when it is told to. */
export async function outside(maximumAttempts: number | undefined, startToCloseTimeout: number): Promise<string> {
  const { leave } = proxyActivities<typeof activities>({
    startToCloseTimeout,
    retry: { initialInterval: '50ms', maximumAttempts },
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  });
  const scope = new CancellationScope();
  setHandler(giveUp, () => scope.cancel());
  try {
    return await scope.run(() => leave());
  } catch (error) {
    if (error instanceof ActivityFailure && error.cause instanceof CancelledFailure) return String(error.cause.details?.[0]);
    throw error;
  }
}
