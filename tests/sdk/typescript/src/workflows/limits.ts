// Workflows that ask for more than there may be.
import { condition, defineUpdate, proxyActivities, setHandler } from '@temporalio/workflow';
import type * as activities from '../activities';
import { end } from './children';

const { echo, swell } = proxyActivities<typeof activities>({ startToCloseTimeout: '10s' });

/** More than a payload may hold. */
export const tooMuch = (): string => 'much'.repeat(600_000);

/** Is too much in a place of its own, for a server to find. */
export async function excess(place: string): Promise<string> {
  if (place === 'input of an activity') return await echo(tooMuch());
  if (place === 'result of an activity') return await swell();
  return tooMuch();
}

export const pass = defineUpdate<number>('pass');

/** Lets nobody pass before it is told to, and ends when it is told so again. */
export async function turnstile(): Promise<number> {
  let passed = 0;
  let told = 0;
  setHandler(end, () => void (told += 1));
  setHandler(pass, async () => {
    await condition(() => told > 0);
    return (passed += 1);
  });
  await condition(() => told === 2);
  return passed;
}
