package programs;

import static programs.World.count;

import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.temporal.activity.ActivityOptions;
import io.temporal.api.enums.v1.EventType;
import io.temporal.api.enums.v1.WorkflowTaskFailedCause;
import io.temporal.api.history.v1.HistoryEvent;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowQueryException;
import io.temporal.client.WorkflowStub;
import io.temporal.workflow.SignalMethod;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.time.Duration;
import java.util.List;

/** Code that does not fit a run's history: the task fails, the run waits, and goes on with mended code. */
public final class Nondeterminism {
  private Nondeterminism() {}

  /** Calls an activity, and waits until it is told to finish. */
  @WorkflowInterface
  public interface Changing {
    @WorkflowMethod
    int run();

    @SignalMethod
    void finish();
  }

  public static class ChangingImpl implements Changing {
    private boolean told;

    @Override
    public int run() {
      ActivityOptions options = ActivityOptions.newBuilder().setStartToCloseTimeout(Duration.ofSeconds(10)).build();
      int attempt = Workflow.newActivityStub(Activities.class, options).succeedAt("acted", 1);
      Workflow.await(() -> told);
      return attempt;
    }

    @Override
    public void finish() {
      told = true;
    }
  }

  /** Sleeps where the histories have an activity. */
  public static final class ChangedImpl extends ChangingImpl {
    @Override
    public int run() {
      Workflow.sleep(Duration.ofSeconds(1));
      return super.run();
    }
  }

  /** Fails with an exception that is not meant for the workflow. */
  public static final class BrokenImpl extends ChangingImpl {
    @Override
    public int run() {
      super.run();
      throw new IllegalStateException("a bug");
    }
  }

  static void ofChangedCode(World w) throws Exception {
    failsItsTask(w, ChangedImpl.class, WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR);
  }

  static void ofBrokenCode(World w) throws Exception {
    WorkflowTaskFailedCause cause =
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE;
    failsItsTask(w, BrokenImpl.class, cause);
  }

  /**
   * Has a run go on with this code, which fails its task, and at last with what it was. Where a task took longer than it may,
   * another run has twice as long.
   */
  private static void failsItsTask(World w, Class<?> bad, WorkflowTaskFailedCause cause) throws Exception {
    for (int seconds = 2; !failsItsTaskWithin(w, seconds, bad, cause); ) {
      seconds *= 2;
    }
  }

  private static boolean failsItsTaskWithin(World w, int seconds, Class<?> bad, WorkflowTaskFailedCause cause)
      throws Exception {
    w.serve();
    Changing changing = w.stub(Changing.class, it -> it.setWorkflowTaskTimeout(Duration.ofSeconds(seconds)));
    WorkflowStub run = w.remember(WorkflowClient.start(changing::run));
    w.until(() -> count(w.events(run.getExecution()), EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED) == 2);
    w.close();

    w.serve(it -> it, bad);
    changing.finish();
    w.until(() -> run.describe().getRawDescription().getPendingWorkflowTask().getAttempt() >= 3);
    List<HistoryEvent> events = w.events(run.getExecution());
    if (count(events, EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT) > 0) {
      w.close();
      return false;
    }
    List<WorkflowTaskFailedCause> causes =
        events.stream()
            .filter(HistoryEvent::hasWorkflowTaskFailedEventAttributes)
            .map(event -> event.getWorkflowTaskFailedEventAttributes().getCause())
            .toList();
    w.equal(causes, List.of(cause), "the causes: further attempts leave no event");
    WorkflowQueryException refused =
        w.fails(
            WorkflowQueryException.class,
            () -> run.query(WorkflowClient.QUERY_TYPE_STACK_TRACE, String.class),
            "a query meanwhile is refused");
    Status status = ((StatusRuntimeException) refused.getCause()).getStatus();
    w.equal(status.getCode(), Status.Code.FAILED_PRECONDITION, "how it is refused");
    w.close();

    w.serve();
    w.equal(run.getResult(Integer.class), 1, "the result of mended code");
    w.close();
    return true;
  }
}
