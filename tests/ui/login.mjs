/** People log in at an identity provider, and see and do what their roles permit. */
import assert from 'node:assert/strict';

const DENIED = /Request unauthorized/;

/** Logs in as a person, from whatever page the Web UI sends those to that it does not know. */
async function logIn(site, person) {
  const { kind, issuer, people } = site.login;
  if (kind === 'mock') {
    const claims = encodeURIComponent(JSON.stringify({ sub: person, name: person, permissions: people[person] }));
    await site.context.addCookies([{ name: 'claims', value: claims, url: issuer }]);
  }
  await site.page.goto(`${site.base}/namespaces/${site.namespace}/workflows`);
  await site.page.waitForURL(/\/login/);
  await site.at('login-button').click();
  if (kind === 'keycloak') {
    await site.page.locator('#username').fill(person);
    await site.page.locator('#password').fill(`password-of-${person}`);
    await site.page.locator('#kc-login').click();
  }
  await site.page.waitForURL((url) => url.href.startsWith(site.base) && !/^\/(login|auth)/.test(url.pathname));
}

/** What the Web UI's own API answers to a token, or to none. */
async function status(site, namespace, token) {
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  const answer = await site.context.request.get(`${site.base}/api/v1/namespaces/${namespace}/workflows`, { headers });
  return answer.status();
}

async function nobody_sees_anything(site) {
  site.refusals.push('/api/v1/');
  await site.page.goto(`${site.base}/namespaces/shop/workflows`);
  await site.page.waitForURL(/\/login/);
  await site.shoot('login');
  assert.equal(await status(site, 'shop'), 401);
  assert.ok([401, 403].includes(await status(site, 'shop', 'made-up')));
  assert.ok([401, 403].includes(await status(site, 'shop', 'ey.made.up')));
}

async function a_reader_reads(site) {
  await logIn(site, 'ann');
  await site.go('/workflows');
  await site.lists(site.listed);
  await site.shoot('list');
  await site.run('shop-1');
  await site.says('Workflow Execution Started');
  await site.shoot('run');
}

async function a_reader_changes_nothing(site) {
  site.refusals.push('403 ');
  await logIn(site, 'ann');
  await site.run('shop-1');
  await site.act('terminate');
  await site.page.locator('dialog[open]').getByTestId('confirm-modal-button').click();
  await site.says(DENIED);
  await site.shoot('denied');
}

async function a_reader_sees_no_other_namespace(site) {
  site.refusals.push('403 ');
  await logIn(site, 'ann');
  await site.page.goto(`${site.base}/namespaces/stock/workflows`);
  await site.page.waitForLoadState('networkidle');
  await site.shoot('stock');
  assert.ok(!(await site.page.locator('body').innerText()).includes('stock-1'));
}

async function a_writer_terminates(site) {
  await logIn(site, 'bob');
  await site.run('shop-1');
  await site.act('terminate');
  await site.page.locator('dialog[open]').getByTestId('workflow-termination-reason').fill('enough');
  await site.confirm();
  await site.status('Terminated');
  await site.shoot('terminated');
}

export const cases = {
  nobody_sees_anything,
  a_reader_reads,
  a_reader_changes_nothing,
  a_reader_sees_no_other_namespace,
  a_writer_terminates,
};
