// Schedules by their client, and what they start.
import {
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
  type ScheduleDescription,
  type ScheduleHandle,
  type ScheduleOptions,
  type ScheduleOptionsStartWorkflowAction,
  type ScheduleUpdateOptions,
} from '@temporalio/client';
import { defineSearchAttributeKey, SearchAttributeType, type SearchAttributePair } from '@temporalio/common';
import { temporal } from '@temporalio/proto';
import { resume, planned } from './workflows/planned';
import type { World } from './world';

const { IndexedValueType } = temporal.api.enums.v1;
type Action = ScheduleOptionsStartWorkflowAction<typeof planned>;
type Options = Omit<ScheduleOptions<Action>, 'scheduleId' | 'action' | 'spec'> & { action?: Action; spec?: ScheduleOptions['spec'] };

const SEASON = defineSearchAttributeKey('TypeScriptSeason', SearchAttributeType.KEYWORD);
const BY_ID = defineSearchAttributeKey('TemporalScheduledById', SearchAttributeType.KEYWORD);
const MINUTE_MS = 60_000;
const BEGIN = new Date('2031-01-01T05:00:00Z');

/** A Temporal server's lists come late, and the ids of two triggers in one second are the same there. */
const IS_REFERENCE = !!process.env.LISTS_COME_LATE;

const inSeason = (value: string): SearchAttributePair[] => [{ key: SEASON, value }];

function action(w: World, script: Parameters<typeof planned>[0]): Action {
  return { type: 'startWorkflow', workflowType: planned, workflowId: w.id(), taskQueue: w.queue, args: [script] };
}

async function attributesAreKnown(w: World): Promise<void> {
  const searchAttributes = { [SEASON.name]: IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD };
  await w.client.connection.operatorService.addSearchAttributes({ namespace: 'default', searchAttributes }).catch((error) => {
    if (!String(error).includes('already')) throw error;
  });
}

/** A schedule beside the body, which acts when it is told to unless its spec says when; its runs are remembered. */
async function scheduled(w: World, options: Options, body: (handle: ScheduleHandle) => Promise<void>): Promise<void> {
  const made = { action: action(w, 'count'), spec: {}, ...options };
  const handle = await w.client.schedule.create({ scheduleId: w.id(), ...made });
  try {
    await body(handle);
  } finally {
    const told = await handle.describe().catch(() => undefined);
    for (const run of told ? ran(told) : []) w.remember(run.workflowId, run.firstExecutionRunId);
    if (told) await handle.delete();
  }
}

const ran = (told: ScheduleDescription) => told.info.recentActions.map((each) => each.action.workflow);

/** What is described, to be sent back. */
const unchanged = (told: ScheduleDescription) => told as unknown as ScheduleUpdateOptions<Action>;

const running = (told: ScheduleDescription) => told.info.runningActions.map((each) => each.workflow);

/** The SDK's triggers have the policy ALLOW_ALL unless they are given another. */
async function trigger(w: World, handle: ScheduleHandle, overlap: ScheduleOverlapPolicy = 'SKIP'): Promise<void> {
  const second = () => Math.floor(Date.now() / 1000);
  const first = second();
  if (IS_REFERENCE) await w.until(() => second() > first);
  await handle.trigger(overlap);
}

/** The description once there were so many actions, and no more. */
async function acted(w: World, handle: ScheduleHandle, count: number): Promise<ScheduleDescription> {
  await w.until(async () => (await handle.describe()).info.numActionsTaken >= count);
  const told = await handle.describe();
  w.equal(told.info.numActionsTaken, count, 'actions');
  return told;
}

/** Claims what is listed; at a Temporal server it becomes so. */
async function lists(w: World, query: string, pageSize: number, expected: string[]): Promise<void> {
  const look = async () => {
    const found: string[] = [];
    for await (const each of w.client.schedule.list({ query, pageSize })) found.push(each.scheduleId);
    return found.sort();
  };
  const wanted = [...expected].sort();
  if (IS_REFERENCE) await w.until(async () => String(await look()) === String(wanted));
  w.equal(await look(), wanted, query);
}

export async function areDescribedAsTheyWereMade(w: World): Promise<void> {
  await attributesAreKnown(w);
  const made = action(w, 'count');
  const options: Options = {
    spec: {
      calendars: [{ hour: [{ start: 9, end: 17 }, 20], dayOfWeek: { start: 'MONDAY', end: 'FRIDAY' }, month: 'MAY', comment: 'in May' }],
      intervals: [{ every: '1h', offset: '5m' }],
      cronExpressions: ['0 12 * * MON'],
      skip: [{ hour: 12 }],
      startAt: BEGIN,
      endAt: new Date('2035-01-01T00:00:00Z'),
      jitter: '80s',
      timezone: 'Europe/Berlin',
    },
    action: {
      ...made,
      memo: { of: 'the run' },
      typedSearchAttributes: inSeason('summer'),
      retry: { maximumAttempts: 3 },
      workflowExecutionTimeout: '3h',
      workflowRunTimeout: '2h',
      workflowTaskTimeout: '7s',
      staticSummary: 'a summary',
    },
    policies: { overlap: ScheduleOverlapPolicy.BUFFER_ONE, catchupWindow: '5m', pauseOnFailure: true },
    memo: { of: 'the schedule' },
    typedSearchAttributes: inSeason('winter'),
    state: { paused: true, note: 'not yet', remainingActions: 30, triggerImmediately: true },
  };
  await w.serve(() =>
    scheduled(w, options, async (handle) => {
      const told = await handle.describe();
      w.equal(told.info.numActionsTaken, 1, 'what is triggered with the start is described at once');
      const all = <T>(start: T, end: T) => [{ start, end, step: 1 }];
      const [calendar, noon] = told.spec.calendars!;
      w.equal(calendar.hour, [...all(9, 17), ...all(20, 20)], 'hours');
      w.equal([calendar.dayOfWeek, calendar.month, calendar.comment], [all('MONDAY', 'FRIDAY'), all('MAY', 'MAY'), 'in May'], 'days');
      w.equal([noon.hour, noon.dayOfWeek, noon.dayOfMonth], [all(12, 12), all('MONDAY', 'MONDAY'), all(1, 31)], 'what stood in a cron string');
      w.equal(told.spec.intervals, [{ every: 60 * MINUTE_MS, offset: 5 * MINUTE_MS }], 'intervals');
      w.equal(told.spec.skip!.map((each) => each.hour), [all(12, 12)], 'what is left out');
      const rest = [told.spec.startAt, told.spec.endAt, told.spec.jitter, told.spec.timezone];
      w.equal(rest, [BEGIN, new Date('2035-01-01T00:00:00Z'), 80_000, 'Europe/Berlin'], 'the rest of it');
      w.equal(told.policies, { overlap: 'BUFFER_ONE', catchupWindow: 5 * MINUTE_MS, pauseOnFailure: true }, 'policies');
      w.equal([told.state.paused, told.state.note, told.state.remainingActions], [true, 'not yet', 30], 'its state');
      w.equal([told.memo, told.typedSearchAttributes.get(SEASON)], [{ of: 'the schedule' }, 'winter'], 'what it carries');
      w.equal([told.info.nextActionTimes.length, told.info.lastUpdatedAt], [10, undefined], 'times');
      const found = told.action;
      w.equal([found.workflowType, found.workflowId, found.taskQueue, found.args], ['planned', made.workflowId, w.queue, ['count']], 'what it starts');
      w.equal([found.memo, found.retry?.maximumAttempts, found.staticSummary], [{ of: 'the run' }, 3, 'a summary'], 'what it gives along');
      const [run] = ran(await acted(w, handle, 1));
      w.equal(await w.handle(run.workflowId).result(), 1, 'its result');
      const described = await w.handle(run.workflowId, run.firstExecutionRunId).describe();
      w.equal(described.typedSearchAttributes.get(BY_ID), handle.scheduleId, 'who has started it');
      w.equal([described.typedSearchAttributes.get(SEASON), described.memo], ['summer', { of: 'the run' }], 'what it carries');

      const again = w.client.schedule.create({ scheduleId: handle.scheduleId, spec: {}, action: action(w, 'count') });
      await w.fails(again, ScheduleAlreadyRunning, 'a second one');
      await handle.delete();
      const calls = [
        () => handle.describe(),
        () => handle.pause(),
        () => handle.unpause(),
        () => handle.trigger(),
        () => handle.backfill({ start: BEGIN, end: BEGIN }),
        () => handle.update(unchanged),
        () => handle.delete(),
      ];
      for (const call of calls) await w.fails(call(), ScheduleNotFoundError, 'one that is deleted');
      w.remember(run.workflowId, run.firstExecutionRunId);
    })
  );
}

export async function areUpdatedAndPaused(w: World): Promise<void> {
  await attributesAreKnown(w);
  await w.serve(() =>
    scheduled(w, { action: action(w, 'wait') }, async (handle) => {
      const update = async (change: (given: ScheduleDescription) => Partial<ScheduleUpdateOptions<Action>>) => {
        await handle.update((given) => ({ ...unchanged(given), ...change(given) }));
        return await handle.describe();
      };
      let told = await update(() => ({ spec: { intervals: [{ every: '1h' }], startAt: BEGIN } }));
      w.equal(told.info.nextActionTimes[1], new Date(+BEGIN + 60 * MINUTE_MS), 'new times');
      w.that(!!told.info.lastUpdatedAt, 'when it was updated');
      told = await update(() => ({ policies: { overlap: 'ALLOW_ALL', catchupWindow: '20s' } }));
      w.equal(told.policies, { overlap: 'ALLOW_ALL', catchupWindow: 20_000, pauseOnFailure: false }, 'new policies');
      told = await update(() => ({ state: { paused: true, note: 'by and by', remainingActions: 3 } }));
      w.equal([told.state.paused, told.state.note, told.state.remainingActions], [true, 'by and by', 3], 'a new state');
      w.equal([told.info.nextActionTimes.length, told.policies.overlap], [3, 'ALLOW_ALL'], 'what follows, and what stays');
      await update(() => ({ action: { ...action(w, 'count'), workflowId: w.id() } }));
      await trigger(w, handle);
      const [run] = ran(await acted(w, handle, 1));
      w.equal(await w.handle(run.workflowId).result(), 1, 'a run that does not wait');
      for (const season of ['spring', 'autumn']) {
        await update(() => ({ typedSearchAttributes: inSeason(season) }));
        const carried = async () => (await handle.describe()).typedSearchAttributes.get(SEASON);
        if (IS_REFERENCE) await w.until(async () => (await carried()) === season);
        w.equal(await carried(), season, 'search attributes');
      }
      const steps: [() => Promise<void>, boolean, string][] = [
        [() => handle.unpause(), false, 'Unpaused via TypeScript SDK"'],
        [() => handle.pause('too loud'), true, 'too loud'],
        [() => handle.pause('still too loud'), true, 'still too loud'],
        [() => handle.unpause('quiet'), false, 'quiet'],
        [() => handle.pause(), true, 'Paused via TypeScript SDK"'],
      ];
      for (const [step, paused, note] of steps) {
        await step();
        const { state } = await handle.describe();
        w.equal([state.paused, state.note], [paused, note], 'what is described at once');
      }
    })
  );
}

export async function areListed(w: World): Promise<void> {
  await attributesAreKnown(w);
  const tag = w.id();
  const own = `\`${SEASON.name}\` = '${tag}'`;
  const ids: string[] = [];
  await w.serve(async () => {
    for (let number = 0; number < 5; number++) {
      const state = { paused: number % 2 === 0, note: `note ${number}`, triggerImmediately: number === 3 };
      const spec: ScheduleOptions['spec'] = { intervals: [{ every: '1h' }] };
      const carried = { memo: { number }, typedSearchAttributes: inSeason(tag) };
      const made = await w.client.schedule.create({ scheduleId: w.id(), spec, action: action(w, 'count'), state, ...carried });
      ids.push(made.scheduleId);
    }
    for (const size of [1, 2, 1000]) await lists(w, own, size, ids);
    const paused = `${own} AND TemporalSchedulePaused = true`;
    await lists(w, paused, 1000, [ids[0], ids[2], ids[4]]);
    await lists(w, `ScheduleId = '${ids[1]}'`, 1000, [ids[1]]);
    await w.client.schedule.getHandle(ids[1]).pause();
    await lists(w, paused, 1000, [ids[0], ids[1], ids[2], ids[4]]);
    for await (const found of w.client.schedule.list({ query: `ScheduleId = '${ids[3]}'` })) {
      w.equal([found.state.paused, found.state.note, found.memo], [false, 'note 3', { number: 3 }], 'what it is');
      w.equal([found.action?.workflowType, found.typedSearchAttributes?.get(SEASON)], ['planned', tag], 'what it starts');
      w.equal(found.spec?.intervals?.map((each) => each.every), [60 * MINUTE_MS], 'its spec');
      w.that(found.info.nextActionTimes.length >= 5, 'times to come', found.info);
    }
    const [run] = ran(await acted(w, w.client.schedule.getHandle(ids[3]), 1));
    await w.handle(run.workflowId).result();
    w.remember(run.workflowId, run.firstExecutionRunId);
    for (const id of ids) await w.client.schedule.getHandle(id).delete();
    await lists(w, own, 1000, []);
  });
}

export async function backfillAndAreTriggered(w: World): Promise<void> {
  const start = new Date('2020-01-01T00:00:30Z');
  const half = new Date(+start + 2 * MINUTE_MS);
  const end = new Date(+half + 2 * MINUTE_MS);
  const [first, second] = [{ start, end: half, overlap: ScheduleOverlapPolicy.ALLOW_ALL }, { start: half, end, overlap: ScheduleOverlapPolicy.ALLOW_ALL }];
  const spec = { intervals: [{ every: '1m' } as const] };
  const times = (minutes: number[]) => minutes.map((minute) => `2020-01-01T00:0${minute}:00Z`);
  await w.serve(async () => {
    await scheduled(w, { spec, state: { paused: true, backfill: [first, second] } }, async (handle) => {
      const told = await acted(w, handle, 4);
      w.equal(ran(told).map((run) => run.workflowId.slice(-20)), times([1, 2, 3, 4]), 'the oldest first');
    });
    await scheduled(w, { spec, state: { paused: true } }, async (handle) => {
      await handle.backfill([second, first]);
      w.equal(ran(await acted(w, handle, 4)).map((run) => run.workflowId.slice(-20)), times([3, 4, 1, 2]), 'in the order that is asked for');
      for (let n = 0; n < 5; n++) await trigger(w, handle, ScheduleOverlapPolicy.ALLOW_ALL);
      const told = await acted(w, handle, 9);
      w.equal(told.state.paused, true, 'it is paused');
      const results = await Promise.all(ran(told).map((run) => w.handle(run.workflowId).result()));
      w.equal(results, Array(9).fill(1), 'none has the result of another');
    });
    const state = { remainingActions: 2 };
    await scheduled(w, { spec: { intervals: [{ every: '1s' }] }, state, policies: { overlap: 'BUFFER_ALL' } }, async (handle) => {
      const told = await acted(w, handle, 2);
      w.equal([told.state.remainingActions, told.info.nextActionTimes.length], [0, 0], 'none remains');
      const results = await Promise.all(ran(told).map((run) => w.handle(run.workflowId).result()));
      w.equal(results, [1, 2], 'one after the other, with the last result');
    });
  });
}

export async function keepRunsFromOverlapping(w: World): Promise<void> {
  const status = async (run: { workflowId: string }) => (await w.handle(run.workflowId).describe()).status.name;
  await w.serve(async () => {
    await scheduled(w, { action: action(w, 'wait') }, async (handle) => {
      await trigger(w, handle);
      const [one] = ran(await acted(w, handle, 1));
      await trigger(w, handle);
      await w.until(async () => (await handle.describe()).info.numActionsSkippedOverlap === 1);
      w.equal(running(await handle.describe()), [one], 'what is running');
      await trigger(w, handle, ScheduleOverlapPolicy.BUFFER_ALL);
      await w.handle(one.workflowId).signal(resume);
      const two = ran(await acted(w, handle, 2))[1];
      w.equal(await status(one), 'COMPLETED', 'the first');
      await trigger(w, handle, ScheduleOverlapPolicy.CANCEL_OTHER);
      const three = ran(await acted(w, handle, 3))[2];
      w.equal(await status(two), 'CANCELLED', 'the second');
      await trigger(w, handle, ScheduleOverlapPolicy.TERMINATE_OTHER);
      const four = ran(await acted(w, handle, 4))[3];
      w.equal(await status(three), 'TERMINATED', 'the third');
      await trigger(w, handle, ScheduleOverlapPolicy.ALLOW_ALL);
      const five = ran(await acted(w, handle, 5))[4];
      for (const run of [four, five]) await w.handle(run.workflowId).signal(resume);
      w.equal(await Promise.all([four, five].map((run) => w.handle(run.workflowId).result())), [2, 1], 'what they were handed on');
    });
    await scheduled(w, { action: action(w, 'fail'), policies: { pauseOnFailure: true } }, async (handle) => {
      await trigger(w, handle);
      await w.until(async () => (await handle.describe()).state.paused);
      const told = await handle.describe();
      w.that(told.state.note?.startsWith('paused due to workflow failure: ') ?? false, 'why it is paused', told.state);
      await handle.update((given) => ({ ...unchanged(given), action: action(w, 'count') }));
      await trigger(w, handle);
      w.equal(await w.handle(ran(await acted(w, handle, 2))[1].workflowId).result(), 100, 'after a failure');
    });
  });
}
