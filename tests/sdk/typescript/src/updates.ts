// Updates, once each, also with a start.
import { WithStartWorkflowOperation, WorkflowNotFoundError, WorkflowUpdateFailedError, WorkflowUpdateStage } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { add, close, tally } from './workflows/tally';
import { count, type World } from './world';

export async function areValidatedAndAnsweredOnce(w: World): Promise<void> {
  await w.serve(async () => {
    const run = await w.start(tally, { args: [0] });
    for (const _ of [1, 2]) {
      w.equal(await run.executeUpdate(add, { args: [5], updateId: 'first' }), 5, 'one update, however often it is sent');
    }
    const accepted = await run.startUpdate(add, { args: [2], waitForStage: WorkflowUpdateStage.ACCEPTED });
    w.equal(await accepted.result(), 7, 'the outcome of an update that was waited for until it was accepted');
    await w.fails(run.executeUpdate(add, { args: [-1] }), WorkflowUpdateFailedError, 'the validator refuses');
    const failed = await w.fails(run.executeUpdate(add, { args: [13] }), WorkflowUpdateFailedError, 'the handler fails');
    w.that(failed.cause instanceof ApplicationFailure && failed.cause.type === 'Unlucky', 'why it fails', String(failed.cause));
    await run.signal(close);
    w.equal(await run.result(), 7, 'the sum');
    w.equal(await run.getUpdateHandle<number>('first').result(), 5, 'an outcome after the end');
    await w.fails(run.executeUpdate(add, { args: [1] }), WorkflowNotFoundError, 'an update after the end is refused');
    const events = await w.events(run.workflowId);
    w.equal(count(events, 'workflowExecutionUpdateAcceptedEventAttributes'), 3, 'accepted in the history');
    w.equal(count(events, 'workflowExecutionUpdateCompletedEventAttributes'), 3, 'completed in the history');
  });
}

export async function startTheirWorkflow(w: World): Promise<void> {
  await w.serve(async () => {
    const workflowId = w.id();
    const runs = new Set<string>();
    for (const sum of [101, 102, 103]) {
      const options = w.options<typeof tally>({ workflowId, args: [100] });
      const startWorkflowOperation = new WithStartWorkflowOperation(tally, { ...options, workflowIdConflictPolicy: 'USE_EXISTING' });
      const outcome = await w.client.workflow.executeUpdateWithStart(add, { args: [1], startWorkflowOperation });
      w.equal(outcome, sum, 'the outcome');
      const { runId } = await (await startWorkflowOperation.workflowHandle()).describe();
      w.remember(workflowId, runId);
      runs.add(runId);
    }
    w.equal(runs.size, 1, 'one run');
  });
}
