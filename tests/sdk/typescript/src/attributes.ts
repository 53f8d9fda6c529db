// Search attributes and memos.
import type { SearchAttributePair } from '@temporalio/common';
import { temporal } from '@temporalio/proto';
import { colour, heavy, paint, weight } from './workflows/attributes';
import type { World } from './world';

const { IndexedValueType } = temporal.api.enums.v1;

export async function andMemoAreUpserted(w: World): Promise<void> {
  await w.serve(async () => {
    const searchAttributes = {
      [colour.name]: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
      [weight.name]: IndexedValueType.INDEXED_VALUE_TYPE_INT,
      [heavy.name]: IndexedValueType.INDEXED_VALUE_TYPE_BOOL,
    };
    await w.client.connection.operatorService.addSearchAttributes({ namespace: 'default', searchAttributes }).catch((error) => {
      if (!String(error).includes('already')) throw error;
    });
    const typedSearchAttributes: SearchAttributePair[] = [
      { key: colour, value: 'red' },
      { key: heavy, value: true },
    ];
    const start = () => w.start(paint, { args: [], typedSearchAttributes, memo: { note: 'wet', coats: 1 } });
    // A server may take a moment to know a name.
    let run: Awaited<ReturnType<typeof start>>;
    await w.until(async () => {
      run = (await start().catch(() => undefined))!;
      return !!run;
    });
    w.equal(await run!.result(), 12, 'what the workflow sees');
    const described = await run!.describe();
    w.equal(described.typedSearchAttributes.get(colour), 'green', 'the colour');
    w.equal(described.typedSearchAttributes.get(weight), 12, 'the weight');
    w.equal(described.typedSearchAttributes.get(heavy), undefined, 'an attribute that was removed');
    w.equal(described.memo, { coats: 2 }, 'the memo');
  });
}
