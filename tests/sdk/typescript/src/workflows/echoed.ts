// A workflow that answers what it is told.
import { proxyActivities } from '@temporalio/workflow';
import type * as activities from '../activities';

const { echo } = proxyActivities<typeof activities>({ startToCloseTimeout: '10s' });

export async function echoed(text: string): Promise<string> {
  return await echo(text);
}
