// Parents and children, and what workflows send to each other.
import { WorkflowFailedError } from '@temporalio/client';
import { CancelledFailure } from '@temporalio/common';
import { child, end, leaver, parent, relay, relayParent, stranger } from './workflows/children';
import { count, successor, type World } from './world';

export async function parentsHearOfEveryEnd(w: World): Promise<void> {
  await w.serve(async () => {
    const run = await w.start(parent, { args: [] });
    // A child by its own id is refused meanwhile; then it hears of the end of the last one.
    await w.until(async () => count(await w.events(run.workflowId), 'startChildWorkflowExecutionFailedEventAttributes') === 1);
    await w.handle(`${run.workflowId}-terminate`).terminate('the case wants it');
    const expected = {
      succeed: 'completed',
      fail: 'failed: Told',
      signal: 'completed',
      cancel: 'cancelled',
      expire: 'timed out',
      terminate: 'terminated',
      nobody: 'unknown',
      clash: 'refused',
    };
    w.equal({ ...expected, ...(await run.result()) }, expected, 'the ends of the children');
  });
}

export async function areLeftAsTheirPolicySays(w: World): Promise<void> {
  await w.serve(async () => {
    const run = await w.start(leaver, { args: [] });
    await run.result();
    const status = async (name: string) => (await w.handle(`${run.workflowId}-${name}`).describe()).status.name;
    await w.until(async () => (await status('terminated')) === 'TERMINATED');
    await w.until(async () => (await status('cancelled')) === 'CANCELLED');
    w.equal(await status('left'), 'RUNNING', 'the one that was left');
    const left = w.handle<typeof child>(`${run.workflowId}-left`);
    await left.signal(end);
    w.equal(await left.result(), 'signalled', 'it goes on by itself');
  });
}

export async function continueAsNew(w: World): Promise<void> {
  await w.serve(async () => {
    const run = await w.start(relayParent, { args: [] });
    w.equal(await run.result(), 3, 'the result of the last run');
    const events = await w.events(run.workflowId);
    w.equal(count(events, 'childWorkflowExecutionStartedEventAttributes'), 1, 'children');
    w.equal(count(events, 'childWorkflowExecutionCompletedEventAttributes'), 1, 'ends that the parent hears of');
    const runs = await w.start(relay, { args: [1, 0] });
    w.equal(await runs.result(), 2, 'the same without a parent');
    w.that(!!successor(await w.events(runs.workflowId, runs.firstExecutionRunId)), 'the first run names the next');
  });
}

export async function strangersAreSignalledAndCancelled(w: World): Promise<void> {
  await w.serve(async () => {
    const signalled = await w.start(child, { args: ['signal'] });
    const cancelled = await w.start(child, { args: ['cancel'] });
    const run = await w.start(stranger, { args: [signalled.workflowId, cancelled.workflowId] });
    w.equal(await run.result(), ['signal: done', 'cancel: done', 'cancel nobody: refused'], 'what came of it');
    w.equal(await signalled.result(), 'signalled', 'the one that is signalled');
    const failed = await w.fails(cancelled.result(), WorkflowFailedError, 'the one that is cancelled');
    w.that(failed.cause instanceof CancelledFailure, 'how it ends', String(failed.cause));
    const asked = (await w.events(cancelled.workflowId)).find((event) => event.workflowExecutionCancelRequestedEventAttributes);
    const by = asked?.workflowExecutionCancelRequestedEventAttributes?.externalWorkflowExecution;
    w.equal(by?.workflowId, run.workflowId, 'who has asked for it');
  });
}
