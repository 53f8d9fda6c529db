// Limits, as a client and a worker meet them.
import { Client, Connection, isGrpcServiceError, ServiceError, WorkflowFailedError, WorkflowUpdateStage } from '@temporalio/client';
import { ActivityFailure, ServerFailure, TerminatedFailure } from '@temporalio/common';
import type { WorkerOptions } from '@temporalio/worker';
import { ofTooLargePayloads } from './nondeterminism';
import { secured } from './secured';
import { end } from './workflows/children';
import { echoed } from './workflows/echoed';
import { excess, pass, tooMuch, turnstile } from './workflows/limits';
import { put, register } from './workflows/register';
import type { World } from './world';

const INVALID_ARGUMENT = 3;
const RESOURCE_EXHAUSTED = 8;

async function refused(w: World, call: Promise<unknown>, code: number, what: string): Promise<void> {
  const { cause } = await w.fails(call, ServiceError, `${what} is refused`);
  w.that(isGrpcServiceError(cause) && cause.code === code, `how ${what} is refused`, String(cause));
}

export async function refuseWhatIsTooLarge(w: World): Promise<void> {
  const run = await w.start(register, { args: [] });
  const joined = w.options<typeof register>({ args: [] });
  const calls = {
    'a start': w.start(echoed, { args: [tooMuch()] }),
    'a memo': w.start(echoed, { args: [''], memo: { note: tooMuch() } }),
    'a start with a signal': w.client.workflow.signalWithStart(register, { ...joined, signal: 'put', signalArgs: [tooMuch()] }),
    'a signal': run.signal('put', tooMuch()),
  };
  await Promise.all(Object.entries(calls).map(([what, call]) => refused(w, call, INVALID_ARGUMENT, what)));
  w.equal((await w.events(run.workflowId)).length, 2, 'events: nothing was written');
  await run.signal(put, 0);
  await w.serve(() => run.result());
}

export async function areHeededByWorkersThatAreTold(w: World): Promise<void> {
  const { namespaceInfo } = await w.client.workflowService.describeNamespace({ namespace: w.namespace });
  // An older server tells none.
  await (namespaceInfo?.limits ? ofTooLargePayloads(w) : hold(w, {}));
}

export const holdThatNoWorkerHeeds = (w: World) => hold(w, { disablePayloadErrorLimit: true });

/** Has the server find what such a worker lets through. */
async function hold(w: World, options: Partial<WorkerOptions>): Promise<void> {
  const body = async () => {
    const failing = await w.start(excess, { args: ['result of an activity'] });
    const { cause } = await w.fails(failing.result(), WorkflowFailedError, 'the activity fails');
    const why = cause instanceof ActivityFailure ? cause.cause : cause;
    w.that(why instanceof ServerFailure && why.message === 'Complete result exceeds size limit.', 'why it fails', String(why));
    const reasons = {
      'input of an activity': 'ScheduleActivityTaskCommandAttributes.Input exceeds size limit.',
      'result of a workflow': 'CompleteWorkflowExecutionCommandAttributes.Result exceeds size limit.',
    };
    for (const [place, reason] of Object.entries(reasons)) {
      const run = await w.start(excess, { args: [place] });
      const ended = await w.fails(run.result(), WorkflowFailedError, `the run is ended by an ${place}`);
      w.that(ended.cause instanceof TerminatedFailure, 'how it ends', String(ended.cause));
      const last = (await w.events(run.workflowId)).at(-1)!.workflowExecutionTerminatedEventAttributes;
      w.that(!!last?.reason?.endsWith(reason), 'why', last);
    }
  };
  await w.serve(body, options);
}

export async function boundUpdatesInFlight(w: World): Promise<void> {
  // The usual connection would try again and again.
  const connection = await Connection.connect({ ...secured(w.server.address), interceptors: [] });
  const impatient = new Client({ connection });
  await w.serve(async () => {
    const run = await w.start(turnstile, { args: [] });
    const { ACCEPTED: waitForStage } = WorkflowUpdateStage;
    const handles = [];
    for (let n = 0; n < 10; n++) handles.push(await run.startUpdate(pass, { waitForStage }));
    const eleventh = { updateId: 'one too many', waitForStage };
    const another = impatient.workflow.getHandle<typeof turnstile>(run.workflowId).startUpdate(pass, eleventh);
    await refused(w, another, RESOURCE_EXHAUSTED, 'one too many');
    await run.signal(end);
    const passed = await Promise.all(handles.map((handle) => handle.result()));
    w.equal(passed, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 'they pass in order');
    w.equal(await run.executeUpdate(pass, { updateId: eleventh.updateId }), 11, 'then it passes too');
    await run.signal(end);
    w.equal(await run.result(), 11, 'who has passed');
  });
  await connection.close();
}
