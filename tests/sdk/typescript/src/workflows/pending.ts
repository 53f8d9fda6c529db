// A workflow with work that is pending for as long as somebody wants to look at it.
import {
  ActivityCancellationType,
  CancellationScope,
  executeChild,
  isCancellation,
  ParentClosePolicy,
  proxyActivities,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type * as activities from '../activities';
import { enough } from './activities';
import { child } from './children';

const { stumble } = proxyActivities<typeof activities>({
  startToCloseTimeout: '10s',
  retry: { initialInterval: '1h', maximumAttempts: 3 },
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
});

/** Waits for a child, and for an activity whose second attempt is a long time off, until it is told that it is enough. */
export async function pending(): Promise<string[]> {
  const scope = new CancellationScope();
  setHandler(enough, () => scope.cancel());
  const workflowId = `${workflowInfo().workflowId}-child`;
  const waiting = () => executeChild(child, { args: ['wait'], workflowId, parentClosePolicy: ParentClosePolicy.ABANDON });
  const ends = await scope.run(() => Promise.allSettled([waiting(), stumble()]));
  return ends.map((end) => (end.status === 'rejected' && isCancellation(end.reason) ? 'cancelled' : end.status));
}
