/** A browser that sees what a person would: pages, toasts, and every call that fails. */
import { mkdir } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { chromium } from 'playwright-core';
import { MOST_MS, until } from './patience.mjs';

const ARGUMENTS = [
  '--no-sandbox',
  '--disable-quic',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const VIEW = { width: 1500, height: 1100 };
/** A page that is left gives up the calls that it still waits for. */
const LEFT = 'net::ERR_ABORTED';
/** After so many looks at a list it may be old. */
const PATIENT_LOOKS = 30;

/** Tells of each toast that comes up, in whatever page. */
function watchToasts() {
  const tell = () => {
    for (const toast of document.querySelectorAll('[role=log] > *')) {
      if (toast.dataset.told) continue;
      toast.dataset.told = 'yes';
      window.toast(toast.innerText.trim(), toast.classList.contains('bg-danger'));
    }
  };
  const begin = () => new MutationObserver(tell).observe(document.body, { childList: true, subtree: true });
  if (document.body) begin();
  else addEventListener('DOMContentLoaded', begin);
}

/** A page for one case, at one namespace of one server. */
export class Site {
  toasts = [];
  troubles = [];
  /** Calls that may fail: what their addresses have in them, with the status. */
  refusals = [];

  static async launch(settings) {
    const browser = await chromium.launch({ executablePath: settings.chromium, args: ARGUMENTS });
    if (settings.screenshots) await mkdir(settings.screenshots, { recursive: true });
    return browser;
  }

  static async open(browser, settings, name) {
    const site = new Site();
    Object.assign(site, settings, { name, shots: 0 });
    site.context = await browser.newContext({ viewport: VIEW, timezoneId: 'UTC', locale: 'en-GB', reducedMotion: 'reduce' });
    const page = (site.page = await site.context.newPage());
    page.setDefaultTimeout(MOST_MS);
    page.setDefaultNavigationTimeout(MOST_MS);
    await page.exposeFunction('toast', (text, isError) => {
      site.toasts.push(text);
      if (isError) site.troubles.push(`toast ${text}`);
    });
    await page.addInitScript(watchToasts);
    page.on('response', (response) => {
      if (response.status() >= 400) site.trouble(`${response.status()} ${address(response.url())}`);
    });
    page.on('requestfailed', (request) => {
      const why = request.failure()?.errorText;
      if (why !== LEFT) site.trouble(`${why} ${address(request.url())}`);
    });
    page.on('pageerror', (error) => site.troubles.push(`script ${error.message}`));
    return site;
  }

  trouble(call) {
    if (!this.refusals.some((part) => call.includes(part))) this.troubles.push(call);
  }

  /** Goes to a page of the namespace. */
  async go(path, query) {
    const asked = query === undefined ? '' : `?query=${encodeURIComponent(query)}`;
    await this.page.goto(`${this.base}/namespaces/${this.namespace}${path}${asked}`);
  }

  run(id, view = 'history') {
    return this.go(`/workflows/${id}/${this.runs[id]}/${view}`);
  }

  /** Some elements are there twice, for narrow pages too. */
  at(testId) {
    return this.page.getByTestId(testId).filter({ visible: true });
  }

  button(name) {
    return this.page.getByRole('button', { name, exact: true }).filter({ visible: true }).first();
  }

  /** Waits until a text is in one of the frames that the page shows Markdown in. */
  async renders(text) {
    const look = async () => {
      const frames = this.page.frames().slice(1);
      return Promise.all(frames.map((frame) => frame.locator('body').innerText().catch(() => '')));
    };
    await until(`${text} in Markdown`, look, (found) => found.some((each) => each.includes(text)));
  }

  /** Waits until the page has this text. */
  async says(text, within = this.page) {
    await within.getByText(text).filter({ visible: true }).first().waitFor();
  }

  /** Waits until what is looked at is as expected. Lists of a Temporal server come late: now and then the page is loaded again. */
  async shows(what, expected, look) {
    const isExpected = (found) => isDeepStrictEqual(found, expected);
    let looks = 0;
    let next = PATIENT_LOOKS;
    const again = async () => {
      const found = await look();
      looks += 1;
      if (this.reference && looks === next && !isExpected(found)) {
        next *= 2;
        await this.page.reload();
      }
      return found;
    };
    await until(`${what}: expected ${JSON.stringify(expected)}`, again, isExpected);
  }

  /** The runs in the table: status, workflow id and type. */
  rows() {
    return this.page.getByTestId('workflows-summary-configurable-table-row').evaluateAll((rows) =>
      rows.map((row) => {
        const cells = [...row.querySelectorAll('td')].map((cell) => cell.innerText.trim());
        return [cells[2], cells[3], cells[5]];
      }),
    );
  }

  async ids() {
    return (await this.rows()).map((row) => row[1]);
  }

  /** Waits until the table has these runs, in whatever order. */
  lists(expected) {
    return this.shows('the list', [...expected].sort(), async () => (await this.ids()).sort());
  }

  /** Waits until the run on the page has this status. */
  status(expected) {
    return this.says(new RegExp(`^\\s*${expected}\\s*$`), this.page.locator('main'));
  }

  /** Chooses an entry of the menu of a run. */
  async act(name) {
    await this.button('More Actions').click();
    await this.at(`${name}-button`).click();
  }

  /** Confirms the dialog that is open. */
  async confirm() {
    const dialog = this.page.locator('dialog[open]');
    await dialog.getByTestId('confirm-modal-button').click();
    await dialog.waitFor({ state: 'hidden' });
  }

  /** Waits for a toast that says this. */
  toast(text) {
    return until(`the toast ${text}`, async () => this.toasts, (all) => all.some((each) => each.includes(text)));
  }

  async shoot(word) {
    if (!this.screenshots) return;
    await this.page.waitForLoadState('networkidle', { timeout: 2000 }).catch(() => undefined);
    await this.page.screenshot({ path: `${this.screenshots}/${this.name}-${this.shots++}-${word}.png` });
  }

  close() {
    return this.context.close();
  }
}

/** An address without what differs from run to run. */
function address(url) {
  const { pathname, searchParams } = new URL(url);
  const query = searchParams.get('query');
  return decodeURIComponent(pathname) + (query ? ` ${query}` : '');
}
