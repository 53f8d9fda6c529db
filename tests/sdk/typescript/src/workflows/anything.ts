// The workflow of every type that no other has.
import {
  condition,
  proxyActivities,
  setDefaultQueryHandler,
  setDefaultSignalHandler,
  setDefaultUpdateHandler,
  workflowInfo,
} from '@temporalio/workflow';

/** Hears two signals of any name, answers queries and updates of any name, and calls an activity that nobody has written. */
export default async function anything(...args: unknown[]): Promise<unknown[]> {
  const signals: unknown[] = [];
  setDefaultSignalHandler((name, ...told) => void signals.push([name, ...told]));
  setDefaultQueryHandler((name, ...told) => `${name} of ${told.length}`);
  setDefaultUpdateHandler((name, ...told) => `${name} of ${told.length}`);
  await condition(() => signals.length === 2);
  const activities = proxyActivities({ startToCloseTimeout: '10s' });
  const answer = await activities['an activity of any type'](...args);
  return [workflowInfo().workflowType, args, signals, answer];
}
