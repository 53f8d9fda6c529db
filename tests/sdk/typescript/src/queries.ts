// Queries of open and of closed runs.
import { QueryNotRegisteredError, QueryRejectCondition, QueryRejectedError, WorkflowClient } from '@temporalio/client';
import { temporal } from '@temporalio/proto';
import { put, register, values } from './workflows/register';
import type { World } from './world';

const { WorkflowExecutionStatus } = temporal.api.enums.v1;

export async function areRejectedAsTheyAsk(w: World): Promise<void> {
  await w.serve(async () => {
    const run = await w.start(register, { args: [] });
    await run.signal(put, 9);
    w.equal(await run.query(values), [9], 'open');
    await w.fails(run.query('no such query'), QueryNotRegisteredError, 'a query that nobody answers fails');
    const { connection } = w.client;
    const client = new WorkflowClient({ connection, queryRejectCondition: QueryRejectCondition.NOT_OPEN });
    w.equal(await client.getHandle(run.workflowId).query(values), [9], 'open, to be rejected when closed');
    await run.signal(put, 0);
    await run.result();
    w.equal(await run.query(values), [9], 'closed');
    const rejected = await w.fails(client.getHandle(run.workflowId).query(values), QueryRejectedError, 'closed, and rejected');
    w.equal(rejected.status, WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED, 'why it is rejected');
  });
}

interface Metadata {
  definition?: { type?: string; queryDefinitions?: { name?: string; description?: string }[]; signalDefinitions?: { name?: string }[] };
}

export async function ofStacksAndMetadata(w: World): Promise<void> {
  await w.serve(async () => {
    const run = await w.start(register, { args: [] });
    const stack = await run.query<string>('__stack_trace');
    w.that(stack.includes('at register'), 'where the workflow waits', stack);
    const { definition } = await run.query<Metadata>('__temporal_workflow_metadata');
    w.equal(definition?.type, 'register', 'its type');
    const query = definition?.queryDefinitions?.find(({ name }) => name === 'values');
    w.equal(query?.description, 'the values in the order they came', 'its query');
    w.that(!!definition?.signalDefinitions?.some(({ name }) => name === 'put'), 'its signal', definition);
  });
}
