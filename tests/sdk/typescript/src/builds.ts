// Builds of workers: where each came in, as a run tells it, and the way back to before a bad one.
import type { temporal } from '@temporalio/proto';
import { put, register, values } from './workflows/register';
import type { World } from './world';

async function told(w: World, workflowId: string, runId: string): Promise<temporal.api.workflow.v1.IWorkflowExecutionInfo> {
  return (await w.handle(workflowId, runId).describe()).raw.workflowExecutionInfo!;
}

const points = (info: temporal.api.workflow.v1.IWorkflowExecutionInfo) => info.autoResetPoints?.points ?? [];
const builds = (info: temporal.api.workflow.v1.IWorkflowExecutionInfo) => points(info).map(({ buildId }) => buildId);

export async function areToldByTheirRuns(w: World): Promise<void> {
  const run = await w.start(register, { args: [] });
  const { workflowId, firstExecutionRunId } = run;
  for (const buildId of ['one', 'two']) {
    await w.serve(
      async () => {
        for (const value of [1, 2]) {
          await run.signal(put, value);
          await run.query(values);
        }
      },
      { buildId }
    );
  }
  const info = await told(w, workflowId, firstExecutionRunId);
  w.equal(builds(info), ['one', 'two'], 'the builds, once each');
  w.equal(info.mostRecentWorkerVersionStamp?.buildId, 'two', 'the latest');
  const { searchAttributes } = await run.describe();
  w.equal(searchAttributes.BuildIds, ['unversioned', 'unversioned:one', 'unversioned:two'], 'the search attribute');

  const events = await w.events(workflowId, firstExecutionRunId);
  const tasks = events.filter((event) => event.workflowTaskCompletedEventAttributes);
  const completers = tasks.map((event) => event.workflowTaskCompletedEventAttributes?.workerVersion?.buildId);
  w.equal([...new Set(completers)], ['one', 'two'], 'who has completed the tasks');
  for (const { buildId, runId, firstWorkflowTaskCompletedId } of points(info)) {
    w.equal(runId, firstExecutionRunId, 'the run of a point');
    const task = tasks.find(({ eventId }) => eventId?.eq(firstWorkflowTaskCompletedId!));
    w.equal(task?.workflowTaskCompletedEventAttributes?.workerVersion?.buildId, buildId, 'the build of the task of a point');
  }
}

export async function runsGoBackToBeforeABadOne(w: World): Promise<void> {
  const run = await w.start(register, { args: [] });
  const { workflowId, firstExecutionRunId } = run;
  const good = async () => {
    await run.signal(put, 1);
    w.equal(await run.query(values), [1], 'by the good one');
  };
  await w.serve(good, { buildId: 'good' });
  const bad = async () => {
    await run.signal(put, 10);
    w.equal(await run.query(values), [2, 20], 'by the bad one');
    await run.signal(put, 100);
    w.equal(await run.query(values), [2, 20, 200], 'by the bad one, once more');
  };
  await w.serve(bad, { buildId: 'bad', workflowBundle: w.server.badBundle });
  const [, point] = points(await told(w, workflowId, firstExecutionRunId));
  w.that(point?.buildId === 'bad' && !!point.resettable, 'the point of the bad one', point);
  const mended = async () => {
    const runId = await w.reset(workflowId, point.runId!, point.firstWorkflowTaskCompletedId);
    const again = w.handle<typeof register>(workflowId, runId);
    w.equal(await again.query(values), [1, 10, 100], 'kept rightly');
    w.equal(builds(await told(w, workflowId, runId)), ['good', 'mended'], 'the builds of the run that was reset');
    await again.signal(put, 0);
    w.equal(await again.result(), [1, 10, 100], 'the values');
  };
  await w.serve(mended, { buildId: 'mended' });
}
