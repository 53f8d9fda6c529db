/** How long a test waits for what must come, whatever the machine: as tests/patience has it. */
export const MOST_MS = 120_000 * Number(process.env.EVERLOG_PATIENCE ?? 1);
