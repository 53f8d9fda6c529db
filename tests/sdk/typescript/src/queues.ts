// Task queues: the rate of one, and the workers of one as they tell of themselves.
import { temporal } from '@temporalio/proto';
import { seenOf } from './activities';
import { batch } from './workflows/activities';
import type { World } from './world';

const { TaskQueueType, WorkerStatus } = temporal.api.enums.v1;

export async function holdTheirActivitiesBack(w: World): Promise<void> {
  const body = async () => {
    const begun = Date.now();
    const run = await w.start(batch, { args: [20] });
    await run.result();
    const takenMs = Date.now() - begun;
    w.equal(seenOf(run.workflowId).length, 20, 'activities');
    // What a queue may hand out at once is the server's: a second's worth, and some more where it has parts.
    w.that(takenMs > 2_500, '20 activities at 5 a second', takenMs);
    const { pollers } = await w.client.workflowService.describeTaskQueue({
      namespace: w.namespace,
      taskQueue: { name: w.queue },
      taskQueueType: TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
    });
    w.equal([...new Set(pollers.map(({ ratePerSecond }) => ratePerSecond))], [5], 'what its pollers say');
  };
  await w.serve(body, { maxTaskQueueActivitiesPerSecond: 5, maxEagerActivityReservationsPerWorkflowTask: 0 });
}

/** What workers have last said of themselves that poll the case's queue. */
async function said(w: World): Promise<temporal.api.worker.v1.IWorkerHeartbeat[]> {
  const request = { namespace: w.namespace, query: `TaskQueue = '${w.queue}'` };
  const { workersInfo } = await w.client.workflowService.listWorkers(request);
  return workersInfo.map(({ workerHeartbeat }) => workerHeartbeat!);
}

export async function workersTellOfThemselves(w: World): Promise<void> {
  let all: Awaited<ReturnType<typeof said>> = [];
  const first = await w.serve(async () => {
    await w.until(async () => (all = await said(w)).length > 0);
    const [one] = all;
    w.equal([one.sdkName, one.taskQueue], ['temporal-typescript', w.queue], 'who it is');
    w.equal(one.status, WorkerStatus.WORKER_STATUS_RUNNING, 'how it is');
    await (await w.start(batch, { args: [3] })).result();
    // It tells again and again.
    await w.until(async () => (await said(w))[0].activityTaskSlotsInfo?.totalProcessedTasks === 3);
    return one;
  });
  await w.until(async () => (all = await said(w))[0].status === WorkerStatus.WORKER_STATUS_SHUTTING_DOWN);
  w.equal(all.map(({ workerInstanceKey }) => workerInstanceKey), [first.workerInstanceKey], 'it is still the same');
}
