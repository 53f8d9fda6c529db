// Starts that bring their first task along.
import { child } from './workflows/children';
import { count, type World } from './world';

export async function startsBringTheirTaskAlong(w: World): Promise<void> {
  // Only a worker of the same connection can take the task.
  w.use({ connection: w.server.connection });
  const slow = await w.start(child, { args: ['succeed'], requestEagerStart: true });
  w.equal(slow.eagerlyStarted, false, 'one that nobody is there for');
  await w.serve(async () => {
    w.equal(await slow.result(), 'done', 'its result');
    const run = await w.start(child, { args: ['succeed'], requestEagerStart: true });
    w.equal(run.eagerlyStarted, true, 'the answer has the task in it');
    w.equal(await run.result(), 'done', 'the result');
    const events = await w.events(run.workflowId);
    w.equal(events[0].workflowExecutionStartedEventAttributes?.eagerExecutionAccepted, true, 'the event says so');
    w.equal([events.length, count(events, 'workflowTaskStartedEventAttributes')], [5, 1], 'the history');
  });
}
