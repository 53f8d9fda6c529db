// A build with mistakes in each of its workflows.
import { sleep } from '@temporalio/workflow';
import { acted } from './changing';
import { excess } from './limits';
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

/** Has too large a result. */
export async function swelling(): Promise<string> {
  await acted();
  return await excess('result of a workflow');
}

/** Calls an activity with too much. */
export async function stuffing(): Promise<string> {
  await acted();
  return await excess('input of an activity');
}
