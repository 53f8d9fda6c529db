// A workflow that tells what has come to it with headers.
import {
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  defineUpdate,
  proxyActivities,
  setHandler,
  startChild,
  workflowInfo,
} from '@temporalio/workflow';
import type * as activities from '../activities';
import { child, end } from './children';
import { arrived } from './interceptors';

const { succeedAt } = proxyActivities<typeof activities>({ startToCloseTimeout: '10s' });

export const ask = defineQuery<string>('ask');
export const change = defineUpdate<void>('change');
export const goOn = defineSignal('go on');

/** Has an activity, a child that it signals, and a run that follows, once it is told to go on; all that has come to its runs. */
export async function relayed(before: string[] = []): Promise<string[]> {
  if (before.length > 0) return [...before, ...arrived];
  let told = false;
  setHandler(ask, () => 'query');
  setHandler(change, () => undefined);
  setHandler(goOn, () => void (told = true));
  await condition(() => told);
  await succeedAt('relayed', 1);
  const started = await startChild(child, { args: ['signal'], workflowId: `${workflowInfo().workflowId}-child` });
  await started.signal(end);
  await started.result();
  return await continueAsNew<typeof relayed>(arrived);
}
