/** Runs the cases one after the other in a browser: `main.mjs SETTINGS.json [CASE]...` prints a line for each. */
import { readFile } from 'node:fs/promises';
import { Site } from './browser.mjs';
import * as actions from './actions.mjs';
import * as activities from './activities.mjs';
import * as cluster from './cluster.mjs';
import * as lists from './lists.mjs';
import * as login from './login.mjs';
import * as runs from './runs.mjs';
import * as schedules from './schedules.mjs';

const settings = JSON.parse(await readFile(process.argv[2], 'utf8'));
// Where people log in is a server of its own.
const suites = settings.login ? { login } : { lists, runs, cluster, actions, activities, schedules };
const all = Object.entries(suites).flatMap(([suite, { cases }]) =>
  Object.entries(cases).map(([name, run]) => ({ suite, name, run })),
);
// Those that the cases have begun, the newest first.
settings.jobs = [];
const wanted = process.argv.slice(3);
const isWanted = (each) =>
  !wanted.length || wanted.includes(each.suite) || wanted.includes(`${each.suite}.${each.name}`);
const browser = await Site.launch(settings);
process.on('SIGTERM', () => browser.close().finally(() => process.exit(143)));
let passed = 0;
let failed = 0;
for (const { suite, name, run } of all.filter(isWanted)) {
  const site = await Site.open(browser, settings, name);
  const begun = performance.now();
  let why = '';
  try {
    await run(site);
  } catch (error) {
    why = `${error.message}`;
    await site.shoot('failed').catch(() => undefined);
  }
  if (site.troubles.length) why += ` [${site.troubles.join('; ')}]`;
  await site.close();
  if (why) failed += 1;
  else passed += 1;
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  const line = why.replace(/\x1b\[[0-9;]*m/g, '').split(/\s+/).join(' ').slice(0, 900);
  console.log(why ? `FAIL ${suite}.${name}: ${line}` : `ok ${suite}.${name} (${seconds} s)`);
}
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
