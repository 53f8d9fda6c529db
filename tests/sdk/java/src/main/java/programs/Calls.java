package programs;

import static programs.Activities.seenOf;
import static programs.World.count;

import com.google.protobuf.util.Durations;
import com.google.protobuf.util.Timestamps;
import io.temporal.activity.ActivityCancellationType;
import io.temporal.activity.ActivityOptions;
import io.temporal.api.common.v1.Payload;
import io.temporal.api.enums.v1.EventType;
import io.temporal.api.enums.v1.ParentClosePolicy;
import io.temporal.api.enums.v1.PendingActivityState;
import io.temporal.api.enums.v1.WorkflowExecutionStatus;
import io.temporal.api.history.v1.ActivityTaskStartedEventAttributes;
import io.temporal.api.history.v1.HistoryEvent;
import io.temporal.api.workflow.v1.PendingActivityInfo;
import io.temporal.api.workflow.v1.PendingChildExecutionInfo;
import io.temporal.api.workflowservice.v1.DescribeWorkflowExecutionResponse;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowExecutionDescription;
import io.temporal.client.WorkflowStub;
import io.temporal.common.RetryOptions;
import io.temporal.common.converter.DefaultDataConverter;
import io.temporal.failure.ActivityFailure;
import io.temporal.failure.ApplicationFailure;
import io.temporal.failure.CanceledFailure;
import io.temporal.failure.TemporalFailure;
import io.temporal.failure.TimeoutFailure;
import io.temporal.workflow.Async;
import io.temporal.workflow.CancellationScope;
import io.temporal.workflow.ChildWorkflowOptions;
import io.temporal.workflow.Promise;
import io.temporal.workflow.SignalMethod;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.UnaryOperator;
import programs.Children.Child;

/** Activities: attempts, timeouts, heartbeats, cancellation; and runs that are described meanwhile. */
public final class Calls {
  private Calls() {}

  private static Activities calling(UnaryOperator<ActivityOptions.Builder> options) {
    ActivityOptions.Builder usual = ActivityOptions.newBuilder().setStartToCloseTimeout(Duration.ofSeconds(100));
    return Workflow.newActivityStub(Activities.class, options.apply(usual).build());
  }

  private static RetryOptions.Builder every(long ms) {
    return RetryOptions.newBuilder().setInitialInterval(Duration.ofMillis(ms));
  }

  private static RetryOptions once() {
    return RetryOptions.newBuilder().setMaximumAttempts(1).build();
  }

  /** Calls an activity that succeeds at its third attempt. */
  @WorkflowInterface
  public interface Remote {
    @WorkflowMethod
    int run();
  }

  public static final class RemoteImpl implements Remote {
    @Override
    public int run() {
      return calling(it -> it.setRetryOptions(every(50).build()).setSummary("an activity of Java")).succeedAt("remote", 3);
    }
  }

  /** Why activities fail that are not tried again. */
  @WorkflowInterface
  public interface Hopeless {
    @WorkflowMethod
    List<String> run();
  }

  public static final class HopelessImpl implements Hopeless {
    @Override
    public List<String> run() {
      List<String> told = new ArrayList<>();
      told.add(why(calling(it -> it.setRetryOptions(every(20).setMaximumAttempts(2).build())), "two"));
      told.add(why(calling(it -> it.setRetryOptions(every(20).setDoNotRetry("Early").build())), "none"));
      return told;
    }

    private static String why(Activities activities, String name) {
      try {
        return "attempt " + activities.succeedAt(name, 3);
      } catch (ActivityFailure e) {
        return ((ApplicationFailure) e.getCause()).getType() + ": " + e.getRetryState();
      }
    }
  }

  /** Meets each of the four timeouts, of so many milliseconds. */
  @WorkflowInterface
  public interface Expiring {
    @WorkflowMethod
    List<String> run(long ms);
  }

  public static final class ExpiringImpl implements Expiring {
    @Override
    public List<String> run(long ms) {
      Duration little = Duration.ofMillis(ms);
      List<Promise<Void>> calls =
          List.of(
              Async.procedure(calling(it -> it.setStartToCloseTimeout(little).setRetryOptions(once()))::hang),
              Async.procedure(
                  calling(it -> it.setScheduleToCloseTimeout(little).setRetryOptions(every(10_000).build()))::hang),
              Async.procedure(calling(it -> it.setHeartbeatTimeout(little).setRetryOptions(once()))::hang),
              Async.procedure(
                  calling(
                          it ->
                              it.setScheduleToStartTimeout(little)
                                  .setTaskQueue("nobody is here")
                                  .setRetryOptions(once()))
                      ::hang));
      return calls.stream().map(ExpiringImpl::kind).toList();
    }

    private static String kind(Promise<Void> call) {
      try {
        call.get();
        return "done";
      } catch (ActivityFailure e) {
        return e.getCause() instanceof TimeoutFailure timeout ? timeout.getTimeoutType().name() : e.toString();
      }
    }
  }

  /** Calls an activity that goes on from the details of its last heartbeat. */
  @WorkflowInterface
  public interface Beating {
    @WorkflowMethod
    List<Integer> run();
  }

  public static final class BeatingImpl implements Beating {
    @Override
    public List<Integer> run() {
      return calling(it -> it.setHeartbeatTimeout(Duration.ofSeconds(60)).setRetryOptions(every(50).build())).climb(3);
    }
  }

  /** Cancels an activity of each kind of cancellation, and tells how it heard of their ends. */
  @WorkflowInterface
  public interface Cancelling {
    @WorkflowMethod
    Map<String, String> run();

    @SignalMethod
    void enough();
  }

  public static final class CancellingImpl implements Cancelling {
    private boolean begun;

    @Override
    public Map<String, String> run() {
      Map<String, Promise<Void>> calls = new LinkedHashMap<>();
      CancellationScope scope =
          Workflow.newCancellationScope(
              () -> {
                calls.put("try", linger("try", ActivityCancellationType.TRY_CANCEL));
                calls.put("wait", linger("wait", ActivityCancellationType.WAIT_CANCELLATION_COMPLETED));
                calls.put("abandon", linger("abandon", ActivityCancellationType.ABANDON));
              });
      scope.run();
      Workflow.await(() -> begun);
      scope.cancel();
      Map<String, String> ends = new TreeMap<>();
      calls.forEach((name, call) -> ends.put(name, end(call)));
      return ends;
    }

    private static Promise<Void> linger(String name, ActivityCancellationType kind) {
      Duration heartbeat = Duration.ofSeconds(60);
      Activities activities =
          calling(it -> it.setHeartbeatTimeout(heartbeat).setCancellationType(kind).setRetryOptions(once()));
      return Async.procedure(activities::linger, name);
    }

    private static String end(Promise<Void> call) {
      try {
        call.get();
        return "completed";
      } catch (ActivityFailure e) {
        return e.getCause() instanceof CanceledFailure ? "cancelled" : e.toString();
      }
    }

    @Override
    public void enough() {
      begun = true;
    }
  }

  /** Waits beside an activity that lingers, so that there is something to describe. */
  @WorkflowInterface
  public interface Busy {
    @WorkflowMethod
    void run();

    @SignalMethod
    void enough();
  }

  public static final class BusyImpl implements Busy {
    private boolean done;

    @Override
    public void run() {
      Async.procedure(calling(it -> it.setRetryOptions(once()))::linger, "busy");
      Workflow.await(() -> done);
    }

    @Override
    public void enough() {
      done = true;
    }
  }

  /** Waits for a child, and for an activity whose second attempt is a long time off, until it is told to give up both. */
  @WorkflowInterface
  public interface Pending {
    @WorkflowMethod
    List<String> run();

    @SignalMethod
    void enough();
  }

  public static final class PendingImpl implements Pending {
    private boolean told;

    @Override
    public List<String> run() {
      ChildWorkflowOptions waiting =
          ChildWorkflowOptions.newBuilder()
              .setWorkflowId(Workflow.getInfo().getWorkflowId() + "-child")
              .setParentClosePolicy(ParentClosePolicy.PARENT_CLOSE_POLICY_ABANDON)
              .build();
      RetryOptions thrice = every(3_600_000).setMaximumAttempts(3).build();
      ActivityCancellationType kind = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED;
      List<Promise<?>> both = new ArrayList<>();
      CancellationScope scope =
          Workflow.newCancellationScope(
              () -> {
                both.add(Async.function(Workflow.newChildWorkflowStub(Child.class, waiting)::run, "wait"));
                both.add(Async.procedure(calling(it -> it.setRetryOptions(thrice).setCancellationType(kind))::stumble));
              });
      scope.run();
      Workflow.await(() -> told);
      scope.cancel();
      return both.stream().map(PendingImpl::end).toList();
    }

    private static String end(Promise<?> work) {
      TemporalFailure failure = (TemporalFailure) work.getFailure();
      return failure.getCause() instanceof CanceledFailure ? "cancelled" : failure.toString();
    }

    @Override
    public void enough() {
      told = true;
    }
  }

  static void areRetried(World w) {
    w.serve();
    WorkflowStub run =
        w.remember(WorkflowClient.start(w.stub(Remote.class, it -> it.setStaticSummary("a workflow of Java"))::run));
    w.equal(run.getResult(Integer.class), 3, "the attempt that succeeded");
    List<HistoryEvent> events = w.events(run.getExecution());
    HistoryEvent scheduled = events.stream().filter(HistoryEvent::hasActivityTaskScheduledEventAttributes).findFirst().get();
    String summary = scheduled.getUserMetadata().getSummary().getData().toStringUtf8();
    w.equal(summary, "\"an activity of Java\"", "the summary");
    HistoryEvent begun = events.stream().filter(HistoryEvent::hasActivityTaskStartedEventAttributes).findFirst().get();
    ActivityTaskStartedEventAttributes started = begun.getActivityTaskStartedEventAttributes();
    w.equal(started.getAttempt(), 3, "the attempt");
    w.equal(started.getLastFailure().getMessage(), "not yet", "the failure before");
    WorkflowStub failing = w.remember(WorkflowClient.start(w.stub(Hopeless.class)::run));
    List<String> why =
        List.of("Early: RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED", "Early: RETRY_STATE_NON_RETRYABLE_FAILURE");
    w.equal(failing.getResult(List.class), why, "why they are not tried again");
    w.equal(seenOf(failing.getExecution().getWorkflowId()), List.of("two", "two", "none"), "attempts");
  }

  static void timeOut(World w) {
    w.serve();
    WorkflowStub run = w.remember(WorkflowClient.start(w.stub(Expiring.class)::run, 300L));
    // A slow machine may take longer to begin an activity than there is until its close: then it gets twice as long.
    for (long ms = 600; run.getResult(List.class).get(1).equals("TIMEOUT_TYPE_SCHEDULE_TO_START"); ms *= 2) {
      run = w.remember(WorkflowClient.start(w.stub(Expiring.class)::run, ms));
    }
    List<String> kinds =
        List.of(
            "TIMEOUT_TYPE_START_TO_CLOSE",
            "TIMEOUT_TYPE_SCHEDULE_TO_CLOSE",
            "TIMEOUT_TYPE_HEARTBEAT",
            "TIMEOUT_TYPE_SCHEDULE_TO_START");
    w.equal(run.getResult(List.class), kinds, "the timeouts");
    long timedOut = count(w.events(run.getExecution()), EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT);
    w.equal(timedOut, 4L, "in the history");
  }

  static void heartbeatsReachTheNextAttempt(World w) {
    w.serve();
    WorkflowStub run = w.remember(WorkflowClient.start(w.stub(Beating.class)::run));
    w.equal(run.getResult(List.class), List.of(1, 2, 3), "each attempt goes on from the one before");
  }

  static void areCancelledInThreeWays(World w) throws Exception {
    w.serve();
    Cancelling cancelling = w.stub(Cancelling.class);
    WorkflowStub run = w.remember(WorkflowClient.start(cancelling::run));
    String id = run.getExecution().getWorkflowId();
    w.until(() -> seenOf(id).size() == 3);
    cancelling.enough();
    Map<String, String> ends = Map.of("try", "cancelled", "wait", "cancelled", "abandon", "cancelled");
    w.equal(run.getResult(Map.class), ends, "what the workflow hears");
    w.that(seenOf(id).contains("wait cancelled"), "it has waited for this one", seenOf(id));
    List<HistoryEvent> events = w.events(run.getExecution());
    w.equal(count(events, EventType.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED), 2L, "those that are told");
    w.that(count(events, EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED) >= 1, "the end that was waited for");
  }

  static void runsAreDescribed(World w) throws Exception {
    w.serve();
    Busy busy =
        w.stub(
            Busy.class,
            it ->
                it.setStaticSummary("a workflow of Java").setStaticDetails("that waits").setMemo(Map.of("of", "the case")));
    WorkflowStub run = w.remember(WorkflowClient.start(busy::run));
    w.until(() -> seenOf(run.getExecution().getWorkflowId()).size() == 1);
    WorkflowExecutionDescription open = run.describe();
    w.equal(open.getStatus(), WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING, "the status");
    w.equal(List.of(open.getWorkflowType(), open.getTaskQueue()), List.of("Busy", w.queue), "the open run");
    List<String> said = List.of(open.getStaticSummary(), open.getStaticDetails(), open.getMemo("of", String.class) + "");
    w.equal(said, List.of("a workflow of Java", "that waits", "the case"), "what it is");
    w.equal(open.getRawDescription().getPendingActivities(0).getActivityType().getName(), "Linger", "its pending activity");
    busy.enough();
    run.getResult(Void.class);
    WorkflowExecutionDescription closed = run.describe();
    w.equal(closed.getStatus(), WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED, "the status at last");
    w.equal(closed.getHistoryLength(), (long) w.events(run.getExecution()).size(), "the length of its history");
    w.that(!closed.getCloseTime().isBefore(closed.getStartTime()), "its times", closed.getStartTime(), closed.getCloseTime());
  }

  static void pendingWorkIsDescribed(World w) throws Exception {
    w.serve();
    Pending stub = w.stub(Pending.class);
    WorkflowStub run = w.remember(WorkflowClient.start(stub::run));
    w.until(
        () -> {
          DescribeWorkflowExecutionResponse now = run.describe().getRawDescription();
          return now.getPendingActivitiesCount() == 1
              && now.getPendingActivities(0).getAttempt() == 2
              && now.getPendingChildrenCount() == 1
              && !now.getPendingChildren(0).getRunId().isEmpty();
        });
    DescribeWorkflowExecutionResponse open = run.describe().getRawDescription();
    PendingActivityInfo activity = open.getPendingActivities(0);
    w.equal(activity.getActivityType().getName(), "Stumble", "the activity");
    w.equal(activity.getState(), PendingActivityState.PENDING_ACTIVITY_STATE_SCHEDULED, "its state");
    w.equal(List.of(activity.getAttempt(), activity.getMaximumAttempts()), List.of(2, 3), "the attempt to come");
    w.equal(activity.getLastFailure().getMessage(), "not yet", "its last failure");
    w.equal(activity.getLastFailure().getApplicationFailureInfo().getType(), "Early", "the type of that");
    w.that(!activity.getLastWorkerIdentity().isEmpty(), "who has had it", activity);
    Payload details = activity.getHeartbeatDetails().getPayloads(0);
    String told = DefaultDataConverter.STANDARD_INSTANCE.fromPayload(details, String.class, String.class);
    w.equal(told, "half the way", "what it last told");
    w.equal(Math.round(Durations.toMillis(activity.getCurrentRetryInterval()) / 1e3), 3600L, "how long it waits");
    com.google.protobuf.Duration waits =
        Timestamps.between(activity.getLastAttemptCompleteTime(), activity.getNextAttemptScheduleTime());
    w.equal(Math.round(Durations.toMillis(waits) / 1e3), 3600L, "from the last attempt to the next");

    PendingChildExecutionInfo child = open.getPendingChildren(0);
    List<String> what = List.of(run.getExecution().getWorkflowId() + "-child", "Child");
    w.equal(List.of(child.getWorkflowId(), child.getWorkflowTypeName()), what, "the child");
    w.equal(child.getParentClosePolicy(), ParentClosePolicy.PARENT_CLOSE_POLICY_ABANDON, "what becomes of it");
    HistoryEvent initiated = w.events(run.getExecution()).get((int) child.getInitiatedId() - 1);
    String initiatedId = initiated.getStartChildWorkflowExecutionInitiatedEventAttributes().getWorkflowId();
    w.equal(initiatedId, child.getWorkflowId(), "the event that it comes from");

    stub.enough();
    w.equal(run.getResult(List.class), List.of("cancelled", "cancelled"), "how both have ended");
    DescribeWorkflowExecutionResponse closed = run.describe().getRawDescription();
    List<Integer> pending = List.of(closed.getPendingActivitiesCount(), closed.getPendingChildrenCount());
    w.equal(pending, List.of(0, 0), "what is pending at last");
    w.that(!closed.hasPendingWorkflowTask(), "no task is pending");
  }
}
