/** How long a test waits for what must come, whatever the machine: as tests/patience has it. */
export const MOST_MS = 120_000 * Number(process.env.EVERLOG_PATIENCE ?? 1);
const LOOK_EVERY_MS = 50;

/** The first answer of many looks that is wanted. */
export async function until(what, look, isWanted) {
  const end = performance.now() + MOST_MS;
  for (;;) {
    const last = await look();
    if (isWanted(last)) return last;
    if (performance.now() > end) throw new Error(`${what}: found ${JSON.stringify(last)}`);
    await new Promise((next) => setTimeout(next, LOOK_EVERY_MS));
  }
}
