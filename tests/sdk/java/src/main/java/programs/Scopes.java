package programs;

import static programs.Activities.seenOf;
import static programs.World.count;

import io.temporal.activity.ActivityOptions;
import io.temporal.api.enums.v1.EventType;
import io.temporal.api.history.v1.HistoryEvent;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowStub;
import io.temporal.failure.CanceledFailure;
import io.temporal.workflow.CancellationScope;
import io.temporal.workflow.Promise;
import io.temporal.workflow.QueryMethod;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** Timers and cancellation scopes. */
public final class Scopes {
  private Scopes() {}

  private static String end(Promise<Void> timer) {
    try {
      timer.get();
      return "fired";
    } catch (CanceledFailure e) {
      return "cancelled";
    }
  }

  /** Timers in the order in which they fire; then what has come of one that is cancelled, and of a condition. */
  @WorkflowInterface
  public interface Timers {
    @WorkflowMethod
    List<String> run();
  }

  public static final class TimersImpl implements Timers {
    private final List<String> order = new ArrayList<>();

    @Override
    public List<String> run() {
      List<Promise<Void>> never = new ArrayList<>();
      CancellationScope scope =
          Workflow.newCancellationScope(() -> never.add(Workflow.newTimer(Duration.ofHours(1))));
      scope.run();
      Promise<Void> all = Promise.allOf(timer("last", 600), timer("first", 100), timer("second", 300));
      Workflow.sleep(1);
      scope.cancel();
      all.get();
      order.add(end(never.get(0)));
      order.add(Workflow.await(Duration.ofMillis(50), () -> false) ? "true" : "timed out");
      return order;
    }

    private Promise<Void> timer(String name, long ms) {
      return Workflow.newTimer(Duration.ofMillis(ms))
          .thenApply(
              fired -> {
                order.add(name);
                return fired;
              });
    }
  }

  /** A scope that is cancelled by itself, and one with the workflow, after which it tidies up. */
  @WorkflowInterface
  public interface Scoped {
    @WorkflowMethod
    void run();

    @QueryMethod
    boolean waiting();
  }

  public static final class ScopedImpl implements Scoped {
    private boolean waiting;

    @Override
    public void run() {
      List<String> ends = new ArrayList<>();
      List<Promise<Void>> timers = new ArrayList<>();
      CancellationScope scope =
          Workflow.newCancellationScope(() -> timers.add(Workflow.newTimer(Duration.ofHours(1))));
      scope.run();
      Workflow.sleep(20);
      scope.cancel();
      ends.add("by itself " + end(timers.get(0)));
      try {
        waiting = true;
        Workflow.sleep(Duration.ofHours(1));
      } catch (CanceledFailure e) {
        ends.add("with the workflow cancelled");
        ActivityOptions options = ActivityOptions.newBuilder().setStartToCloseTimeout(Duration.ofSeconds(20)).build();
        Activities activities = Workflow.newActivityStub(Activities.class, options);
        Workflow.newDetachedCancellationScope(() -> activities.succeedAt(String.join(", ", ends), 1)).run();
        throw e;
      }
    }

    @Override
    public boolean waiting() {
      return waiting;
    }
  }

  static void timersFireInOrder(World w) {
    w.serve();
    WorkflowStub run = w.remember(WorkflowClient.start(w.stub(Timers.class)::run));
    List<String> order = List.of("first", "second", "last", "cancelled", "timed out");
    w.equal(run.getResult(List.class), order, "the order");
    List<HistoryEvent> events = w.events(run.getExecution());
    w.equal(count(events, EventType.EVENT_TYPE_TIMER_STARTED), 6L, "started");
    w.equal(count(events, EventType.EVENT_TYPE_TIMER_FIRED), 5L, "fired");
    w.equal(count(events, EventType.EVENT_TYPE_TIMER_CANCELED), 1L, "cancelled");
  }

  static void areCancelled(World w) throws Exception {
    w.serve();
    Scoped scoped = w.stub(Scoped.class);
    WorkflowStub run = w.remember(WorkflowClient.start(scoped::run));
    w.until(scoped::waiting);
    run.cancel();
    Throwable failure = w.failure(run);
    w.that(failure instanceof CanceledFailure, "it is cancelled", failure);
    List<String> told = List.of("by itself cancelled, with the workflow cancelled");
    w.equal(seenOf(run.getExecution().getWorkflowId()), told, "what was cancelled, told by an activity that was not");
    List<HistoryEvent> events = w.events(run.getExecution());
    w.equal(count(events, EventType.EVENT_TYPE_TIMER_CANCELED), 2L, "timers cancelled");
    w.equal(count(events, EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED), 1L, "activities after the cancellation");
  }
}
