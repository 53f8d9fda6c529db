// Histories in pages, and of runs that go over from worker to worker.
import type { temporal } from '@temporalio/proto';
import { put, register, values } from './workflows/register';
import { count, type Event, type World } from './world';

type Page = Pick<temporal.api.workflowservice.v1.IGetWorkflowExecutionHistoryResponse, 'history' | 'nextPageToken'>;

const written = (events: Event[]): string[] => events.map((event) => JSON.stringify(event));

/** Claims that these events come, and in pages. */
async function inPages(w: World, events: Event[], page: (nextPageToken?: Uint8Array | null) => Promise<Page>): Promise<void> {
  const all: Event[] = [];
  let pages = 0;
  let token: Uint8Array | null | undefined;
  do {
    const { history, nextPageToken } = await page(token);
    all.push(...(history?.events ?? []));
    token = nextPageToken;
    pages += 1;
  } while (token?.length);
  w.that(pages > events.length / 10, 'pages', pages);
  w.equal(written(all), written(events), 'they hold the same');
}

export async function comeInPages(w: World): Promise<void> {
  const run = await w.start(register, { args: [] });
  for (let value = 1; value <= 30; value++) await run.signal(put, value);
  await run.signal(put, 0);
  await w.serve(() => run.result());
  const events = await w.events(run.workflowId);
  w.equal(count(events, 'workflowExecutionSignaledEventAttributes'), 31, 'signals');
  const { workflowService } = w.client;
  const execution = { workflowId: run.workflowId, runId: run.firstExecutionRunId };
  const request = { namespace: w.namespace, execution, maximumPageSize: 5 };
  await inPages(w, events, (nextPageToken) => workflowService.getWorkflowExecutionHistory({ ...request, nextPageToken }));
  await inPages(w, events.toReversed(), (nextPageToken) =>
    workflowService.getWorkflowExecutionHistoryReverse({ ...request, nextPageToken })
  );
}

export async function goOnWhenAWorkerStops(w: World): Promise<void> {
  const run = await w.start(register, { args: [] });
  // Whoever waited until the time of a worker's own queue is over would wait for hours.
  const serve = (identity: string, body: () => Promise<void>) => w.serve(body, { identity, stickyQueueScheduleToStartTimeout: '10h' });
  await serve('first', async () => {
    await run.signal(put, 1);
    w.equal(await run.query(values), [1], 'by the first one');
  });
  await run.signal(put, 2);
  await serve('second', async () => {
    w.equal(await run.query(values), [1, 2], 'by the second one');
    await run.signal(put, 3);
    await run.signal(put, 0);
    w.equal(await run.result(), [1, 2, 3], 'the values');
    w.equal(await run.query(values), [1, 2, 3], 'a query after the end');
  });
  const events = await w.events(run.workflowId);
  const workers = events.flatMap((event) => event.workflowTaskCompletedEventAttributes?.identity ?? []);
  w.equal([...new Set(workers)], ['first', 'second'], 'who has completed the tasks');
  w.equal(count(events, 'workflowTaskTimedOutEventAttributes'), 0, 'tasks that nobody took');
}
