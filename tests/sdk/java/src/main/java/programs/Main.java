package programs;

import io.temporal.client.WorkflowClient;
import io.temporal.serviceclient.WorkflowServiceStubs;
import io.temporal.serviceclient.WorkflowServiceStubsOptions;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;

/** Programs with Temporal's Java SDK against the server whose HOST:PORT is the argument: a line per case. */
public final class Main {
  /** How many cases run beside each other: each has a worker, and threads. */
  private static final int BESIDE = 6;

  interface Case {
    void run(World world) throws Exception;
  }

  private static final Map<String, Case> CASES = new LinkedHashMap<>();

  static {
    CASES.put("activities_are_retried", Calls::areRetried);
    CASES.put("activities_time_out", Calls::timeOut);
    CASES.put("activities_are_cancelled_in_three_ways", Calls::areCancelledInThreeWays);
    CASES.put("heartbeats_reach_the_next_attempt", Calls::heartbeatsReachTheNextAttempt);
    CASES.put("runs_are_described", Calls::runsAreDescribed);
    CASES.put("local_activities_are_retried", Markers::localActivitiesAreRetried);
    CASES.put("versions_stay_what_they_were", Markers::versionsStayWhatTheyWere);
    CASES.put("side_effects_happen_once", Markers::sideEffectsHappenOnce);
    CASES.put("timers_fire_in_order", Scopes::timersFireInOrder);
    CASES.put("scopes_are_cancelled", Scopes::areCancelled);
    CASES.put("updates_are_validated_and_answered_once", Updates::areValidatedAndAnsweredOnce);
    CASES.put("updates_start_their_workflow", Updates::startTheirWorkflow);
    CASES.put("parents_hear_of_every_end", Children::parentsHearOfEveryEnd);
    CASES.put("children_are_left_as_their_policy_says", Children::areLeftAsTheirPolicySays);
    CASES.put("children_continue_as_new", Children::continueAsNew);
    CASES.put("strangers_are_signalled_and_cancelled", Children::strangersAreSignalledAndCancelled);
    CASES.put("workflows_are_retried", Chains::workflowsAreRetried);
    CASES.put("runs_carry_their_state", Chains::runsCarryTheirState);
    CASES.put("runs_are_signalled_with_their_start", Chains::runsAreSignalledWithTheirStart);
    CASES.put("cron_runs_go_on_from_their_results", Chains::cronRunsGoOnFromTheirResults);
    CASES.put("runs_are_cancelled_and_time_out", Chains::runsAreCancelledAndTimeOut);
    CASES.put("ids_are_used_again_as_policies_say", Registers::idsAreUsedAgainAsPoliciesSay);
    CASES.put("resets_take_signals_along", Registers::resetsTakeSignalsAlong);
    CASES.put("queries_are_rejected_as_they_ask", Registers::queriesAreRejectedAsTheyAsk);
    CASES.put("stacks_and_metadata_are_queried", Registers::stacksAndMetadataAreQueried);
    CASES.put("attributes_and_memo_are_upserted", Attributes::andMemoAreUpserted);
    CASES.put("builds_are_told_by_their_runs", Builds::areToldByTheirRuns);
    CASES.put("runs_go_back_to_before_a_bad_build", Builds::runsGoBackToBeforeABadOne);
    CASES.put("queues_hold_their_activities_back", Queues::holdTheirActivitiesBack);
    CASES.put("workers_tell_of_themselves", Queues::workersTellOfThemselves);
    CASES.put("namespaces_keep_equal_names_apart", Namespaces::keepEqualNamesApart);
    CASES.put("runs_that_are_deleted_are_forgotten", Deletions::areForgotten);
    CASES.put("activities_are_completed_from_outside", Completions::fromOutside);
    CASES.put("cancellations_are_heard_of_outside", Completions::cancellationsAreHeardOf);
    CASES.put("late_results_from_outside_are_refused", Completions::lateResultsAreRefused);
    CASES.put("changed_code_fails_its_task", Nondeterminism::ofChangedCode);
    CASES.put("broken_code_fails_its_task", Nondeterminism::ofBrokenCode);
    CASES.put("headers_travel_with_everything", Headers::travelWithEverything);
    CASES.put("encoded_payloads_and_failures_are_opaque", Codecs::hidePayloadsAndFailures);
    CASES.put("dynamic_definitions_answer_to_any_name", Dynamics::answerToAnyName);
    CASES.put("eager_starts_bring_their_task_along", Eager::startsBringTheirTaskAlong);
    CASES.put("eager_activities_run_once", Eager::activitiesRunOnce);
    CASES.put("pending_work_is_described", Calls::pendingWorkIsDescribed);
    CASES.put("histories_come_in_pages", Histories::comeInPages);
    CASES.put("others_go_on_when_a_worker_stops", Histories::goOnWhenAWorkerStops);
    CASES.put("what_is_too_large_is_refused", Limits::refuseWhatIsTooLarge);
    CASES.put("limits_hold_that_no_worker_heeds", Limits::holdThatNoWorkerHeeds);
    CASES.put("updates_in_flight_are_bounded", Limits::boundUpdatesInFlight);
    CASES.put("schedules_are_described_as_they_were_made", Schedules::areDescribedAsTheyWereMade);
    CASES.put("schedules_are_updated_paused_and_deleted", Schedules::areUpdatedPausedAndDeleted);
    CASES.put("schedules_are_listed", Schedules::areListed);
    CASES.put("schedules_backfill_and_are_triggered", Schedules::backfillAndAreTriggered);
    CASES.put("schedules_keep_runs_from_overlapping", Schedules::keepRunsFromOverlapping);
  }

  private Main() {}

  public static void main(String[] arguments) throws Exception {
    if (arguments.length < 1 || arguments.length > 2) {
      System.err.println("usage: Main HOST:PORT [BEGINNING]");
      Runtime.getRuntime().halt(2);
    }
    String beginning = arguments.length == 2 ? arguments[1] : "";
    Map<String, Case> cases = new LinkedHashMap<>(CASES);
    cases.keySet().removeIf(name -> !name.startsWith(beginning));
    WorkflowServiceStubs service = connect(arguments[0]);
    AtomicInteger passed = new AtomicInteger();
    ExecutorService lanes = Executors.newFixedThreadPool(BESIDE);
    cases.forEach(
        (name, function) ->
            lanes.execute(
                () -> {
                  if (passes(service, name, function)) {
                    passed.incrementAndGet();
                  }
                }));
    lanes.shutdown();
    lanes.awaitTermination(1, TimeUnit.DAYS);
    int failed = cases.size() - passed.get();
    System.out.println(passed + " passed, " + failed + " failed");
    System.out.flush();
    Runtime.getRuntime().halt(failed == 0 ? 0 : 1);
  }

  private static WorkflowServiceStubs connect(String address) {
    WorkflowServiceStubsOptions options = Secured.options(address).build();
    try {
      return WorkflowServiceStubs.newConnectedServiceStubs(options, Patience.MOST);
    } catch (RuntimeException e) {
      System.out.println("FAIL java.connect: " + oneLine(e));
      System.out.println("0 passed, 1 failed");
      System.out.flush();
      Runtime.getRuntime().halt(1);
      throw e;
    }
  }

  /** Prints the line of a case and says whether it passed. */
  private static boolean passes(WorkflowServiceStubs service, String name, Case function) {
    long begun = System.nanoTime();
    ExecutorService thread = Executors.newSingleThreadExecutor();
    String queue = "java-" + name + "-" + UUID.randomUUID();
    try (World world = new World(WorkflowClient.newInstance(service), queue)) {
      Future<?> done =
          thread.submit(
              () -> {
                function.run(world);
                world.closeAndReplay();
                return null;
              });
      done.get(2 * Patience.MOST.toSeconds(), TimeUnit.SECONDS);
      double seconds = (System.nanoTime() - begun) / 1e9;
      System.out.println(String.format(Locale.ROOT, "ok java.%s (%.1f s)", name, seconds));
      return true;
    } catch (TimeoutException e) {
      System.out.println("FAIL java." + name + ": not done in time");
    } catch (Exception e) {
      System.out.println("FAIL java." + name + ": " + oneLine(e.getCause() == null ? e : e.getCause()));
    } finally {
      thread.shutdownNow();
    }
    return false;
  }

  /** An error and its causes. */
  private static String oneLine(Throwable error) {
    String words = error.getCause() == null ? error.toString() : error + ": " + oneLine(error.getCause());
    return words.replaceAll("\\s+", " ");
  }
}
