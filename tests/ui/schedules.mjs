/** Schedules: the list, the form, the page of one, and what a person does to it. */
import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { until } from './patience.mjs';

const WEEKDAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday'];

/** Fills in what the form has of times, each in its tab. */
const forms = {
  async interval(site, minutes, offset) {
    await site.at('interval-tab').click();
    await site.at('minute-interval-input').fill(`${minutes}`);
    if (offset) await site.at('phase').fill(`${offset}`);
  },
  async daily(site, days, hour, minute) {
    await site.at('daily-tab').click();
    for (const day of days) await site.button(day).click();
    await site.at('hour').fill(`${hour}`);
    await site.at('minute').fill(`${minute}`);
  },
  async monthly(site, days, months, hour) {
    await site.at('monthly-tab').click();
    for (const name of [...days, ...months]) await site.button(name).click();
    await site.at('hour').fill(`${hour}`);
  },
  async string(site, cron) {
    await site.at('string-tab').click();
    await site.at('cronString').fill(cron);
  },
};

/** Makes a schedule of greetings by the form. */
async function create(site, id, kind, ...times) {
  await site.go('/schedules/create');
  await site.at('schedule-name-input').fill(id);
  await site.at('schedule-type-input').fill('Greeting');
  await site.at('schedule-workflow-id-input').fill(`${id}-run`);
  await site.at('schedule-task-queue-input').fill(site.queue);
  await site.page.locator('.cm-content').filter({ visible: true }).first().click();
  await site.page.keyboard.type('"Grace"');
  await forms[kind](site, ...times);
  await site.shoot('form');
  await site.at('create-schedule-button').click();
  await site.page.waitForURL(/\/schedules$/);
}

/** The page of a schedule. */
async function open(site, id) {
  await site.go(`/schedules/${id}`);
  await site.at('schedule-name').filter({ hasText: id }).waitFor();
}

/** Waits for what a page of a schedule says of its times, as JSON. */
async function acts(site, expected) {
  const look = async () => {
    const text = await site.at('schedule-calendar').first().innerText();
    return JSON.parse(text.slice(text.search(/[{[]/)));
  };
  await until(`times ${JSON.stringify(expected)}`, () => look().catch(() => undefined), (found) => isDeepStrictEqual(found, expected));
}

/** The rows of the list: status, id and type. */
function rows(site) {
  return site.page.locator('main tr').evaluateAll((all) =>
    all.map((row) => [...row.querySelectorAll('td')].slice(0, 3).map((cell) => cell.innerText.trim())).filter((row) => row.length),
  );
}

/** Waits until the list has these rows, in whatever order. */
async function lists(site, query, expected) {
  await site.go('/schedules', query);
  await site.shows('schedules', [...expected].sort(), async () => (await rows(site)).sort());
}

/** Chooses an entry of the menu; the dialog that comes up. */
async function act(site, name) {
  await site.page.locator('#schedule-actions-menu-button').click();
  await site.at(`${name}-schedule`).click();
  return site.page.locator('dialog[open]');
}

/** Pauses a schedule, or lets it go on. */
async function toggle(site, id, word, reason, status) {
  await site.page.locator('#schedule-actions-primary-button').filter({ hasText: word }).click();
  await site.page.locator(`dialog[open] [id$=pause-reason]`).fill(reason);
  await site.shoot(word);
  await site.confirm();
  await site.says(reason);
  await site.status(status);
}

async function remove(site, id) {
  await open(site, id);
  await act(site, 'delete');
  await site.shoot('delete');
  await site.page.locator('dialog[open]').getByTestId('confirm-modal-button').click();
  await site.page.waitForURL(/\/schedules$/);
  await lists(site, `ScheduleId = "${id}"`, []);
}

/** Waits until the page has these runs among the recent ones, each with a link to it. */
async function recent(site, expected) {
  const look = () => site.page.locator('main a[href*="/workflows/"][href*="-run-"]').allInnerTexts();
  await until(`the runs ${expected}`, look, (found) => isDeepStrictEqual(found.map((each) => each.trim()).sort(), [...expected].sort()));
}

async function a_schedule_is_created_and_deleted(site) {
  await site.go('/schedules');
  await site.at('create-schedule').first().click();
  await site.page.waitForURL(/\/schedules\/create$/);
  await create(site, 'half-hours', 'interval', 30, 5);
  await lists(site, 'ScheduleId = "half-hours"', [['Running', 'half-hours', 'Greeting']]);
  await site.shoot('list');
  await site.page.getByRole('link', { name: 'half-hours', exact: true }).click();
  await site.page.waitForURL(/\/schedules\/half-hours$/);
  await acts(site, { interval: '1800s', phase: '300s' });
  await site.says('"Grace"');
  await site.says('No Recent Runs');
  const text = await site.page.locator('main').innerText();
  assert.equal(text.match(/UTC \d\d:(05|35):00/g)?.length, 5, `times to come: ${text}`);
  await site.shoot('page');
  await remove(site, 'half-hours');
}

async function schedules_have_days_and_cron_strings(site) {
  await create(site, 'weekdays', 'daily', WEEKDAYS, 9, 30);
  await create(site, 'quarters', 'monthly', ['1', '15'], ['March', 'September'], 6);
  await create(site, 'noons', 'string', '0 12 * * MON');
  await lists(site, undefined, [
    ['Running', 'weekdays', 'Greeting'],
    ['Running', 'quarters', 'Greeting'],
    ['Running', 'noons', 'Greeting'],
  ]);
  await site.shoot('list');
  const days = { weekdays: /^(Mon|Tue|Wed|Thu|Fri)$/, quarters: /^(1|15) (Mar|Sep)$/, noons: /^Mon$/ };
  const clock = { weekdays: '09:30:00', quarters: '06:00:00', noons: '12:00:00' };
  for (const id of Object.keys(days)) {
    await open(site, id);
    await site.says('Upcoming Runs');
    const look = async () => [...(await site.page.locator('main').innerText()).matchAll(/(\d{4}-\d\d-\d\d) UTC (\d\d:\d\d:\d\d)/g)].slice(-5);
    const times = await until(`times of ${id}`, look, (found) => found.length === 5 && found.every((each) => each[2] === clock[id]));
    for (const [, day] of times) {
      const date = new Date(`${day}T00:00:00Z`);
      const word = id === 'quarters' ? { day: 'numeric', month: 'short' } : { weekday: 'short' };
      const name = date.toLocaleDateString('en-GB', { ...word, timeZone: 'UTC' }).replace('Sept', 'Sep');
      assert.match(name, days[id], `a day of ${id}`);
    }
    await site.shoot(id);
  }
  for (const id of Object.keys(days)) await remove(site, id);
}

async function a_schedule_is_paused_and_goes_on(site) {
  await create(site, 'paused', 'interval', 30);
  await open(site, 'paused');
  await site.status('Running');
  await toggle(site, 'paused', 'Pause', 'too loud', 'Paused');
  await lists(site, 'TemporalSchedulePaused = true', [['Paused', 'paused', 'Greeting']]);
  await open(site, 'paused');
  await site.says('too loud');
  await toggle(site, 'paused', 'Unpause', 'quiet again', 'Running');
  await lists(site, 'TemporalSchedulePaused = true', []);
  await remove(site, 'paused');
}

async function a_schedule_is_triggered(site) {
  // Once in four years.
  await create(site, 'triggered', 'string', '0 0 29 2 *');
  await open(site, 'triggered');
  const dialog = await act(site, 'trigger');
  await dialog.locator('#AllowAll').check({ force: true });
  await site.shoot('dialog');
  await site.confirm();
  const link = site.page.getByRole('link', { name: /^triggered-run-/ }).first();
  await link.waitFor();
  await site.shoot('page');
  const id = (await link.innerText()).trim();
  await link.click();
  await site.status('Completed');
  await site.says('"Hello, Grace!"');
  await site.go('/workflows', 'TemporalScheduledById = "triggered"');
  await site.lists([id]);
  await remove(site, 'triggered');
}

async function a_schedule_is_backfilled(site) {
  await create(site, 'backfilled', 'interval', 60);
  await open(site, 'backfilled');
  const dialog = await act(site, 'backfill');
  // Three hours, from a second after a full one. The form begins with the hour that has passed, which may be of another day.
  const [from, to] = await Promise.all((await dialog.getByTestId('datepicker').all()).map((each) => each.inputValue()));
  const first = from === to ? 0 : 23;
  const fields = { hour: [first, (first + 3) % 24], minute: [0, 0], second: [1, 1] };
  for (const [field, values] of Object.entries(fields))
    for (const [nth, value] of values.entries()) await dialog.getByTestId(field).nth(nth).fill(`${value}`);
  await dialog.locator('#AllowAll').check({ force: true });
  const hours = [1, 2, 3].map((after) => Date.parse(`${from} UTC`) + (first + after) * 3_600_000);
  await site.shoot('dialog');
  await site.confirm();
  await recent(site, hours.map((hour) => `backfilled-run-${new Date(hour).toISOString().slice(0, 19)}Z`));
  await site.shoot('page');
  await remove(site, 'backfilled');
}

async function a_schedule_is_edited(site) {
  await create(site, 'edited', 'interval', 30);
  await open(site, 'edited');
  await act(site, 'edit');
  await site.page.waitForURL(/\/edited\/edit$/);
  await until('the form is filled', () => site.at('schedule-type-input').inputValue(), (found) => found === 'Greeting');
  await acts(site, { interval: '1800s', phase: '0s' });
  await site.at('schedule-type-input').fill('Register');
  await forms.interval(site, 45, 15);
  await site.shoot('form');
  await site.at('create-schedule-button').click();
  await site.page.waitForURL(/\/schedules\/edited$/);
  await open(site, 'edited');
  await acts(site, { interval: '2700s', phase: '900s' });
  await site.says('Register');
  await site.says('"Grace"');
  await site.says('Last Updated');
  await site.shoot('page');
  await remove(site, 'edited');
}

export const cases = {
  a_schedule_is_created_and_deleted,
  schedules_have_days_and_cron_strings,
  a_schedule_is_paused_and_goes_on,
  a_schedule_is_triggered,
  a_schedule_is_backfilled,
  a_schedule_is_edited,
};
