/** The list of runs: counts, filters, queries, views and pages. */
import assert from 'node:assert/strict';
import { until } from './patience.mjs';

/** The headline and the counts by status beside it. */
async function counts(site) {
  const headline = parseInt(await site.at('workflow-count').innerText(), 10);
  const labels = site.page.locator('[data-testid^=workflow-status-]').filter({ visible: true });
  const each = (await labels.allInnerTexts()).map((text) => text.trim()).sort();
  return [headline, ...each];
}

async function runs_are_listed_with_counts(site) {
  await site.go('/workflows');
  const { total, statuses } = site.counts;
  const expected = Object.entries(statuses).map(([status, count]) => `${count} ${status}`);
  await site.shows('the counts', [total, ...expected.sort()], () => counts(site));
  await site.shows('the size of a page', 100, async () => (await site.rows()).length);
  const rows = await site.rows();
  const open = rows.filter((row) => row[0] === 'Running').length;
  assert.equal(open, 100, 'open runs come first');
  await site.shoot('list');
}

async function counts_and_filters_choose_runs(site) {
  await site.go('/workflows');
  await site.at('workflow-status-Failed').click();
  await site.lists(['broken']);
  assert.deepEqual(await site.rows(), [['Failed', 'broken', 'Broken']]);
  await site.shoot('status');
  await site.at('clear-all-filters-button').click();
  await site.shows('all', 100, async () => (await site.rows()).length);
  await site.at('workflow-status-ContinuedAsNew').click();
  await site.lists(['relay', 'relay']);

  await filters(site, ['WorkflowId', 'Starts with', 'greeting-']);
  await site.lists(['greeting-1', 'greeting-2', 'greeting-3']);
  await site.shoot('filter');
  await filter(site, 'UiWeight', '>', '3');
  await site.lists(['greeting-2', 'greeting-3']);
  await filters(site, ['UiColour', 'Equal to', 'red']);
  await site.lists(['register']);
  await filters(site, ['UiWords', 'In', 'b']);
  await site.lists(['register']);
  await filters(site, ['UiColour', 'Is not null']);
  await site.lists(['register']);
  await filters(site, ['WorkflowType', 'Equal to', 'Family']);
  await site.lists(['family']);
  await site.shoot('type');
}

/** Begins anew with one filter. */
async function filters(site, chosen) {
  await site.go('/workflows');
  await site.shows('all', 100, async () => (await site.rows()).length);
  await filter(site, ...chosen);
}

/** Adds a filter on a search attribute, with a condition as the page calls it. */
async function filter(site, name, condition, value) {
  await site.at('add-filter-button').click();
  await site.page.getByTestId('filter-search').fill(name);
  const entry = new RegExp(`^\\s*${name}\\b`);
  await site.page.getByRole('menuitem').filter({ hasText: entry, visible: true }).first().click();
  await site.button(condition).click();
  if (value !== undefined) {
    const chips = site.page.locator(`[data-testid^=dropdown-filter-chip-${name}-], [data-testid=list-filter]`);
    await chips.filter({ visible: true }).first().fill(value);
    if (condition === 'In') await site.page.keyboard.press('Enter');
  }
  await site.at('apply-filter-button').click();
}

async function queries_are_typed(site) {
  await site.go('/workflows');
  await site.at('toggle-manual-query').click();
  const type = async (query) => {
    await site.at('manual-search-input').fill(query);
    await site.at('manual-search-button').click();
  };
  await type('WorkflowType = "Greeting" AND WorkflowId IN ("greeting-1", "broken") OR UiColour = "red"');
  await site.lists(['greeting-1', 'register']);
  await type(`ParentWorkflowId = "family"`);
  await site.lists(['family-child']);
  await site.shoot('typed');
  await type('WorkflowId = "nobody"');
  await site.lists([]);
  site.refusals.push('400 ');
  await type('Nobody = 1');
  await site.says(/column name 'Nobody' is not a valid search attribute/);
  await site.shoot('refused');
}

async function views_are_saved(site) {
  await site.go('/workflows');
  await site.at('running').click();
  await site.shows('running', ['Running'], async () => [...new Set((await site.rows()).map((row) => row[0]))]);
  for (const view of ['today', 'last-hour']) {
    await site.at(view).click();
    const { total } = site.counts;
    await site.shows(view, true, async () => parseInt(await site.at('workflow-count').innerText(), 10) >= total - 1);
  }
  // Runs without a parent.
  await site.at('child-workflows').click();
  await site.shows('no child', false, async () => (await site.ids()).includes('family-child'));
  await site.go('/workflows', '`ExecutionStatus`="Failed"');
  await site.at('create-view-button').click();
  await site.page.getByTestId('save-view-modal-input').filter({ visible: true }).fill('what failed');
  await site.confirm();
  await site.at('all').click();
  await site.shows('all', 100, async () => (await site.rows()).length);
  await site.button('what failed').click();
  await site.lists(['broken']);
  await site.shoot('view');
}

async function pages_follow_each_other(site) {
  await site.go('/workflows', 'WorkflowId STARTS_WITH "crowd-"');
  const size = site.crowd.length;
  await site.shows('the first page', 100, async () => (await site.rows()).length);
  const first = await site.ids();
  await site.shows('the number', size, async () => (await counts(site))[0]);
  await site.page.getByRole('button', { name: 'Next', exact: true }).filter({ visible: true }).first().click();
  await until('the second page', () => site.ids(), (ids) => ids.length === size - 100);
  const second = await site.ids();
  assert.deepEqual([...first, ...second].sort(), [...site.crowd].sort(), 'each once');
  await site.shoot('second');
  await site.page.getByRole('button', { name: 'Previous', exact: true }).filter({ visible: true }).first().click();
  await until('the first page again', () => site.ids(), (ids) => ids.length === 100);
  assert.deepEqual(await site.ids(), first);
  await site.page.locator('#per-page-filter').filter({ visible: true }).selectOption('250');
  await until('all in one page', () => site.ids(), (ids) => ids.length === size);
}

export const cases = {
  runs_are_listed_with_counts,
  counts_and_filters_choose_runs,
  queries_are_typed,
  views_are_saved,
  pages_follow_each_other,
};
