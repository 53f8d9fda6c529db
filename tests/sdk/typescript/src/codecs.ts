// Payloads and failures that a codec makes opaque to the server.
import { deflateSync, inflateSync } from 'node:zlib';
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure, type Payload, type PayloadCodec } from '@temporalio/common';
import { temporal } from '@temporalio/proto';
import { child } from './workflows/children';
import { echoed } from './workflows/echoed';
import { put, register, values } from './workflows/register';
import type { World } from './world';

const { Payload: Wire } = temporal.api.common.v1;
const ENCODING = 'binary/zip';

const encodingOf = (payload?: temporal.api.common.v1.IPayload | null): string =>
  Buffer.from(payload?.metadata?.encoding ?? []).toString();

/** Compresses each payload, and marks it so. */
const zip: PayloadCodec = {
  async encode(payloads) {
    return payloads.map((payload) => ({
      metadata: { encoding: Buffer.from(ENCODING) },
      data: deflateSync(Wire.encode(payload).finish()),
    }));
  },
  async decode(payloads): Promise<Payload[]> {
    return payloads.map((payload) => (encodingOf(payload) === ENCODING ? Wire.decode(inflateSync(payload.data!)) : payload));
  },
};

export async function hidePayloadsAndFailures(w: World): Promise<void> {
  const dataConverter = { payloadCodecs: [zip], failureConverterPath: require.resolve('./failures') };
  w.use({ dataConverter }, { dataConverter, workflowBundle: w.server.encodedBundle });
  await w.serve(async () => {
    const text = 'a'.repeat(5000);
    const run = await w.start(echoed, { args: [text], memo: { note: 'zipped' } });
    w.equal(await run.result(), text, 'the result');
    const described = await run.describe();
    w.equal(described.memo, { note: 'zipped' }, 'the memo');
    w.equal(encodingOf(described.raw.workflowExecutionInfo?.memo?.fields?.note), ENCODING, 'the memo at the server');
    const completed = (await w.events(run.workflowId)).at(-1)?.workflowExecutionCompletedEventAttributes;
    w.equal(completed?.result?.payloads?.map(encodingOf), [ENCODING], 'the result in the history');

    const kept = await w.start(register, { args: [] });
    await kept.signal(put, 1);
    await kept.signal(put, 2);
    w.equal(await kept.query(values), [1, 2], 'signals and a query');

    const failing = await w.start(child, { args: ['fail'] });
    const { cause } = await w.fails(failing.result(), WorkflowFailedError, 'it fails');
    w.that(cause instanceof ApplicationFailure && cause.type === 'Told', 'the failure', String(cause));
    w.equal(cause.message, 'as it was told', 'its message');
    const failed = (await w.events(failing.workflowId)).at(-1)?.workflowExecutionFailedEventAttributes?.failure;
    w.equal(failed?.message, 'Encoded failure', 'its message in the history');
    w.equal(encodingOf(failed?.encodedAttributes), ENCODING, 'its encoded attributes');
  });
}
