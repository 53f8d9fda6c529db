/** What a person does to runs: one by one, and to many. */
import assert from 'node:assert/strict';
import { until } from './patience.mjs';

/** Types JSON into the editor of a dialog. */
async function input(site, json) {
  const editor = site.page.locator('dialog[open] .cm-content');
  await editor.click();
  await site.page.keyboard.type(json);
}

/** Chooses a name in the list of a dialog. */
async function choose(site, list, name) {
  const dialog = site.page.locator('dialog[open]');
  await dialog.getByTestId(`${list}-select-button`).click();
  await dialog.locator('li', { hasText: new RegExp(`^\\s*${name}\\b`) }).filter({ visible: true }).first().click();
}

async function a_run_is_signalled(site) {
  await site.run('signalled');
  await site.act('signal');
  await choose(site, 'signal', 'put');
  await input(site, '7');
  await site.shoot('dialog');
  await site.confirm();
  await site.toast('signaled');
  await site.says('Workflow Execution Signaled');
  await site.shoot('signalled');
}

async function a_run_is_updated(site) {
  await site.run('updated');
  await site.act('update');
  await choose(site, 'update', 'add');
  await input(site, '7');
  await site.page.locator('dialog[open]').getByTestId('confirm-modal-button').click();
  await site.says('Workflow Execution Update Completed');
  await site.shoot('updated');
}

async function a_run_is_reset(site) {
  await site.run('reset');
  await site.act('reset');
  const dialog = site.page.locator('dialog[open]');
  await dialog.getByTestId('workflow-reset-event-id-select-button').click();
  await dialog.locator('li', { hasText: 'WorkflowTaskCompleted' }).filter({ visible: true }).first().click();
  await dialog.getByTestId('reset-reason').fill('once more');
  await site.shoot('dialog');
  await site.confirm();
  await site.status('Terminated');
  await site.go('/workflows/reset');
  await site.page.waitForURL(/workflows\/reset\/.*\/history/);
  await site.shows('another run', false, async () => {
    if (site.reference) await site.go('/workflows/reset');
    await site.page.waitForURL(/workflows\/reset\/.*\/history/);
    return site.page.url().includes(site.runs.reset);
  });
  await site.status('Running');
  await site.shoot('reset');
}

async function a_run_is_cancelled(site) {
  await site.run('cancelled');
  await site.button('Request Cancellation').click();
  await site.confirm();
  await site.status('Canceled');
  await site.shoot('cancelled');
}

async function a_run_is_terminated(site) {
  await site.run('terminated');
  await site.act('terminate');
  await site.page.locator('dialog[open]').getByTestId('workflow-termination-reason').fill('enough');
  await site.confirm();
  await site.status('Terminated');
  await site.says('Workflow Execution Terminated');
  await site.shoot('terminated');
}

async function a_run_is_started(site) {
  await site.go('/workflows/start-workflow');
  await site.at('workflowId').fill('started');
  await site.at('taskQueue').fill(site.queue);
  await site.at('workflowType').fill('Greeting');
  await site.page.locator('.cm-content').filter({ visible: true }).first().click();
  await site.page.keyboard.type('"Grace"');
  await site.shoot('form');
  await site.at('start-workflow-button').filter({ hasText: 'Start Workflow' }).click();
  await site.toast('started');
  await site.go('/workflows', 'WorkflowId = "started"');
  await site.lists(['started']);
  await site.page.getByRole('link', { name: 'started', exact: true }).first().click();
  await site.says('"Hello, Grace!"');
}

/** Confirms a batch under a job id of its own, and follows it to its end. */
async function batch(site, reason, job, count) {
  const dialog = site.page.locator('dialog[open]');
  await dialog.locator('[data-testid^=bulk-action-reason]').fill(reason);
  await dialog.getByTestId('batch-operation-job-id').fill(job);
  await site.shoot('dialog');
  await dialog.getByTestId('confirm-modal-button').click();
  await dialog.waitFor({ state: 'hidden' });
  site.jobs.unshift(job);
  await ends(site, job, count);
}

/** The page of a job, once all is done. */
async function ends(site, job, count) {
  await site.go(`/batch-operations/${job}`);
  await site.says('Completed');
  const text = () => site.page.locator('main').innerText();
  await until(`${count} done`, text, (found) => found.includes(`${count} succeeded`));
  await site.shoot('job');
}

/** Selects runs by their ids. */
async function select(site, ids) {
  for (const id of ids) await site.page.getByLabel(`Select Workflow ${id}`, { exact: true }).first().check({ force: true });
}

async function selected_runs_are_terminated(site) {
  const mine = 'WorkflowId STARTS_WITH "picked-"';
  await site.go('/workflows', mine);
  await site.lists(['picked-1', 'picked-2', 'picked-3']);
  await select(site, ['picked-1', 'picked-3']);
  await site.shoot('selected');
  await site.at('bulk-terminate-button').click();
  await batch(site, 'not these', `${site.namespace}-picked`, 2);
  await site.go('/workflows', `${mine} AND ExecutionStatus="Terminated"`);
  await site.lists(['picked-1', 'picked-3']);
}

async function all_runs_of_a_query_are_cancelled(site) {
  const mine = 'WorkflowId STARTS_WITH "swept-"';
  await site.go('/workflows', mine);
  await site.lists(['swept-1', 'swept-2', 'swept-3', 'swept-4']);
  await select(site, ['swept-1']);
  await site.at('select-all-workflows').click();
  await site.at('bulk-cancel-button').click();
  await batch(site, 'all of them', `${site.namespace}-swept`, 4);
  await site.go('/workflows', `${mine} AND ExecutionStatus="Canceled"`);
  await site.lists(['swept-1', 'swept-2', 'swept-3', 'swept-4']);
}

async function selected_runs_are_reset(site) {
  const mine = 'WorkflowId STARTS_WITH "again-"';
  await site.go('/workflows', mine);
  await site.lists(['again-1', 'again-2']);
  await select(site, ['again-1', 'again-2']);
  await site.at('bulk-reset-button').click();
  await batch(site, 'from the beginning', `${site.namespace}-again`, 2);
  await site.go('/workflows', mine);
  await site.lists(['again-1', 'again-1', 'again-2', 'again-2']);
}

async function batches_are_listed(site) {
  await site.go('/batch-operations');
  await site.shows('the jobs', site.jobs, async () => {
    const links = await site.page.locator('main a').allInnerTexts();
    return links.map((text) => text.trim()).filter((text) => text.startsWith(`${site.namespace}-`));
  });
  const ended = await site.page.getByText('Completed').filter({ visible: true }).count();
  assert.equal(ended, site.jobs.length, 'all have ended');
  await site.shoot('jobs');
}

export const cases = {
  a_run_is_signalled,
  a_run_is_updated,
  a_run_is_reset,
  a_run_is_cancelled,
  a_run_is_terminated,
  a_run_is_started,
  selected_runs_are_terminated,
  all_runs_of_a_query_are_cancelled,
  selected_runs_are_reset,
  batches_are_listed,
};
