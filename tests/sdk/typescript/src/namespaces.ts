// Namespaces: what is in one is nothing to another.
import { WorkflowNotFoundError } from '@temporalio/client';
import { NamespaceNotFoundError } from '@temporalio/common';
import { msToTs } from '@temporalio/common/lib/time';
import { put, register, values } from './workflows/register';
import { count, type World } from './world';

/** Makes a namespace: the same in there, once it can be used. */
async function within(w: World, namespace: string): Promise<World> {
  await w.client.workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod: msToTs('1 day') });
  const other = w.within(namespace);
  await w.until(async () => (await answers(other)).every((error) => error instanceof WorkflowNotFoundError));
  return other;
}

/** How somebody is answered who asks for runs that are not there; of several nodes each has some of them. */
async function answers(w: World): Promise<unknown[]> {
  const nobodies = Array.from({ length: 20 }, (_, n) => w.handle(`nobody-${n}`));
  return await Promise.all(nobodies.map((nobody) => nobody.describe().catch((error: unknown) => error)));
}

export async function keepEqualNamesApart(w: World): Promise<void> {
  const namespace = w.id();
  const other = await within(w, namespace);
  const run = await w.start(register, { args: [] });
  const { workflowId } = run;
  // Of the same id, and on a queue of the same name.
  const twin = await other.start(register, { args: [], workflowId });
  w.that(run.firstExecutionRunId !== twin.firstExecutionRunId, 'two runs', run.firstExecutionRunId);
  await w.serve(async () => {
    await run.signal(put, 1);
    await twin.signal(put, 2);
    w.equal(await run.query(values), [1], 'what the one was told');
    await run.signal(put, 0);
    await run.result();
  });
  w.equal((await twin.describe()).status.name, 'RUNNING', 'the other one goes on');
  const started = count(await other.events(workflowId), 'workflowTaskStartedEventAttributes');
  w.equal(started, 0, 'its tasks that went to a worker of another namespace');
  await other.serve(async () => {
    await twin.signal(put, 0);
    w.equal(await twin.result(), [2], 'what the other one was told');
  });
  await other.closeAndReplay();

  await w.client.connection.operatorService.deleteNamespace({ namespace });
  await w.until(async () => (await answers(other)).every((error) => error instanceof NamespaceNotFoundError));
  w.equal((await run.describe()).status.name, 'COMPLETED', 'the one is what it was');
}
