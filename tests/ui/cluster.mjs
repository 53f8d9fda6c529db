/** Pages that are of no run: namespaces, search attributes, task queues and workers, schedules. */
import assert from 'node:assert/strict';

async function namespaces_are_shown(site) {
  await site.page.goto(`${site.base}/namespaces`);
  await site.page.getByRole('link', { name: site.namespace, exact: true }).first().waitFor();
  await site.shoot('namespaces');
  await site.page.getByRole('link', { name: site.namespace, exact: true }).first().click();
  await site.go('');
  for (const [id, text] of Object.entries({ title: site.namespace, description: 'for tests', owner: 'who@example.com' })) {
    await site.says(text, site.at(`namespace-${id}`).first());
  }
  const retention = await site.at('namespace-retention').innerText();
  assert.match(retention, /2 days/);
  await site.shoot('namespace');
}

async function search_attributes_are_shown(site) {
  await site.go('');
  for (const text of ['UiColour', 'UiWeight']) await site.says(text);
}

async function queues_and_workers_are_shown(site) {
  await site.go(`/task-queues/${site.queue}`);
  await site.says(site.queue, site.at('task-queue-name').first());
  await site.at('worker-row').first().waitFor();
  const identity = await site.at('worker-identity').first().innerText();
  assert.ok(identity.includes('@'), identity);
  await site.shoot('queue');
}

export const cases = { namespaces_are_shown, search_attributes_are_shown, queues_and_workers_are_shown };
