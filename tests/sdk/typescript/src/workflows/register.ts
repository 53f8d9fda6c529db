// A register that signals write and queries read.
import { condition, defineQuery, defineSignal, setHandler } from '@temporalio/workflow';

export const put = defineSignal<[number]>('put');
export const values = defineQuery<number[]>('values');

/** Keeps the values that it is told, until it is told a zero. */
export async function register(): Promise<number[]> {
  return await kept(1);
}

/** The values that a workflow is told, that many times as large. */
export async function kept(factor: number): Promise<number[]> {
  const numbers: number[] = [];
  let closed = false;
  setHandler(values, () => numbers, { description: 'the values in the order they came' });
  setHandler(put, (value) => {
    if (value === 0) closed = true;
    else numbers.push(factor * value);
  });
  await condition(() => closed);
  return numbers;
}
