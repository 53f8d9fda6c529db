// Parents, their children, and strangers.
import {
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  ChildWorkflowFailure,
  condition,
  continueAsNew,
  defineSignal,
  getExternalWorkflowHandle,
  ParentClosePolicy,
  setHandler,
  startChild,
  TerminatedFailure,
  TimeoutFailure,
  workflowInfo,
  type ChildWorkflowHandle,
} from '@temporalio/workflow';
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';

export const end = defineSignal('end');

/** Ends as it is told to. */
export async function child(how: string): Promise<string> {
  if (how === 'succeed') return 'done';
  if (how === 'fail') throw ApplicationFailure.create({ message: 'as it was told', type: 'Told' });
  let signalled = false;
  setHandler(end, () => void (signalled = true));
  await condition(() => signalled);
  return 'signalled';
}

/** A word for how a child has ended. */
async function ended(handle: ChildWorkflowHandle<typeof child>): Promise<string> {
  try {
    await handle.result();
    return 'completed';
  } catch (error) {
    const cause = error instanceof ChildWorkflowFailure ? error.cause : error;
    if (cause instanceof ApplicationFailure) return `failed: ${cause.type}`;
    if (cause instanceof CancelledFailure) return 'cancelled';
    if (cause instanceof TerminatedFailure) return 'terminated';
    if (cause instanceof TimeoutFailure) return 'timed out';
    throw error;
  }
}

const nameOf = (name: string): string => `${workflowInfo().workflowId}-${name}`;

/** Has a child for each way to end, and tells how it heard of it; one it signals, one it cancels. */
export async function parent(): Promise<Record<string, string>> {
  const start = (name: string): Promise<ChildWorkflowHandle<typeof child>> =>
    startChild(child, {
      args: [name],
      workflowId: nameOf(name),
      parentClosePolicy: ParentClosePolicy.TERMINATE,
      workflowRunTimeout: name === 'expire' ? '1s' : undefined,
    });
  const names = ['succeed', 'fail', 'signal', 'expire', 'terminate'];
  const handles = new Map<string, ChildWorkflowHandle<typeof child>>();
  for (const name of names) handles.set(name, await start(name));
  const ends: Record<string, string> = {};
  const scope = new CancellationScope();
  const cancelled = await scope.run(() => start('cancel'));
  await handles.get('signal')!.signal(end);
  const nobody = getExternalWorkflowHandle(`nobody-${workflowInfo().runId}`);
  ends.nobody = await nobody.signal(end).then(
    () => 'there',
    () => 'unknown'
  );
  scope.cancel();
  ends.cancel = await ended(cancelled);
  try {
    await startChild(child, { args: ['succeed'], workflowId: workflowInfo().workflowId });
    ends.clash = 'started';
  } catch (error) {
    ends.clash = error instanceof WorkflowExecutionAlreadyStartedError ? 'refused' : String(error);
  }
  for (const name of names) ends[name] = await ended(handles.get(name)!);
  return ends;
}

/** Starts a child for each policy and leaves them. */
export async function leaver(): Promise<void> {
  const policies = {
    terminated: ParentClosePolicy.TERMINATE,
    cancelled: ParentClosePolicy.REQUEST_CANCEL,
    left: ParentClosePolicy.ABANDON,
  };
  for (const [name, parentClosePolicy] of Object.entries(policies)) {
    await startChild(child, { args: [name], workflowId: nameOf(name), parentClosePolicy });
  }
}

/** Goes on in a new run until none are left. */
export async function relay(left: number, runs: number): Promise<number> {
  if (left > 0) await continueAsNew<typeof relay>(left - 1, runs + 1);
  return runs + 1;
}

/** Hears of the last run of a child that continues as new. */
export async function relayParent(): Promise<number> {
  const handle = await startChild(relay, { args: [2, 0], workflowId: nameOf('relay') });
  return await handle.result();
}

/** Signals one stranger and cancels another, and one that is not there. */
export async function stranger(signalled: string, cancelled: string): Promise<string[]> {
  const said: string[] = [];
  const say = async (what: string, asked: Promise<unknown>): Promise<void> => {
    said.push(
      await asked.then(
        () => `${what}: done`,
        () => `${what}: refused`
      )
    );
  };
  await say('signal', getExternalWorkflowHandle(signalled).signal(end));
  await say('cancel', getExternalWorkflowHandle(cancelled).cancel());
  await say('cancel nobody', getExternalWorkflowHandle(`nobody-${workflowInfo().runId}`).cancel());
  return said;
}
