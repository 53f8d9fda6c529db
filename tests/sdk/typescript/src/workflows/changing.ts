// Workflows whose code changes under their runs.
import { condition, defineSignal, proxyActivities, setHandler } from '@temporalio/workflow';
import type * as activities from '../activities';

const { succeedAt } = proxyActivities<typeof activities>({ startToCloseTimeout: '10s' });

export const finish = defineSignal('finish');

/** Calls an activity, and waits until it is told to finish. */
export async function acted(): Promise<number> {
  let told = false;
  setHandler(finish, () => void (told = true));
  const attempt = await succeedAt('acted', 1);
  await condition(() => told);
  return attempt;
}

export async function changing(): Promise<number> {
  return await acted();
}

export async function breaking(): Promise<number> {
  return await acted();
}

export async function swelling(): Promise<number> {
  return await acted();
}

export async function stuffing(): Promise<number> {
  return await acted();
}
