// Workflows, handlers and activities that nobody has written under the names that they are called by.
import type { World } from './world';

export async function answerToAnyName(w: World): Promise<void> {
  await w.serve(async () => {
    const run = await w.client.workflow.start('a workflow of any type', w.options({ args: ['one', 2] }));
    w.remember(run.workflowId, run.firstExecutionRunId);
    await run.signal('this signal', 'first');
    w.equal(await run.query('a query', 1, 2, 3), 'a query of 3', 'the query');
    w.equal(await run.executeUpdate('an update', { args: [1] }), 'an update of 1', 'the update');
    await run.signal('that signal', 'x', 'y');
    const signals = [
      ['this signal', 'first'],
      ['that signal', 'x', 'y'],
    ];
    const answer = ['an activity of any type', 'one', 2];
    w.equal(await run.result(), ['a workflow of any type', ['one', 2], signals, answer], 'what was called');
  });
}
