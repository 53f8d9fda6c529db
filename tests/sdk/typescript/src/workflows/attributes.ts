// Search attributes and memos that workflows change.
import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
import { upsertMemo, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';

export const colour = defineSearchAttributeKey('TypeScriptColour', SearchAttributeType.KEYWORD);
export const weight = defineSearchAttributeKey('TypeScriptWeight', SearchAttributeType.INT);
export const heavy = defineSearchAttributeKey('TypeScriptHeavy', SearchAttributeType.BOOL);

/** Changes its search attributes and its memo; the weight that it sees then. */
export async function paint(): Promise<number | undefined> {
  upsertSearchAttributes([
    { key: colour, value: 'green' },
    { key: weight, value: 12 },
    { key: heavy, value: null },
  ]);
  upsertMemo({ coats: 2, note: null });
  return workflowInfo().typedSearchAttributes.get(weight);
}
