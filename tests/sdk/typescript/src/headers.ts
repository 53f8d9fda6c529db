// Headers that interceptors put on everything.
import type { WorkflowClientInterceptor } from '@temporalio/client';
import type { ActivityInterceptorsFactory } from '@temporalio/worker';
import { see, seenOf } from './activities';
import { ask, change, goOn, relayed } from './workflows/headers';
import { textOf, trace } from './workflows/interceptors';
import { successor, type Event, type World } from './world';

const sending: WorkflowClientInterceptor = {
  startWithDetails: (input, next) => next({ ...input, headers: trace('start') }),
  signal: (input, next) => next({ ...input, headers: trace('signal') }),
  query: (input, next) => next({ ...input, headers: trace('query') }),
  startUpdate: (input, next) => next({ ...input, headers: trace('update') }),
};

const noting: ActivityInterceptorsFactory = () => ({
  inbound: {
    async execute(input, next) {
      see(`activity with ${textOf(input.headers)}`);
      return await next(input);
    },
  },
});

/** The headers of the events that have one, in order. */
const headersOf = (events: Event[]): (string | undefined)[] =>
  events
    .map(
      (event) =>
        event.workflowExecutionStartedEventAttributes?.header ??
        event.workflowExecutionSignaledEventAttributes?.header ??
        event.workflowExecutionUpdateAcceptedEventAttributes?.acceptedRequest?.input?.header ??
        event.activityTaskScheduledEventAttributes?.header ??
        event.startChildWorkflowExecutionInitiatedEventAttributes?.header
    )
    .flatMap((header) => (header?.fields ? [textOf(header.fields)] : []));

export async function travelWithEverything(w: World): Promise<void> {
  w.use({ interceptors: { workflow: [sending] } });
  const body = async () => {
    const run = await w.start(relayed, { args: [] });
    w.equal(await run.query(ask), 'query with query', 'a query');
    await run.executeUpdate(change);
    await run.signal(goOn);
    const came = ['workflow with start', 'update with update', 'signal with signal', 'workflow with workflow'];
    w.equal(await run.result(), came, 'what came to the runs');
    w.equal(seenOf(run.workflowId), ['activity with workflow', 'relayed'], 'what came to its activity');
    const events = await w.events(run.workflowId, run.firstExecutionRunId);
    w.equal(headersOf(events), ['start', 'update', 'signal', 'workflow', 'workflow'], 'in the history');
    w.equal(headersOf(await w.events(run.workflowId, successor(events)!)), ['workflow'], 'in the run that follows');
    w.equal(headersOf(await w.events(`${run.workflowId}-child`)), ['workflow', 'workflow'], 'in the child');
  };
  await w.serve(body, { interceptors: { activity: [noting] } });
}
