package programs;

import static programs.World.count;

import io.temporal.api.enums.v1.EventType;
import io.temporal.api.enums.v1.WorkflowIdConflictPolicy;
import io.temporal.api.history.v1.HistoryEvent;
import io.temporal.client.UpdateOptions;
import io.temporal.client.WithStartWorkflowOperation;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowNotFoundException;
import io.temporal.client.WorkflowStub;
import io.temporal.client.WorkflowUpdateException;
import io.temporal.client.WorkflowUpdateStage;
import io.temporal.failure.ApplicationFailure;
import io.temporal.workflow.SignalMethod;
import io.temporal.workflow.UpdateMethod;
import io.temporal.workflow.UpdateValidatorMethod;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Updates, once each, also with a start. */
public final class Updates {
  private Updates() {}

  /** Adds what updates bring, until it is told to close. */
  @WorkflowInterface
  public interface Tally {
    @WorkflowMethod
    int run(int sum);

    @UpdateMethod
    int add(int amount);

    @UpdateValidatorMethod(updateName = "add")
    void check(int amount);

    @SignalMethod
    void close();
  }

  public static final class TallyImpl implements Tally {
    private int sum;
    private boolean closed;

    @Override
    public int run(int from) {
      // An update may have been handled before this method runs: add, do not assign.
      sum += from;
      Workflow.await(() -> closed && Workflow.isEveryHandlerFinished());
      return sum;
    }

    @Override
    public int add(int amount) {
      if (amount == 13) {
        throw ApplicationFailure.newFailure("thirteen is never added", "Unlucky");
      }
      sum += amount;
      return sum;
    }

    @Override
    public void check(int amount) {
      if (amount < 0) {
        throw new IllegalArgumentException("it only grows");
      }
    }

    @Override
    public void close() {
      closed = true;
    }
  }

  private static UpdateOptions<Integer> options(String updateId, WorkflowUpdateStage stage) {
    return UpdateOptions.newBuilder(Integer.class)
        .setUpdateName("add")
        .setUpdateId(updateId)
        .setWaitForStage(stage)
        .build();
  }

  static void areValidatedAndAnsweredOnce(World w) throws Exception {
    w.serve();
    Tally tally = w.stub(Tally.class);
    WorkflowStub run = w.remember(WorkflowClient.start(tally::run, 0));
    for (int n = 0; n < 2; n++) {
      int outcome = run.startUpdate(options("first", WorkflowUpdateStage.COMPLETED), 5).getResult();
      w.equal(outcome, 5, "one update, however often it is sent");
    }
    int accepted = run.startUpdate(options("", WorkflowUpdateStage.ACCEPTED), 2).getResultAsync().get();
    w.equal(accepted, 7, "the outcome of an update that was waited for until it was accepted");
    w.fails(WorkflowUpdateException.class, () -> tally.add(-1), "the validator refuses");
    WorkflowUpdateException failed = w.fails(WorkflowUpdateException.class, () -> tally.add(13), "the handler fails");
    w.that(
        failed.getCause() instanceof ApplicationFailure failure && failure.getType().equals("Unlucky"), "why", failed);
    tally.close();
    w.equal(run.getResult(Integer.class), 7, "the sum");
    w.equal(run.getUpdateHandle("first", Integer.class).getResult(), 5, "an outcome after the end");
    w.fails(WorkflowNotFoundException.class, () -> tally.add(1), "an update after the end is refused");
    List<HistoryEvent> events = w.events(run.getExecution());
    w.equal(count(events, EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED), 3L, "accepted in the history");
    w.equal(count(events, EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED), 3L, "completed in the history");
  }

  static void startTheirWorkflow(World w) {
    w.serve();
    String id = w.id();
    Set<String> runs = new HashSet<>();
    for (int sum = 1; sum <= 3; sum++) {
      Tally tally =
          w.stub(
              Tally.class,
              it ->
                  it.setWorkflowId(id)
                      .setWorkflowIdConflictPolicy(WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING));
      int outcome =
          WorkflowClient.executeUpdateWithStart(
              tally::add,
              1,
              UpdateOptions.newBuilder(Integer.class).build(),
              new WithStartWorkflowOperation<>(tally::run, 0));
      w.equal(outcome, sum, "the outcome");
      runs.add(WorkflowStub.fromTyped(tally).getExecution().getRunId());
    }
    runs.forEach(run -> w.remember(World.execution(id, run)));
    w.equal(runs.size(), 1, "one run");
  }
}
