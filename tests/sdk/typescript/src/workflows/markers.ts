// What a history keeps so that a replay is what the run was.
import { patched, proxyLocalActivities, sleep, uuid4 } from '@temporalio/workflow';
import type * as activities from '../activities';

const local = proxyLocalActivities<typeof activities>({
  startToCloseTimeout: '5m',
  retry: { initialInterval: '20ms', backoffCoefficient: 1 },
});
const patient = proxyLocalActivities<typeof activities>({
  startToCloseTimeout: '5m',
  retry: { initialInterval: '400ms', backoffCoefficient: 1 },
  localRetryThreshold: '100ms',
});

/** Takes the path of the patch that it was started with. */
export async function versioned(): Promise<boolean[]> {
  const before = patched('the path');
  await sleep('50ms');
  return [before, patched('the path')];
}

/** Draws at random, with timers in between. */
export async function draw(): Promise<(number | string)[]> {
  const drawn: (number | string)[] = [];
  for (let n = 0; n < 4; n++) {
    drawn.push(Math.random(), uuid4());
    await sleep('20ms');
  }
  return drawn;
}

/** Calls local activities: one that succeeds at once, one at its third attempt, one whose back-off is a timer. */
export async function localCalls(): Promise<number[]> {
  const attempts = [];
  for (const attempt of [1, 3]) {
    attempts.push(await local.succeedAt(`local ${attempt}`, attempt));
    await sleep('20ms');
  }
  attempts.push(await patient.succeedAt('patient', 2));
  return attempts;
}
