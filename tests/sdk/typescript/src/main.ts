// Programs with Temporal's TypeScript SDK against the server whose HOST:PORT is the argument: a line per case.
import { randomUUID } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Runtime, type BundleOptions } from '@temporalio/worker';
import * as attributes from './attributes';
import * as builds from './builds';
import * as calls from './calls';
import * as chains from './chains';
import * as children from './children';
import * as codecs from './codecs';
import * as completions from './completions';
import * as deletions from './deletions';
import * as dynamics from './dynamics';
import * as eager from './eager';
import * as headers from './headers';
import * as histories from './histories';
import * as ids from './ids';
import * as limits from './limits';
import * as markers from './markers';
import * as namespaces from './namespaces';
import * as nondeterminism from './nondeterminism';
import { MOST_MS } from './patience';
import * as queries from './queries';
import * as queues from './queues';
import * as schedules from './schedules';
import * as scopes from './scopes';
import { secured } from './secured';
import * as updates from './updates';
import { World, type Server } from './world';

const CASES: Record<string, (world: World) => Promise<void>> = {
  activities_are_retried: calls.areRetried,
  activities_time_out: calls.timeOut,
  activities_are_cancelled_in_three_ways: calls.areCancelledInThreeWays,
  heartbeats_reach_the_next_attempt: calls.heartbeatsReachTheNextAttempt,
  runs_are_described: calls.runsAreDescribed,
  local_activities_are_retried: markers.localActivitiesAreRetried,
  patches_stay_what_they_were: markers.patchesStayWhatTheyWere,
  random_numbers_are_the_same_in_every_replay: markers.randomNumbersAreTheSame,
  timers_fire_in_order: scopes.timersFireInOrder,
  scopes_are_cancelled: scopes.areCancelled,
  updates_are_validated_and_answered_once: updates.areValidatedAndAnsweredOnce,
  updates_start_their_workflow: updates.startTheirWorkflow,
  parents_hear_of_every_end: children.parentsHearOfEveryEnd,
  children_are_left_as_their_policy_says: children.areLeftAsTheirPolicySays,
  children_continue_as_new: children.continueAsNew,
  strangers_are_signalled_and_cancelled: children.strangersAreSignalledAndCancelled,
  workflows_are_retried: chains.workflowsAreRetried,
  runs_carry_their_state: chains.runsCarryTheirState,
  runs_are_signalled_with_their_start: chains.runsAreSignalledWithTheirStart,
  cron_runs_go_on_from_their_results: chains.cronRunsGoOnFromTheirResults,
  runs_are_cancelled_and_time_out: chains.runsAreCancelledAndTimeOut,
  ids_are_used_again_as_policies_say: ids.areUsedAgainAsPoliciesSay,
  resets_take_signals_along: ids.resetsTakeSignalsAlong,
  queries_are_rejected_as_they_ask: queries.areRejectedAsTheyAsk,
  stacks_and_metadata_are_queried: queries.ofStacksAndMetadata,
  attributes_and_memo_are_upserted: attributes.andMemoAreUpserted,
  builds_are_told_by_their_runs: builds.areToldByTheirRuns,
  runs_go_back_to_before_a_bad_build: builds.runsGoBackToBeforeABadOne,
  queues_hold_their_activities_back: queues.holdTheirActivitiesBack,
  workers_tell_of_themselves: queues.workersTellOfThemselves,
  namespaces_keep_equal_names_apart: namespaces.keepEqualNamesApart,
  runs_that_are_deleted_are_forgotten: deletions.areForgotten,
  activities_are_completed_from_outside: completions.fromOutside,
  cancellations_are_heard_of_outside: completions.cancellationsAreHeardOf,
  late_results_from_outside_are_refused: completions.lateResultsAreRefused,
  changed_code_fails_its_task: nondeterminism.ofChangedCode,
  broken_code_fails_its_task: nondeterminism.ofBrokenCode,
  headers_travel_with_everything: headers.travelWithEverything,
  encoded_payloads_and_failures_are_opaque: codecs.hidePayloadsAndFailures,
  dynamic_definitions_answer_to_any_name: dynamics.answerToAnyName,
  eager_starts_bring_their_task_along: eager.startsBringTheirTaskAlong,
  pending_work_is_described: calls.pendingWorkIsDescribed,
  histories_come_in_pages: histories.comeInPages,
  others_go_on_when_a_worker_stops: histories.goOnWhenAWorkerStops,
  what_is_too_large_is_refused: limits.refuseWhatIsTooLarge,
  workers_heed_the_limits_that_they_are_told: limits.areHeededByWorkersThatAreTold,
  limits_hold_that_no_worker_heeds: limits.holdThatNoWorkerHeeds,
  updates_in_flight_are_bounded: limits.boundUpdatesInFlight,
  schedules_are_described_as_they_were_made: schedules.areDescribedAsTheyWereMade,
  schedules_are_updated_and_paused: schedules.areUpdatedAndPaused,
  schedules_are_listed: schedules.areListed,
  schedules_backfill_and_are_triggered: schedules.backfillAndAreTriggered,
  schedules_keep_runs_from_overlapping: schedules.keepRunsFromOverlapping,
};

/** How many cases run beside each other: each has a worker, and threads. */
const BESIDE = 6;

/** Prints the line of a case; whether it passed. */
async function runCase(server: Server, name: string, run: (world: World) => Promise<void>): Promise<boolean> {
  const begun = Date.now();
  const world = new World(server, `typescript-${name}-${randomUUID()}`);
  const deadline = new Promise<never>((_, reject) => setTimeout(() => reject(new Error('not done in time')), 2 * MOST_MS).unref());
  try {
    await Promise.race([run(world).then(() => world.closeAndReplay()), deadline]);
    console.log(`ok typescript.${name} (${((Date.now() - begun) / 1000).toFixed(1)} s)`);
    return true;
  } catch (error) {
    console.log(`FAIL typescript.${name}: ${oneLine(error)}`);
    return false;
  }
}

/** The messages of an error and of its causes. */
function oneLine(error: unknown): string {
  const words = error instanceof Error && error.cause ? `${error}: ${oneLine(error.cause)}` : String(error);
  return words.replace(/\s+/g, ' ');
}

async function main(address: string, beginning: string): Promise<number> {
  // Most cases make things fail on purpose.
  const logger = new DefaultLogger('ERROR', () => undefined);
  const telemetryOptions = { logging: { filter: 'off', forward: {} } };
  Runtime.install({ logger, telemetryOptions, workerHeartbeatInterval: '1s' });
  const client = new Client({ connection: await Connection.connect(secured(address)) });
  const connection = await NativeConnection.connect(secured(address));
  const bundleOf = (path: string, options: Partial<BundleOptions> = {}) =>
    bundleWorkflowCode({ workflowsPath: require.resolve(path), logger, ...options });
  const bundles = {
    bundle: await bundleOf('./workflows', { workflowInterceptorModules: [require.resolve('./workflows/interceptors')] }),
    badBundle: await bundleOf('./workflows/bad'),
    encodedBundle: await bundleOf('./workflows', { failureConverterPath: require.resolve('./failures') }),
  };
  const server = { address, client, connection, ...bundles };
  const waiting = Object.entries(CASES).filter(([name]) => name.startsWith(beginning));
  const results: boolean[] = [];
  const lane = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) results.push(await runCase(server, ...next));
  };
  await Promise.all(Array.from({ length: BESIDE }, lane));
  const failed = results.filter((passed) => !passed).length;
  console.log(`${results.length - failed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

const [address, beginning = '', ...further] = process.argv.slice(2);
if (!address || further.length) {
  console.error('usage: main HOST:PORT [BEGINNING]');
  process.exit(2);
}
main(address, beginning).then(
  (code) => process.exit(code),
  (error) => {
    console.log(`FAIL typescript.connect: ${oneLine(error)}\n0 passed, 1 failed`);
    process.exit(1);
  }
);
