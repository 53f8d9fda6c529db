// A register that signals write and queries read.
import { condition, defineQuery, defineSignal, setHandler } from '@temporalio/workflow';

export const put = defineSignal<[number]>('put');
export const values = defineQuery<number[]>('values');

/** Keeps the values that it is told, until it is told a zero. */
export async function register(): Promise<number[]> {
  const kept: number[] = [];
  let closed = false;
  setHandler(values, () => kept, { description: 'the values in the order they came' });
  setHandler(put, (value) => {
    if (value === 0) closed = true;
    else kept.push(value);
  });
  await condition(() => closed);
  return kept;
}
