package programs;

import static programs.Activities.leftOf;
import static programs.World.count;

import io.temporal.activity.ActivityCancellationType;
import io.temporal.activity.ActivityInfo;
import io.temporal.activity.ActivityOptions;
import io.temporal.api.common.v1.WorkflowExecution;
import io.temporal.api.enums.v1.EventType;
import io.temporal.client.ActivityCanceledException;
import io.temporal.client.ActivityCompletionClient;
import io.temporal.client.ActivityCompletionException;
import io.temporal.client.ActivityNotExistsException;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowStub;
import io.temporal.common.RetryOptions;
import io.temporal.failure.ActivityFailure;
import io.temporal.failure.ApplicationFailure;
import io.temporal.failure.CanceledFailure;
import io.temporal.workflow.CancellationScope;
import io.temporal.workflow.SignalMethod;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.function.Predicate;

/** Activities that are completed from outside, by their tokens and by ids. */
public final class Completions {
  private Completions() {}

  /** Calls an activity that is completed from outside, and cancels it when it is told to. */
  @WorkflowInterface
  public interface Outside {
    @WorkflowMethod
    String run(int attempts, Duration timeout);

    @SignalMethod
    void giveUp();
  }

  public static final class OutsideImpl implements Outside {
    private CancellationScope scope;
    private String said;

    @Override
    public String run(int attempts, Duration timeout) {
      RetryOptions retry =
          RetryOptions.newBuilder().setInitialInterval(Duration.ofMillis(50)).setMaximumAttempts(attempts).build();
      ActivityOptions options =
          ActivityOptions.newBuilder()
              .setStartToCloseTimeout(timeout)
              .setRetryOptions(retry)
              .setCancellationType(ActivityCancellationType.WAIT_CANCELLATION_COMPLETED)
              .build();
      Activities activities = Workflow.newActivityStub(Activities.class, options);
      scope = Workflow.newCancellationScope(() -> said = activities.leave());
      try {
        scope.run();
        return said;
      } catch (ActivityFailure e) {
        if (e.getCause() instanceof CanceledFailure cancelled) {
          return cancelled.getDetails().get(String.class);
        }
        throw e;
      }
    }

    @Override
    public void giveUp() {
      scope.cancel();
    }
  }

  private static WorkflowStub leaves(World w, int attempts, Duration timeout) {
    return w.remember(WorkflowClient.start(w.stub(Outside.class)::run, attempts, timeout));
  }

  /** The info of an attempt, once it has come to its activity. */
  private static ActivityInfo left(World w, WorkflowStub run, int attempt) throws Exception {
    String id = run.getExecution().getWorkflowId();
    Predicate<ActivityInfo> is = info -> info.getAttempt() == attempt;
    w.until(() -> leftOf(id).stream().anyMatch(is));
    return leftOf(id).stream().filter(is).findFirst().get();
  }

  private static Callable<?> completion(ActivityCompletionClient outside, byte[] token, String result) {
    return () -> {
      outside.complete(token, result);
      return null;
    };
  }

  static void fromOutside(World w) throws Exception {
    w.serve();
    ActivityCompletionClient outside = w.client.newActivityCompletionClient();
    WorkflowStub byToken = leaves(w, 1, Patience.MOST);
    byte[] token = left(w, byToken, 1).getTaskToken();
    outside.heartbeat(token, "half");
    outside.complete(token, "by token");
    w.equal(byToken.getResult(String.class), "by token", "the result by token");
    w.fails(ActivityNotExistsException.class, completion(outside, token, "twice"), "a second completion is refused");

    WorkflowStub byIds = leaves(w, 1, Patience.MOST);
    WorkflowExecution run = byIds.getExecution();
    String activityId = left(w, byIds, 1).getActivityId();
    outside.heartbeat(run.getWorkflowId(), Optional.of(run.getRunId()), activityId, "half");
    outside.complete(run.getWorkflowId(), Optional.of(run.getRunId()), activityId, "by ids");
    w.equal(byIds.getResult(String.class), "by ids", "the result by ids");

    WorkflowStub failing = leaves(w, 1, Patience.MOST);
    ApplicationFailure failure = ApplicationFailure.newFailure("from outside", "Outside");
    outside.completeExceptionally(left(w, failing, 1).getTaskToken(), failure);
    Throwable failed = w.failure(failing);
    w.that(
        failed.getCause() instanceof ApplicationFailure why && why.getType().equals("Outside"), "the failure", failed);
  }

  static void cancellationsAreHeardOf(World w) throws Exception {
    w.serve();
    ActivityCompletionClient outside = w.client.newActivityCompletionClient();
    WorkflowStub run = leaves(w, 1, Patience.MOST);
    byte[] token = left(w, run, 1).getTaskToken();
    outside.heartbeat(token, null);
    run.signal("giveUp");
    EventType requested = EventType.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED;
    w.until(() -> count(w.events(run.getExecution()), requested) == 1);
    Callable<?> heartbeat =
        () -> {
          outside.heartbeat(token, null);
          return null;
        };
    Throwable told = w.fails(ActivityCompletionException.class, heartbeat, "a heartbeat tells of it");
    w.that(told.getCause() instanceof ActivityCanceledException, "how it tells", told.getCause());
    outside.reportCancellation(token, "gave up");
    w.equal(run.getResult(String.class), "gave up", "what the workflow hears");
  }

  static void lateResultsAreRefused(World w) throws Exception {
    w.serve();
    ActivityCompletionClient outside = w.client.newActivityCompletionClient();
    WorkflowStub run = leaves(w, 0, Duration.ofSeconds(2));
    byte[] first = left(w, run, 1).getTaskToken();
    left(w, run, 2);
    String late = "the result of an attempt whose time is over";
    w.fails(ActivityNotExistsException.class, completion(outside, first, "late"), late);
    boolean isInTime = false;
    // A slow machine may take longer than an attempt has.
    for (int attempt = 2; !isInTime; attempt++) {
      try {
        outside.complete(left(w, run, attempt).getTaskToken(), "in time");
        isInTime = true;
      } catch (ActivityNotExistsException e) {
        // The next one, then.
      }
    }
    w.equal(run.getResult(String.class), "in time", "the result");
  }
}
