// Workflows that call activities.
import {
  ActivityCancellationType,
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  defineSignal,
  proxyActivities,
  setHandler,
  sleep,
  TimeoutFailure,
  type ActivityOptions,
} from '@temporalio/workflow';
import type * as activities from '../activities';

const calling = (options: ActivityOptions) => proxyActivities<typeof activities>({ startToCloseTimeout: '100s', ...options });
const once = { maximumAttempts: 1 };

/** Calls an activity that succeeds at its third attempt. */
export async function remote(): Promise<number> {
  const { succeedAt } = calling({ retry: { initialInterval: '50ms' } });
  return await succeedAt.executeWithOptions({ summary: 'an activity of TypeScript' }, ['remote', 3]);
}

/** Calls that many activities at once. */
export async function batch(count: number): Promise<number[]> {
  const { succeedAt } = calling({});
  return await Promise.all(Array.from({ length: count }, () => succeedAt('batch', 1)));
}

/** Why activities fail that are not tried again. */
export async function hopeless(): Promise<string[]> {
  const told = [];
  const attempts = [
    calling({ retry: { maximumAttempts: 2, initialInterval: '20ms' } }).succeedAt('two', 3),
    calling({ retry: { nonRetryableErrorTypes: ['Early'] } }).succeedAt('none', 3),
  ];
  for (const attempt of attempts) {
    try {
      await attempt;
      told.push('succeeded');
    } catch (error) {
      if (!(error instanceof ActivityFailure && error.cause instanceof ApplicationFailure)) throw error;
      told.push(`${error.cause.type}: ${error.retryState}`);
    }
  }
  return told;
}

/** Meets each of the four timeouts, of so many milliseconds. */
export async function expiring(ms: number): Promise<(string | undefined)[]> {
  const calls = [
    calling({ startToCloseTimeout: ms, retry: once }).hang(),
    calling({ scheduleToCloseTimeout: ms, retry: { initialInterval: '10s' } }).hang(),
    calling({ heartbeatTimeout: ms, retry: once }).hang(),
    calling({ scheduleToStartTimeout: ms, taskQueue: 'nobody is here', retry: once }).hang(),
  ];
  const kinds = calls.map((call) =>
    call.then(
      () => 'done',
      (error) => (error instanceof ActivityFailure && error.cause instanceof TimeoutFailure ? error.cause.timeoutType : String(error))
    )
  );
  return await Promise.all(kinds);
}

/** Calls an activity that goes on from the details of its last heartbeat. */
export async function beating(): Promise<number[]> {
  return await calling({ heartbeatTimeout: '60s', retry: { initialInterval: '50ms' } }).climb(3);
}

export const enough = defineSignal('enough');

/** Cancels an activity of each kind of cancellation, and tells how it heard of their ends. */
export async function cancelling(): Promise<Record<string, string>> {
  let begun = false;
  setHandler(enough, () => void (begun = true));
  const kinds = {
    try: ActivityCancellationType.TRY_CANCEL,
    wait: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    abandon: ActivityCancellationType.ABANDON,
  };
  const ends: Record<string, string> = {};
  const scope = new CancellationScope();
  const all = scope.run(() =>
    Promise.all(
      Object.entries(kinds).map(async ([name, cancellationType]) => {
        try {
          await calling({ heartbeatTimeout: '60s', cancellationType, retry: once }).linger(name);
          ends[name] = 'completed';
        } catch (error) {
          if (!(error instanceof ActivityFailure && error.cause instanceof CancelledFailure)) throw error;
          ends[name] = 'cancelled';
        }
      })
    )
  );
  await condition(() => begun);
  scope.cancel();
  await all;
  return ends;
}

/** Waits beside an activity that hangs, so that there is something to describe. */
export async function busy(): Promise<void> {
  let done = false;
  setHandler(enough, () => void (done = true));
  await Promise.race([calling({ retry: once }).linger('busy'), condition(() => done)]);
  await sleep('10ms');
}
