// Code that does not fit a run's history: the task fails, the run waits, and goes on with mended code.
import { isGrpcServiceError, ServiceError } from '@temporalio/client';
import { temporal } from '@temporalio/proto';
import { breaking, changing, finish, stuffing, swelling } from './workflows/changing';
import { count, type World } from './world';

const { WorkflowTaskFailedCause: Cause } = temporal.api.enums.v1;

export const ofChangedCode = (w: World) => failsItsTask(w, changing, Cause.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR);

export const ofBrokenCode = (w: World) =>
  failsItsTask(w, breaking, Cause.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE);

/** Of code that has too large a result, and of code that calls an activity with too much. */
export async function ofTooLargePayloads(w: World): Promise<void> {
  for (const workflow of [swelling, stuffing]) await failsItsTask(w, workflow, Cause.WORKFLOW_TASK_FAILED_CAUSE_PAYLOADS_TOO_LARGE);
}

/**
 * Has a run of a workflow go on with a bad build, which fails its task, and at last with what it was. Where a task took longer than
 * it may, another run has twice as long.
 */
async function failsItsTask(w: World, workflow: typeof changing, cause: number): Promise<void> {
  for (let ms = 2_000; !(await failsItsTaskWithin(w, ms, workflow, cause)); ) ms *= 2;
}

async function failsItsTaskWithin(w: World, workflowTaskTimeout: number, workflow: typeof changing, cause: number): Promise<boolean> {
  const run = await w.start(workflow, { args: [], workflowTaskTimeout });
  await w.serve(() => w.until(async () => count(await w.events(run.workflowId), 'workflowTaskCompletedEventAttributes') === 2));
  const bad = async () => {
    await run.signal(finish);
    await w.until(async () => ((await run.describe()).raw.pendingWorkflowTask?.attempt ?? 0) >= 3);
    const events = await w.events(run.workflowId);
    if (count(events, 'workflowTaskTimedOutEventAttributes') > 0) return false;
    const failures = events.flatMap((event) => event.workflowTaskFailedEventAttributes ?? []);
    w.equal(failures.map((failure) => failure.cause), [cause], 'the causes: further attempts leave no event');
    const refused = await w.fails(run.query('__stack_trace'), ServiceError, 'a query meanwhile is refused');
    w.that(isGrpcServiceError(refused.cause) && refused.cause.code === 9, 'a failed precondition', String(refused.cause));
    return true;
  };
  const isInTime = await w.serve(bad, { workflowBundle: w.server.badBundle });
  await w.serve(async () => w.equal(await run.result(), 1, 'the result of mended code'));
  return isInTime;
}
