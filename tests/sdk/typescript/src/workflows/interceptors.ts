// Interceptors in workflows: they note the headers that come in, and pass one on from a workflow that has got one.
import { defaultPayloadConverter, type Headers } from '@temporalio/common';
import type { WorkflowInterceptors } from '@temporalio/workflow';

/** What has come to this workflow with a header. */
export const arrived: string[] = [];

export const trace = (text: string): Headers => ({ trace: defaultPayloadConverter.toPayload(text) });

export const textOf = (headers: Headers): string | undefined =>
  headers.trace && defaultPayloadConverter.fromPayload<string>(headers.trace);

function note(what: string, headers: Headers): void {
  const text = textOf(headers);
  if (text) arrived.push(`${what} with ${text}`);
}

const passed = (headers: Headers): Headers => (arrived.length > 0 ? { ...headers, ...trace('workflow') } : headers);

export const interceptors = (): WorkflowInterceptors => ({
  inbound: [
    {
      async execute(input, next) {
        note('workflow', input.headers);
        return await next(input);
      },
      async handleSignal(input, next) {
        note('signal', input.headers);
        await next(input);
      },
      async handleUpdate(input, next) {
        note('update', input.headers);
        return await next(input);
      },
      async handleQuery(input, next) {
        const answer = await next(input);
        const text = textOf(input.headers);
        return text ? `${answer} with ${text}` : answer;
      },
    },
  ],
  outbound: [
    {
      scheduleActivity: (input, next) => next({ ...input, headers: passed(input.headers) }),
      startChildWorkflowExecution: (input, next) => next({ ...input, headers: passed(input.headers) }),
      signalWorkflow: (input, next) => next({ ...input, headers: passed(input.headers) }),
      continueAsNew: (input, next) => next({ ...input, headers: passed(input.headers) }),
    },
  ],
});
