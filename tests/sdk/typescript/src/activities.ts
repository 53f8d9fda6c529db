// The activities, and what was seen of them: workflows' activities and cases live in one process.
import {
  activityInfo,
  ApplicationFailure,
  CancelledFailure,
  CompleteAsyncError,
  Context,
  heartbeat,
  sleep,
  type Info,
} from '@temporalio/activity';
import { tooMuch } from './workflows/limits';

const seen = new Map<string, string[]>();

/** What activities of a workflow have called themselves, in order. */
export const seenOf = (workflowId: string): string[] => seen.get(workflowId) ?? [];

/** Notes a name for the workflow of the activity that this runs in. */
export function see(name: string): void {
  const { workflowId } = activityInfo().workflowExecution!;
  seen.set(workflowId, [...seenOf(workflowId), name]);
}

const left = new Map<string, Info[]>();

/** The attempts of a workflow's activity that were left to be completed from outside. */
export const leftOf = (workflowId: string): Info[] => left.get(workflowId) ?? [];

/** Fails until this attempt. */
export async function succeedAt(name: string, attempt: number): Promise<number> {
  see(name);
  const now = activityInfo().attempt;
  if (now < attempt) throw ApplicationFailure.create({ message: 'not yet', type: 'Early' });
  return now;
}

/** Takes longer than anybody waits for it. */
export async function hang(): Promise<void> {
  see('hang');
  await sleep('10h');
}

/** One step for each attempt; the steps of those before come from the details of their heartbeats. */
export async function climb(steps: number): Promise<number[]> {
  const before = (activityInfo().heartbeatDetails as number[] | undefined) ?? [];
  const climbed = [...before, activityInfo().attempt];
  heartbeat(climbed);
  if (climbed.length < steps) throw new Error('out of breath');
  return climbed;
}

/** Gets half the way. */
export async function stumble(): Promise<void> {
  heartbeat('half the way');
  throw ApplicationFailure.create({ message: 'not yet', type: 'Early' });
}

/** Answers with more than a payload may hold. */
export async function swell(): Promise<string> {
  return tooMuch();
}

/** Heartbeats until it is cancelled. */
export async function linger(name: string): Promise<void> {
  see(name);
  try {
    for (;;) {
      heartbeat(name);
      await Context.current().sleep('50ms');
    }
  } catch (error) {
    if (error instanceof CancelledFailure) see(`${name} cancelled`);
    throw error;
  }
}

/** Leaves its completion to somebody outside. */
export async function leave(): Promise<string> {
  const { workflowId } = activityInfo().workflowExecution!;
  left.set(workflowId, [...leftOf(workflowId), activityInfo()]);
  throw new CompleteAsyncError();
}

/** Answers what it is told. */
export async function echo(text: string): Promise<string> {
  return text;
}

/** The activity of every type that no other has. */
export default async function anything(...args: unknown[]): Promise<unknown[]> {
  return [activityInfo().activityType, ...args];
}
