// Ids that are used again, and runs that go back to a task.
import { WorkflowExecutionAlreadyStartedError, WorkflowFailedError } from '@temporalio/client';
import { TerminatedFailure, type WorkflowIdReusePolicy } from '@temporalio/common';
import { put, register, values } from './workflows/register';
import { count, startOf, type World } from './world';

export async function areUsedAgainAsPoliciesSay(w: World): Promise<void> {
  await w.serve(async () => {
    const first = await w.start(register, { args: [], startDelay: '500ms' });
    const delay = startOf(await w.events(first.workflowId)).firstWorkflowTaskBackoff;
    w.equal([Number(delay?.seconds ?? 0), delay?.nanos], [0, 500_000_000], 'the start is delayed');
    const { workflowId } = first;
    await w.fails(w.start(register, { args: [], workflowId }), WorkflowExecutionAlreadyStartedError, 'another start is refused');
    const same = await w.start(register, { args: [], workflowId, workflowIdConflictPolicy: 'USE_EXISTING' });
    w.equal(same.firstExecutionRunId, first.firstExecutionRunId, 'a start that takes what is there');
    const second = await w.start(register, { args: [], workflowId, workflowIdConflictPolicy: 'TERMINATE_EXISTING' });
    const error = await w.fails(w.handle(workflowId, first.firstExecutionRunId).result(), WorkflowFailedError, 'the one before');
    w.that(error.cause instanceof TerminatedFailure, 'it is terminated', String(error.cause));
    await second.signal(put, 0);
    await second.result();
    const policies: [WorkflowIdReusePolicy, boolean][] = [
      ['REJECT_DUPLICATE', false],
      ['ALLOW_DUPLICATE_FAILED_ONLY', false],
      ['ALLOW_DUPLICATE', true],
    ];
    for (const [workflowIdReusePolicy, isFree] of policies) {
      const start = w.start(register, { args: [], workflowId, workflowIdReusePolicy });
      if (isFree) await start;
      else await w.fails(start, WorkflowExecutionAlreadyStartedError, `${workflowIdReusePolicy} is refused`);
    }
  });
}

export async function resetsTakeSignalsAlong(w: World): Promise<void> {
  await w.serve(async () => {
    const run = await w.start(register, { args: [] });
    const { workflowId } = run;
    w.equal(await run.query(values), [], 'before the signals');
    for (const value of [3, 4, 5]) await run.signal(put, value);
    w.equal(await run.query(values), [3, 4, 5], 'before the reset');
    const firstTask = (await w.events(workflowId)).find((event) => event.workflowTaskCompletedEventAttributes);
    const runId = await w.reset(workflowId, run.firstExecutionRunId, firstTask?.eventId);
    const reset = w.handle<typeof register>(workflowId);
    w.equal(await reset.query(values), [3, 4, 5], 'after the reset');
    await reset.signal(put, 6);
    await reset.signal(put, 0);
    w.equal(await w.handle<typeof register>(workflowId, runId).result(), [3, 4, 5, 6], 'the values of the run that was reset');
    w.equal(count(await w.events(workflowId, runId), 'workflowTaskFailedEventAttributes'), 1, 'tasks that failed by the reset');
  });
}
