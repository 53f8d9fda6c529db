// A sum that updates add to.
import { allHandlersFinished, ApplicationFailure, condition, defineSignal, defineUpdate, setHandler } from '@temporalio/workflow';

export const add = defineUpdate<number, [number]>('add');
export const close = defineSignal('close');

/** Adds what updates bring, until it is told to close. */
export async function tally(sum: number): Promise<number> {
  let closed = false;
  const handler = (amount: number): number => {
    if (amount === 13) throw ApplicationFailure.create({ message: 'thirteen is never added', type: 'Unlucky' });
    return (sum += amount);
  };
  const validator = (amount: number): void => {
    if (amount < 0) throw new Error('it only grows');
  };
  setHandler(add, handler, { validator });
  setHandler(close, () => void (closed = true));
  await condition(() => closed && allHandlersFinished());
  return sum;
}
