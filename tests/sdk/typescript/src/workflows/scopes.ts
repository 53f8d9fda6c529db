// Timers, and the scopes that cancel them.
import { CancellationScope, condition, defineQuery, isCancellation, proxyActivities, setHandler, sleep } from '@temporalio/workflow';
import type * as activities from '../activities';

const { succeedAt } = proxyActivities<typeof activities>({ startToCloseTimeout: '20s' });

/** Timers in the order in which they fire; then what has come of one that is cancelled, and of one that nobody outran. */
export async function timers(): Promise<string[]> {
  const order: string[] = [];
  const timer = async (name: string, ms: number): Promise<void> => {
    await sleep(ms);
    order.push(name);
  };
  const scope = new CancellationScope();
  const never = scope
    .run(() => timer('never', 3_600_000))
    .then(() => 'fired')
    .catch((error) => (isCancellation(error) ? 'cancelled' : 'failed'));
  const fired = [timer('last', 600), timer('first', 100), timer('second', 300)];
  await sleep(1);
  scope.cancel();
  await Promise.all(fired);
  order.push(await never, (await condition(() => false, '50ms')) ? 'true' : 'timed out');
  return order;
}

export const waiting = defineQuery<boolean>('waiting');

/** Scopes that are cancelled by themselves, by their time, and with the workflow, after which it tidies up. */
export async function scoped(): Promise<void> {
  let isWaiting = false;
  setHandler(waiting, () => isWaiting);
  const ends: string[] = [];
  const say = (name: string) => (error: unknown) => void ends.push(`${name} ${isCancellation(error) ? 'cancelled' : 'failed'}`);
  await CancellationScope.cancellable(async () => {
    const sleeping = sleep('1h').catch(say('by itself'));
    await sleep('20ms');
    CancellationScope.current().cancel();
    await sleeping;
  });
  await CancellationScope.withTimeout('50ms', () => sleep('1h')).catch(say('by its time'));
  try {
    isWaiting = true;
    await sleep('1h');
  } catch (error) {
    say('with the workflow')(error);
    await CancellationScope.nonCancellable(async () => {
      await succeedAt(ends.join(', '), 1);
    });
    throw error;
  }
}
