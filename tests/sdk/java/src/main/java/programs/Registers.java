package programs;

import static programs.World.count;
import static programs.World.startOf;

import com.google.protobuf.util.Durations;
import io.temporal.api.common.v1.WorkflowExecution;
import io.temporal.api.enums.v1.EventType;
import io.temporal.api.enums.v1.QueryRejectCondition;
import io.temporal.api.enums.v1.WorkflowExecutionStatus;
import io.temporal.api.enums.v1.WorkflowIdConflictPolicy;
import io.temporal.api.enums.v1.WorkflowIdReusePolicy;
import io.temporal.api.sdk.v1.WorkflowMetadata;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowClientOptions;
import io.temporal.client.WorkflowExecutionAlreadyStarted;
import io.temporal.client.WorkflowQueryConditionallyRejectedException;
import io.temporal.client.WorkflowQueryException;
import io.temporal.client.WorkflowStub;
import io.temporal.failure.TerminatedFailure;
import io.temporal.workflow.QueryMethod;
import io.temporal.workflow.SignalMethod;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** Ids that are used again, runs that go back to a task, queries. */
public final class Registers {
  private Registers() {}

  /** Keeps the values that it is told, until it is told a zero. */
  @WorkflowInterface
  public interface Register {
    @WorkflowMethod
    List<Integer> run();

    @SignalMethod
    void put(int value);

    @QueryMethod(description = "the values in the order they came")
    List<Integer> values();
  }

  public static class RegisterImpl implements Register {
    private final List<Integer> kept = new ArrayList<>();
    private boolean closed;

    @Override
    public List<Integer> run() {
      Workflow.await(() -> closed);
      return kept;
    }

    @Override
    public void put(int value) {
      if (value == 0) {
        closed = true;
      } else {
        kept.add(value);
      }
    }

    @Override
    public List<Integer> values() {
      return kept;
    }
  }

  static void idsAreUsedAgainAsPoliciesSay(World w) {
    w.serve();
    Duration delay = Duration.ofMillis(500);
    WorkflowStub first = w.remember(WorkflowClient.start(w.stub(Register.class, it -> it.setStartDelay(delay))::run));
    WorkflowExecution execution = first.getExecution();
    String id = execution.getWorkflowId();
    w.equal(startOf(w.events(execution)).getFirstWorkflowTaskBackoff(), Durations.fromMillis(500), "the start is delayed");
    w.fails(
        WorkflowExecutionAlreadyStarted.class,
        () -> WorkflowClient.start(w.stub(Register.class, it -> it.setWorkflowId(id))::run),
        "another start is refused");
    Register same = with(w, id, WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING);
    w.equal(WorkflowClient.start(same::run).getRunId(), execution.getRunId(), "a start that takes what is there");
    Register second = with(w, id, WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING);
    WorkflowStub next = w.remember(WorkflowClient.start(second::run));
    w.that(w.failure(first) instanceof TerminatedFailure, "the one before is terminated");
    second.put(0);
    next.getResult(List.class);
    List<WorkflowIdReusePolicy> refusing =
        List.of(
            WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
            WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY);
    for (WorkflowIdReusePolicy policy : refusing) {
      w.fails(WorkflowExecutionAlreadyStarted.class, () -> again(w, id, policy), policy + " is refused");
    }
    w.remember(again(w, id, WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE));
  }

  private static Register with(World w, String id, WorkflowIdConflictPolicy policy) {
    return w.stub(Register.class, it -> it.setWorkflowId(id).setWorkflowIdConflictPolicy(policy));
  }

  private static WorkflowExecution again(World w, String id, WorkflowIdReusePolicy policy) {
    return WorkflowClient.start(
        w.stub(Register.class, it -> it.setWorkflowId(id).setWorkflowIdReusePolicy(policy))::run);
  }

  static void resetsTakeSignalsAlong(World w) {
    w.serve();
    Register register = w.stub(Register.class);
    WorkflowExecution run = w.remember(WorkflowClient.start(register::run)).getExecution();
    w.equal(register.values(), List.of(), "before the signals");
    for (int value = 3; value <= 5; value++) {
      register.put(value);
    }
    w.equal(register.values(), List.of(3, 4, 5), "before the reset");
    WorkflowStub gone = w.reset(run, 4);
    WorkflowExecution again = gone.getExecution();
    Register latest = w.client.newWorkflowStub(Register.class, run.getWorkflowId());
    w.equal(latest.values(), List.of(3, 4, 5), "after the reset");
    latest.put(6);
    latest.put(0);
    w.equal(gone.getResult(List.class), List.of(3, 4, 5, 6), "the values of the run that was reset");
    w.equal(count(w.events(again), EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED), 1L, "tasks that failed by the reset");
  }

  static void queriesAreRejectedAsTheyAsk(World w) {
    w.serve();
    Register register = w.stub(Register.class);
    WorkflowStub run = w.remember(WorkflowClient.start(register::run));
    register.put(9);
    w.equal(register.values(), List.of(9), "open");
    w.fails(
        WorkflowQueryException.class,
        () -> run.query("no such query", String.class),
        "a query that nobody answers fails");
    WorkflowClientOptions options =
        WorkflowClientOptions.newBuilder()
            .setQueryRejectCondition(QueryRejectCondition.QUERY_REJECT_CONDITION_NOT_OPEN)
            .build();
    Register picky =
        WorkflowClient.newInstance(w.client.getWorkflowServiceStubs(), options)
            .newWorkflowStub(Register.class, run.getExecution().getWorkflowId());
    w.equal(picky.values(), List.of(9), "open, to be rejected when closed");
    register.put(0);
    run.getResult(List.class);
    w.equal(register.values(), List.of(9), "closed");
    WorkflowQueryConditionallyRejectedException rejected =
        w.fails(WorkflowQueryConditionallyRejectedException.class, picky::values, "closed, and rejected");
    WorkflowExecutionStatus completed = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED;
    w.equal(rejected.getWorkflowExecutionStatus(), completed, "why it is rejected");
  }

  static void stacksAndMetadataAreQueried(World w) {
    w.serve();
    Register register = w.stub(Register.class);
    WorkflowStub run = w.remember(WorkflowClient.start(register::run));
    String stack = run.query(WorkflowClient.QUERY_TYPE_STACK_TRACE, String.class);
    w.that(stack.contains("RegisterImpl.run"), "where the workflow waits", stack);
    WorkflowMetadata metadata = run.query(WorkflowClient.QUERY_TYPE_WORKFLOW_METADATA, WorkflowMetadata.class);
    w.equal(metadata.getDefinition().getType(), "Register", "its type");
    boolean isDescribed =
        metadata.getDefinition().getQueryDefinitionsList().stream()
            .anyMatch(it -> it.getName().equals("values") && it.getDescription().equals("the values in the order they came"));
    w.that(isDescribed, "its query", metadata);
    boolean isListed =
        metadata.getDefinition().getSignalDefinitionsList().stream().anyMatch(it -> it.getName().equals("put"));
    w.that(isListed, "its signal", metadata);
  }
}
