/** What a person does to an activity that is stuck. */

/** The tab with the pending activities of a run, as they are now. */
async function open(site, id) {
  await site.run(id, 'pending-activities');
  await site.says('Stumble');
}

/** Presses a button of the activity, and confirms. */
async function press(site, name, reason) {
  await site.button(name).click();
  if (reason) await site.page.locator('dialog[open]').getByTestId('activity-pause-reason').fill(reason);
  await site.shoot(name);
  await site.confirm();
}

async function an_activity_is_paused_unpaused_and_reset(site) {
  await open(site, 'halted');
  await site.says('2 of 5');
  await press(site, 'Pause', 'no paper');
  await open(site, 'halted');
  for (const text of [/^\s*Paused\s*$/, 'no paper']) await site.says(text, site.page.locator('main'));
  await site.shoot('paused');
  await press(site, 'Unpause');
  await open(site, 'halted');
  // It has been tried again at once, and waits for the next time.
  await site.says('3 of 5');
  await site.button('Pause').waitFor();
  await press(site, 'Reset');
  await site.toast('has been reset');
  await open(site, 'halted');
  // The first attempt once more.
  await site.says('2 of 5');
}

async function an_activity_gets_other_options(site) {
  await open(site, 'changed');
  await site.button('Update').click();
  const drawer = site.page.locator('#activity-options-update-drawer');
  await drawer.getByLabel('Retry Maximum Attempts').fill('7');
  await drawer.getByLabel('Start to Close Timeout Duration').fill('1800');
  await site.shoot('drawer');
  await drawer.getByRole('button', { name: 'Save' }).click();
  await drawer.waitFor({ state: 'hidden' });
  await open(site, 'changed');
  await site.says('2 of 7');
  await site.button('Update').click();
  await site.shows('the timeout', '1800', () => drawer.getByLabel('Start to Close Timeout Duration').inputValue());
}

export const cases = { an_activity_is_paused_unpaused_and_reset, an_activity_gets_other_options };
