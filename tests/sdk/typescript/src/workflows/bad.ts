// A build with mistakes in each of its workflows.
import { sleep } from '@temporalio/workflow';
import { acted } from './changing';
import { kept } from './register';

export async function register(): Promise<number[]> {
  return await kept(2);
}

/** Sleeps where the histories have an activity. */
export async function changing(): Promise<number> {
  await sleep('1s');
  return await acted();
}

/** Fails with an error that is not meant for the workflow. */
export async function breaking(): Promise<number> {
  await acted();
  throw new Error('a bug');
}
