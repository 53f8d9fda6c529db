package programs;

import static io.temporal.api.enums.v1.ScheduleOverlapPolicy.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL;
import static io.temporal.api.enums.v1.ScheduleOverlapPolicy.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL;
import static io.temporal.api.enums.v1.ScheduleOverlapPolicy.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE;
import static io.temporal.api.enums.v1.ScheduleOverlapPolicy.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER;
import static io.temporal.api.enums.v1.ScheduleOverlapPolicy.SCHEDULE_OVERLAP_POLICY_SKIP;
import static io.temporal.api.enums.v1.ScheduleOverlapPolicy.SCHEDULE_OVERLAP_POLICY_TERMINATE_OTHER;

import io.temporal.api.enums.v1.IndexedValueType;
import io.temporal.api.enums.v1.ScheduleOverlapPolicy;
import io.temporal.api.enums.v1.WorkflowExecutionStatus;
import io.temporal.api.operatorservice.v1.AddSearchAttributesRequest;
import io.temporal.client.WorkflowExecutionDescription;
import io.temporal.client.WorkflowOptions;
import io.temporal.client.schedules.Schedule;
import io.temporal.client.schedules.ScheduleActionExecution;
import io.temporal.client.schedules.ScheduleActionExecutionStartWorkflow;
import io.temporal.client.schedules.ScheduleActionStartWorkflow;
import io.temporal.client.schedules.ScheduleAlreadyRunningException;
import io.temporal.client.schedules.ScheduleBackfill;
import io.temporal.client.schedules.ScheduleCalendarSpec;
import io.temporal.client.schedules.ScheduleClient;
import io.temporal.client.schedules.ScheduleDescription;
import io.temporal.client.schedules.ScheduleException;
import io.temporal.client.schedules.ScheduleHandle;
import io.temporal.client.schedules.ScheduleInfo;
import io.temporal.client.schedules.ScheduleIntervalSpec;
import io.temporal.client.schedules.ScheduleListDescription;
import io.temporal.client.schedules.ScheduleOptions;
import io.temporal.client.schedules.SchedulePolicy;
import io.temporal.client.schedules.ScheduleRange;
import io.temporal.client.schedules.ScheduleSpec;
import io.temporal.client.schedules.ScheduleState;
import io.temporal.client.schedules.ScheduleUpdate;
import io.temporal.common.RetryOptions;
import io.temporal.common.SearchAttributeKey;
import io.temporal.common.SearchAttributes;
import io.temporal.failure.ApplicationFailure;
import io.temporal.workflow.SignalMethod;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;

/** Schedules by their client, and what they start. */
public final class Schedules {
  private static final SearchAttributeKey<String> SEASON = SearchAttributeKey.forKeyword("JavaSeason");
  private static final SearchAttributeKey<String> BY_ID = SearchAttributeKey.forKeyword("TemporalScheduledById");
  private static final Instant BEGIN = Instant.parse("2031-01-01T05:00:00Z");

  /** A Temporal server's lists come late, and the ids of two triggers in one second are the same there. */
  private static final boolean IS_REFERENCE = System.getenv("LISTS_COME_LATE") != null;

  private Schedules() {}

  /** Answers how many runs before it have completed; it fails, or waits until it is told to go on. */
  @WorkflowInterface
  public interface Planned {
    @WorkflowMethod
    int run(String script);

    @SignalMethod
    void goOn();
  }

  public static final class PlannedImpl implements Planned {
    private boolean told;

    @Override
    public int run(String script) {
      if (script.equals("fail")) {
        throw ApplicationFailure.newNonRetryableFailure("out of paper", "Empty");
      }
      if (script.equals("wait")) {
        Workflow.await(() -> told);
      }
      Integer last = Workflow.getLastCompletionResult(Integer.class);
      return (last == null ? 0 : last) + (Workflow.getPreviousRunFailure().isPresent() ? 100 : 1);
    }

    @Override
    public void goOn() {
      told = true;
    }
  }

  /** A case with schedules: what it makes is deleted, and the runs of it are remembered. */
  private static final class Planner implements AutoCloseable {
    final World w;
    final ScheduleClient client;
    private final List<ScheduleHandle> made = new ArrayList<>();

    Planner(World w) {
      this.w = w;
      client = ScheduleClient.newInstance(w.client.getWorkflowServiceStubs());
      w.serve();
    }

    ScheduleActionStartWorkflow action(String script) {
      return action(script, options -> options);
    }

    ScheduleActionStartWorkflow action(String script, UnaryOperator<WorkflowOptions.Builder> options) {
      WorkflowOptions.Builder own = WorkflowOptions.newBuilder().setWorkflowId(w.id()).setTaskQueue(w.queue);
      return ScheduleActionStartWorkflow.newBuilder()
          .setWorkflowType(Planned.class)
          .setOptions(options.apply(own).build())
          .setArguments(script)
          .build();
    }

    /** A schedule that acts when it is told to. */
    Schedule.Builder plan(String script) {
      return Schedule.newBuilder().setAction(action(script)).setSpec(ScheduleSpec.newBuilder().build());
    }

    ScheduleHandle make(Schedule schedule) {
      return make(schedule, ScheduleOptions.newBuilder().build());
    }

    ScheduleHandle make(Schedule schedule, ScheduleOptions options) {
      ScheduleHandle handle = client.createSchedule(w.id(), schedule, options);
      made.add(handle);
      return handle;
    }

    ScheduleHandle trigger(ScheduleHandle handle, ScheduleOverlapPolicy overlap) throws Exception {
      long first = Instant.now().getEpochSecond();
      if (IS_REFERENCE) {
        w.until(() -> Instant.now().getEpochSecond() > first);
      }
      handle.trigger(overlap);
      return handle;
    }

    /** The runs, the oldest first, once there were so many actions, and no more. */
    List<ScheduleActionExecutionStartWorkflow> acted(ScheduleHandle handle, int count) throws Exception {
      w.until(() -> handle.describe().getInfo().getNumActions() >= count);
      ScheduleInfo info = handle.describe().getInfo();
      w.equal(info.getNumActions(), (long) count, "actions");
      return ran(info);
    }

    int result(ScheduleActionExecutionStartWorkflow run) {
      return w.latest(run.getWorkflowId()).getResult(Integer.class);
    }

    void goOn(ScheduleActionExecutionStartWorkflow run) {
      w.latest(run.getWorkflowId()).signal("goOn");
    }

    WorkflowExecutionStatus status(ScheduleActionExecutionStartWorkflow run) {
      return w.latest(run.getWorkflowId()).describe().getStatus();
    }

    /** Registers the search attribute of the cases, and waits until the server knows its name. */
    void attributesAreKnown() throws Exception {
      w.operator()
          .addSearchAttributes(
              AddSearchAttributesRequest.newBuilder()
                  .setNamespace(w.namespace())
                  .putSearchAttributes(SEASON.getName(), IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD)
                  .build());
      w.until(
          () -> {
            try {
              make(plan("count").build(), carrying("any"));
              return true;
            } catch (ScheduleException e) {
              return false;
            }
          });
    }

    /** Claims what is listed; at a Temporal server it becomes so. */
    void lists(String query, int pageSize, List<ScheduleHandle> expected) throws Exception {
      List<String> wanted = expected.stream().map(ScheduleHandle::getId).sorted().toList();
      if (IS_REFERENCE) {
        w.until(() -> listed(query, pageSize).equals(wanted));
      }
      w.equal(listed(query, pageSize), wanted, query);
    }

    private List<String> listed(String query, int pageSize) {
      return client.listSchedules(query, pageSize).map(ScheduleListDescription::getScheduleId).sorted().toList();
    }

    @Override
    public void close() {
      for (ScheduleHandle handle : made) {
        for (ScheduleActionExecutionStartWorkflow run : ran(handle.describe().getInfo())) {
          w.remember(World.execution(run.getWorkflowId(), run.getFirstExecutionRunId()));
        }
        handle.delete();
      }
    }
  }

  private static List<ScheduleActionExecutionStartWorkflow> ran(ScheduleInfo info) {
    return info.getRecentActions().stream().map(each -> started(each.getAction())).toList();
  }

  private static ScheduleActionExecutionStartWorkflow started(ScheduleActionExecution action) {
    return (ScheduleActionExecutionStartWorkflow) action;
  }

  private static ScheduleOptions carrying(String season) {
    SearchAttributes attributes = SearchAttributes.newBuilder().set(SEASON, season).build();
    return ScheduleOptions.newBuilder().setTypedSearchAttributes(attributes).setMemo(Map.of("of", season)).build();
  }

  private static List<ScheduleRange> range(int start, int end) {
    return List.of(new ScheduleRange(start, end, 1));
  }

  private static ScheduleSpec.Builder every(Duration interval) {
    return ScheduleSpec.newBuilder().setIntervals(List.of(new ScheduleIntervalSpec(interval)));
  }

  static void areDescribedAsTheyWereMade(World w) throws Exception {
    try (Planner planner = new Planner(w)) {
      planner.attributesAreKnown();
      ScheduleCalendarSpec calendar =
          ScheduleCalendarSpec.newBuilder()
              .setHour(range(9, 17))
              .setDayOfWeek(range(1, 5))
              .setYear(range(2030, 2040))
              .setComment("in the office")
              .build();
      ScheduleSpec spec =
          ScheduleSpec.newBuilder()
              .setCalendars(List.of(calendar))
              .setIntervals(List.of(new ScheduleIntervalSpec(Duration.ofHours(1), Duration.ofMinutes(5))))
              .setCronExpressions(List.of("0 12 * * MON"))
              .setSkip(List.of(ScheduleCalendarSpec.newBuilder().setHour(range(12, 12)).build()))
              .setStartAt(BEGIN)
              .setEndAt(BEGIN.plus(Duration.ofDays(900)))
              .setJitter(Duration.ofSeconds(80))
              .setTimeZoneName("Europe/Berlin")
              .build();
      SearchAttributes summer = SearchAttributes.newBuilder().set(SEASON, "summer").build();
      ScheduleActionStartWorkflow action =
          planner.action(
              "count",
              options ->
                  options
                      .setWorkflowRunTimeout(Duration.ofHours(2))
                      .setRetryOptions(RetryOptions.newBuilder().setMaximumAttempts(3).build())
                      .setMemo(Map.of("of", "the run"))
                      .setTypedSearchAttributes(summer)
                      .setStaticSummary("a summary")
                      .setStaticDetails("details"));
      SchedulePolicy policy =
          SchedulePolicy.newBuilder()
              .setOverlap(SCHEDULE_OVERLAP_POLICY_BUFFER_ONE)
              .setCatchupWindow(Duration.ofMinutes(5))
              .setPauseOnFailure(true)
              .build();
      ScheduleState state =
          ScheduleState.newBuilder().setNote("not yet").setPaused(true).setLimitedAction(true).setRemainingActions(30).build();
      Schedule schedule = Schedule.newBuilder().setAction(action).setSpec(spec).setPolicy(policy).setState(state).build();
      SearchAttributes winter = SearchAttributes.newBuilder().set(SEASON, "winter").build();
      ScheduleOptions options =
          ScheduleOptions.newBuilder()
              .setTriggerImmediately(true)
              .setMemo(Map.of("of", "the schedule"))
              .setTypedSearchAttributes(winter)
              .build();
      ScheduleHandle handle = planner.make(schedule, options);
      ScheduleDescription told = handle.describe();
      w.equal(told.getInfo().getNumActions(), 1L, "what is triggered with the start is described at once");
      w.equal(told.getInfo().getNextActionTimes().size(), 10, "times to come");
      w.that(told.getInfo().getLastUpdatedAt() == null, "when it was updated", told.getInfo());
      ScheduleSpec found = told.getSchedule().getSpec();
      ScheduleCalendarSpec office = found.getCalendars().get(0);
      ScheduleCalendarSpec noon = found.getCalendars().get(1);
      w.equal(found.getCalendars().size(), 2, "calendars");
      w.equal(List.of(office.getHour(), office.getDayOfWeek(), office.getYear()), List.of(range(9, 17), range(1, 5), range(2030, 2040)), "one");
      w.equal(office.getComment(), "in the office", "its comment");
      w.equal(List.of(noon.getHour(), noon.getDayOfWeek(), noon.getMonth()), List.of(range(12, 12), range(1, 1), range(1, 12)), "what stood in a cron string");
      w.equal(found.getIntervals(), spec.getIntervals(), "intervals");
      w.equal(found.getSkip().get(0).getHour(), range(12, 12), "what is left out");
      w.equal(List.of(found.getStartAt(), found.getEndAt()), List.of(spec.getStartAt(), spec.getEndAt()), "its ends");
      w.equal(List.of(found.getJitter(), found.getTimeZoneName()), List.of(Duration.ofSeconds(80), "Europe/Berlin"), "the rest");
      w.equal(told.getSchedule().getPolicy(), policy, "policies");
      w.equal(told.getSchedule().getState(), state, "its state");
      w.equal(told.getTypedSearchAttributes().get(SEASON), "winter", "search attributes");
      w.equal(told.getMemo("of", String.class), "the schedule", "the memo");
      ScheduleActionStartWorkflow does = (ScheduleActionStartWorkflow) told.getSchedule().getAction();
      w.equal(does.getWorkflowType(), "Planned", "what it starts");
      w.equal(does.getArguments().get(String.class), "count", "with what");
      w.equal(does.getOptions().getWorkflowRunTimeout(), Duration.ofHours(2), "for how long");
      w.equal(does.getOptions().getRetryOptions().getMaximumAttempts(), 3, "how often");
      w.equal(does.getOptions().getTypedSearchAttributes().get(SEASON), "summer", "with search attributes");
      ScheduleActionExecutionStartWorkflow run = planner.acted(handle, 1).get(0);
      w.that(run.getWorkflowId().startsWith(does.getOptions().getWorkflowId() + "-"), "the id of its run", run);
      w.equal(planner.result(run), 1, "its result");
      WorkflowExecutionDescription described = w.latest(run.getWorkflowId()).describe();
      w.equal(described.getTypedSearchAttributes().get(BY_ID), handle.getId(), "who has started it");
      w.equal(described.getTypedSearchAttributes().get(SEASON), "summer", "what it carries");
      w.fails(
          ScheduleAlreadyRunningException.class,
          () -> planner.client.createSchedule(handle.getId(), schedule, ScheduleOptions.newBuilder().build()),
          "a second one");
    }
  }

  static void areUpdatedPausedAndDeleted(World w) throws Exception {
    try (Planner planner = new Planner(w)) {
      planner.attributesAreKnown();
      ScheduleHandle handle = planner.make(planner.plan("wait").build());
      handle.update(given -> null);
      w.that(handle.describe().getInfo().getLastUpdatedAt() == null, "no update");
      ScheduleInfo info = update(handle, it -> it.setSpec(every(Duration.ofHours(1)).setStartAt(BEGIN).build())).getInfo();
      w.equal(info.getNextActionTimes().get(1), BEGIN.plus(Duration.ofHours(1)), "new times");
      w.that(info.getLastUpdatedAt() != null, "when it was updated");
      SchedulePolicy policy =
          SchedulePolicy.newBuilder()
              .setOverlap(SCHEDULE_OVERLAP_POLICY_ALLOW_ALL)
              .setCatchupWindow(Duration.ofSeconds(20))
              .build();
      w.equal(update(handle, it -> it.setPolicy(policy)).getSchedule().getPolicy(), policy, "new policies");
      ScheduleState state =
          ScheduleState.newBuilder().setNote("by and by").setLimitedAction(true).setRemainingActions(3).build();
      ScheduleDescription told = update(handle, it -> it.setState(state));
      w.equal(told.getSchedule().getState(), state, "a new state");
      w.equal(told.getSchedule().getPolicy(), policy, "what the update before has set");
      w.equal(told.getInfo().getNextActionTimes().size(), 3, "no more times than actions");
      update(handle, it -> it.setAction(planner.action("count")));
      planner.trigger(handle, SCHEDULE_OVERLAP_POLICY_SKIP);
      w.equal(planner.result(planner.acted(handle, 1).get(0)), 1, "a run that does not wait");
      for (String season : List.of("spring", "autumn")) {
        SearchAttributes attributes = SearchAttributes.newBuilder().set(SEASON, season).build();
        handle.update(given -> new ScheduleUpdate(given.getDescription().getSchedule(), attributes));
        if (IS_REFERENCE) {
          w.until(() -> season.equals(handle.describe().getTypedSearchAttributes().get(SEASON)));
        }
        w.equal(handle.describe().getTypedSearchAttributes().get(SEASON), season, "search attributes");
      }
      handle.pause();
      w.that(handle.describe().getSchedule().getState().isPaused(), "it is paused");
      handle.pause("too loud");
      w.equal(handle.describe().getSchedule().getState().getNote(), "too loud", "another note");
      handle.unpause("quiet");
      ScheduleState after = handle.describe().getSchedule().getState();
      w.equal(List.of(after.isPaused(), after.getNote()), List.of(false, "quiet"), "it goes on");
      handle.unpause();

      ScheduleHandle gone = planner.client.createSchedule(w.id(), planner.plan("count").build(), ScheduleOptions.newBuilder().build());
      gone.delete();
      List<Runnable> calls =
          List.of(
              gone::describe,
              gone::pause,
              gone::unpause,
              gone::trigger,
              () -> gone.backfill(List.of(new ScheduleBackfill(BEGIN, BEGIN))),
              () -> gone.update(given -> new ScheduleUpdate(given.getDescription().getSchedule())),
              gone::delete);
      for (Runnable call : calls) {
        ScheduleException error = w.fails(ScheduleException.class, () -> { call.run(); return null; }, "one that is deleted");
        w.that(String.valueOf(error.getCause()).contains("NOT_FOUND"), "why", error.getCause());
      }
    }
  }

  private static ScheduleDescription update(ScheduleHandle handle, UnaryOperator<Schedule.Builder> change) {
    handle.update(
        given -> new ScheduleUpdate(change.apply(Schedule.newBuilder(given.getDescription().getSchedule())).build()));
    return handle.describe();
  }

  static void areListed(World w) throws Exception {
    try (Planner planner = new Planner(w)) {
      planner.attributesAreKnown();
      String tag = w.id();
      List<ScheduleHandle> made = new ArrayList<>();
      for (int number = 0; number < 5; number++) {
        ScheduleState state = ScheduleState.newBuilder().setPaused(number % 2 == 0).setNote("note " + number).build();
        Schedule schedule = planner.plan("count").setSpec(every(Duration.ofHours(1)).build()).setState(state).build();
        made.add(planner.make(schedule, carrying(tag)));
      }
      String own = "`JavaSeason` = '" + tag + "'";
      for (int size : new int[] {1, 2, 1000}) {
        planner.lists(own, size, made);
      }
      String paused = own + " AND TemporalSchedulePaused = true";
      planner.lists(paused, 1000, List.of(made.get(0), made.get(2), made.get(4)));
      planner.lists("ScheduleId = '" + made.get(1).getId() + "'", 1000, List.of(made.get(1)));
      made.get(1).pause();
      planner.lists(paused, 1000, List.of(made.get(0), made.get(1), made.get(2), made.get(4)));
      ScheduleListDescription found = planner.client.listSchedules("ScheduleId = '" + made.get(3).getId() + "'", 10).toList().get(0);
      w.equal(found.getSchedule().getState().getNote(), "note 3", "its note");
      w.equal(found.getSchedule().getSpec().getIntervals().get(0).getEvery(), Duration.ofHours(1), "its spec");
      w.equal(found.getMemo("of", String.class), tag, "its memo");
      w.that(found.getInfo().getNextActionTimes().size() >= 5, "times to come", found.getInfo());
      planner.trigger(made.get(3), SCHEDULE_OVERLAP_POLICY_SKIP);
      w.equal(planner.result(planner.acted(made.get(3), 1).get(0)), 1, "its run");
    }
  }

  static void backfillAndAreTriggered(World w) throws Exception {
    Instant start = Instant.parse("2020-01-01T00:00:30Z");
    Instant half = start.plus(Duration.ofMinutes(2));
    ScheduleBackfill first = new ScheduleBackfill(start, half, SCHEDULE_OVERLAP_POLICY_ALLOW_ALL);
    ScheduleBackfill second = new ScheduleBackfill(half, half.plus(Duration.ofMinutes(2)), SCHEDULE_OVERLAP_POLICY_ALLOW_ALL);
    try (Planner planner = new Planner(w)) {
      ScheduleState paused = ScheduleState.newBuilder().setPaused(true).build();
      ScheduleSpec minutes = every(Duration.ofMinutes(1)).build();
      ScheduleOptions backfills = ScheduleOptions.newBuilder().setBackfills(List.of(first, second)).build();
      ScheduleHandle handle = planner.make(planner.plan("count").setSpec(minutes).setState(paused).build(), backfills);
      w.equal(minutesOf(planner.acted(handle, 4)), List.of("01", "02", "03", "04"), "the oldest first");

      ScheduleHandle other = planner.make(planner.plan("count").setSpec(minutes).setState(paused).build());
      other.backfill(List.of(second, first));
      w.equal(minutesOf(planner.acted(other, 4)), List.of("03", "04", "01", "02"), "in the order that is asked for");
      for (int n = 0; n < 5; n++) {
        planner.trigger(other, SCHEDULE_OVERLAP_POLICY_ALLOW_ALL);
      }
      for (ScheduleActionExecutionStartWorkflow run : planner.acted(other, 9)) {
        w.equal(planner.result(run), 1, "none has the result of another");
      }

      ScheduleState twice = ScheduleState.newBuilder().setLimitedAction(true).setRemainingActions(2).build();
      SchedulePolicy policy = SchedulePolicy.newBuilder().setOverlap(SCHEDULE_OVERLAP_POLICY_BUFFER_ALL).build();
      ScheduleSpec seconds = every(Duration.ofSeconds(1)).build();
      Schedule limited = planner.plan("count").setSpec(seconds).setState(twice).setPolicy(policy).build();
      ScheduleHandle soon = planner.make(limited);
      List<ScheduleActionExecutionStartWorkflow> runs = planner.acted(soon, 2);
      w.equal(runs.stream().map(planner::result).toList(), List.of(1, 2), "one after the other, with the last result");
      w.equal(soon.describe().getSchedule().getState().getRemainingActions(), 0L, "none remains");
    }
  }

  /** The minutes in the ids of runs. */
  private static List<String> minutesOf(List<ScheduleActionExecutionStartWorkflow> runs) {
    return runs.stream().map(run -> run.getWorkflowId().replaceAll(".*T00:(\\d\\d):00Z", "$1")).toList();
  }

  static void keepRunsFromOverlapping(World w) throws Exception {
    try (Planner planner = new Planner(w)) {
      ScheduleHandle handle = planner.make(planner.plan("wait").build());
      ScheduleActionExecutionStartWorkflow one =
          planner.acted(planner.trigger(handle, SCHEDULE_OVERLAP_POLICY_SKIP), 1).get(0);
      planner.trigger(handle, SCHEDULE_OVERLAP_POLICY_SKIP);
      w.until(() -> handle.describe().getInfo().getNumActionsSkippedOverlap() == 1);
      w.equal(handle.describe().getInfo().getRunningActions(), List.of(one), "what is running");
      planner.trigger(handle, SCHEDULE_OVERLAP_POLICY_BUFFER_ALL);
      planner.goOn(one);
      ScheduleActionExecutionStartWorkflow two = planner.acted(handle, 2).get(1);
      w.equal(planner.status(one), WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED, "the first");
      planner.trigger(handle, SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER);
      ScheduleActionExecutionStartWorkflow three = planner.acted(handle, 3).get(2);
      w.equal(planner.status(two), WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_CANCELED, "the second");
      planner.trigger(handle, SCHEDULE_OVERLAP_POLICY_TERMINATE_OTHER);
      ScheduleActionExecutionStartWorkflow four = planner.acted(handle, 4).get(3);
      w.equal(planner.status(three), WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_TERMINATED, "the third");
      planner.trigger(handle, SCHEDULE_OVERLAP_POLICY_ALLOW_ALL);
      ScheduleActionExecutionStartWorkflow five = planner.acted(handle, 5).get(4);
      planner.goOn(four);
      planner.goOn(five);
      w.equal(List.of(planner.result(four), planner.result(five)), List.of(2, 1), "what they were handed on");

      SchedulePolicy policy = SchedulePolicy.newBuilder().setPauseOnFailure(true).build();
      ScheduleHandle failing = planner.make(planner.plan("fail").setPolicy(policy).build());
      planner.trigger(failing, SCHEDULE_OVERLAP_POLICY_SKIP);
      w.until(() -> failing.describe().getSchedule().getState().isPaused());
      String note = failing.describe().getSchedule().getState().getNote();
      w.that(note.startsWith("paused due to workflow failure: "), "why it is paused", note);
      update(failing, it -> it.setAction(planner.action("count")));
      planner.trigger(failing, SCHEDULE_OVERLAP_POLICY_SKIP);
      w.equal(planner.result(planner.acted(failing, 2).get(1)), 100, "after a failure");
    }
  }
}
