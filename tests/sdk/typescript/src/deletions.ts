// Runs that are deleted, closed and open.
import { isGrpcServiceError, WorkflowNotFoundError } from '@temporalio/client';
import { put, register, values } from './workflows/register';
import type { World } from './world';

async function deleteRun(w: World, workflowId: string, runId?: string): Promise<void> {
  await w.client.workflowService.deleteWorkflowExecution({ namespace: w.namespace, workflowExecution: { workflowId, runId } });
}

/** Whether there is no such run: not all calls say so by an error of their own. */
const isNotFound = (error: unknown): boolean =>
  error instanceof WorkflowNotFoundError || (isGrpcServiceError(error) && error.code === 5);

async function isUnknown(w: World, asked: Promise<unknown>, what: string): Promise<void> {
  const error = await w.fails(asked, Error, what);
  w.that(isNotFound(error), what, String(error));
}

/** Returns once nobody knows a run any more, whatever they ask. */
async function untilGone(w: World, workflowId: string, runId: string): Promise<void> {
  const run = w.handle<typeof register>(workflowId, runId);
  await w.until(() => run.describe().then(() => false, isNotFound));
  await isUnknown(w, run.fetchHistory(), 'its history');
  await isUnknown(w, run.query(values), 'a query');
  await isUnknown(w, run.signal(put, 1), 'a signal');
  await isUnknown(w, run.result(), 'its result');
  await isUnknown(w, deleteRun(w, workflowId, runId), 'another deletion');
}

export async function areForgotten(w: World): Promise<void> {
  await w.serve(async () => {
    // Not remembered by the case: there is no history to replay afterwards.
    const start = async () => await w.client.workflow.start(register, w.options<typeof register>({ args: [] }));
    const [closed, open] = [await start(), await start()];
    await closed.signal(put, 1);
    await closed.signal(put, 0);
    await closed.result();
    const next = await w.start(register, { args: [], workflowId: closed.workflowId });
    await open.signal(put, 1);
    w.equal(await open.query(values), [1], 'the open one');

    await deleteRun(w, closed.workflowId, closed.firstExecutionRunId);
    await deleteRun(w, open.workflowId);
    for (const { workflowId, firstExecutionRunId } of [closed, open]) {
      await untilGone(w, workflowId, firstExecutionRunId);
    }
    await isUnknown(w, deleteRun(w, w.id()), 'a deletion of what never was');
    await next.signal(put, 2);
    w.equal(await next.query(values), [2], 'the next run of an id goes on');
    await next.signal(put, 0);
    await next.result();
    const again = await w.start(register, { args: [], workflowId: open.workflowId });
    w.equal(await again.query(values), [], 'values of a run that takes an id again');
  });
}
