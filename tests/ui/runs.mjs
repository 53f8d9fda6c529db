/** One run: its history in each view, and what stands beside it. */
import assert from 'node:assert/strict';
import { until } from './patience.mjs';

const GREETING = [
  'Workflow Execution Completed',
  'Workflow Task Completed',
  'Workflow Task Started',
  'Workflow Task Scheduled',
  'Activity Task Completed',
  'Activity Task Started',
  'Activity Task Scheduled',
  'Workflow Task Completed',
  'Workflow Task Started',
  'Workflow Task Scheduled',
  'Workflow Execution Started',
];

async function histories_are_shown_in_each_view(site) {
  await site.run('greeting-1');
  await site.status('Completed');
  await site.says('"Hello, Ada!"', site.at('input-and-result').first());
  const rows = site.at('event-summary-row');
  const types = () =>
    rows.evaluateAll((all) => all.map((row) => row.querySelectorAll('td')[3].innerText.trim()));
  await until('the events', types, (found) => found.length === GREETING.length);
  assert.deepEqual(await types(), GREETING);
  await site.shoot('all');
  await rows.first().click();
  await site.says('Workflow Task Completed Event ID');
  await site.shoot('event');
  await site.at('compact').click();
  await site.says('Greet');
  await site.shoot('compact');
  await site.at('json').click();
  await site.says(/EVENT_TYPE_WORKFLOW_EXECUTION_STARTED|WorkflowExecutionStarted/);
  await site.shoot('json');
  const download = site.page.waitForEvent('download');
  await site.button('Download').click();
  await site.page.locator('dialog[open]').getByRole('button', { name: 'Download' }).click();
  const path = await (await download).path();
  assert.ok(path, 'a history is downloaded');
}

async function the_latest_run_of_an_id_is_found(site) {
  await site.go('/workflows/relay');
  await site.page.waitForURL(`**/workflows/relay/${site.runs.relay}/history`);
  await site.says('"done"', site.at('input-and-result').first());
}

async function failures_are_shown(site) {
  await site.run('broken');
  await site.status('Failed');
  await site.says(/out of paper/);
  await site.shoot('failure');
}

async function pending_activities_are_shown(site) {
  await site.run('stumbling');
  await site.says('Pending Activity');
  await site.at('pending-activities-tab').click();
  for (const text of ['Stumble', 'not yet', '"half the way"']) await site.says(text);
  await site.shoot('pending');
}

async function relationships_are_shown(site) {
  await site.run('family', 'relationships');
  await site.says('family-child');
  await site.shoot('parent');
  await site.run('family-child', 'relationships');
  await site.says('family');
  await site.page.getByRole('link', { name: 'family', exact: true }).first().waitFor();
  await site.shoot('child');
}

async function stacks_and_queries_are_answered(site) {
  await site.run('register', 'call-stack');
  await site.says(/_run_top_level_workflow_function|wait_condition/);
  await site.shoot('stack');
  await site.at('queries-tab').click();
  await site.at('query-select-button').click();
  await site.page.getByRole('option', { name: 'values' }).or(site.page.locator('li', { hasText: /^\s*values/ })).filter({ visible: true }).first().click();
  await site.button('Run Query').click();
  await until('the answer', () => site.at('query-result').first().innerText(), (text) => text.replace(/\s/g, '').includes('[5]'));
  await site.shoot('query');
}

async function what_a_run_carries_is_shown(site) {
  await site.run('register', 'workers');
  await site.says(site.queue);
  await site.at('worker-row').first().waitFor();
  await site.shoot('workers');
  await site.at('search-attributes-tab').click();
  for (const text of ['UiColour', 'red']) await site.says(text);
  await site.at('memo-tab').click();
  for (const text of ['note', '"kept"']) await site.says(new RegExp(text));
  await site.at('user-metadata-tab').click();
  for (const text of ['what it is', 'waits for numbers']) await site.renders(text);
  await site.shoot('metadata');
}

export const cases = {
  histories_are_shown_in_each_view,
  the_latest_run_of_an_id_is_found,
  failures_are_shown,
  pending_activities_are_shown,
  relationships_are_shown,
  stacks_and_queries_are_answered,
  what_a_run_carries_is_shown,
};
