// What schedules start.
import { ApplicationFailure, condition, defineSignal, setHandler, workflowInfo } from '@temporalio/workflow';

export const resume = defineSignal('resume');

/** Answers how many runs before it have completed; it fails, or waits until it is told to resume. */
export async function planned(script: 'count' | 'fail' | 'wait'): Promise<number> {
  let told = false;
  setHandler(resume, () => void (told = true));
  if (script === 'fail') throw ApplicationFailure.nonRetryable('out of paper');
  if (script === 'wait') await condition(() => told);
  const { lastResult, lastFailure } = workflowInfo();
  return ((lastResult as number | undefined) ?? 0) + (lastFailure ? 100 : 1);
}
