package programs;

import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.temporal.api.common.v1.WorkflowExecution;
import io.temporal.api.workflowservice.v1.DeleteWorkflowExecutionRequest;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowNotFoundException;
import io.temporal.client.WorkflowStub;
import java.util.List;
import java.util.concurrent.Callable;
import programs.Registers.Register;

/** Runs that are deleted, closed and open. */
public final class Deletions {
  private Deletions() {}

  private static Object delete(World w, WorkflowExecution run) {
    DeleteWorkflowExecutionRequest request =
        DeleteWorkflowExecutionRequest.newBuilder().setNamespace(w.namespace()).setWorkflowExecution(run).build();
    return w.service().deleteWorkflowExecution(request);
  }

  private static void isUnknown(World w, Callable<?> call, String what) {
    Exception error = w.fails(Exception.class, call, what);
    w.that(isNotFound(error), what, error);
  }

  /** Whether there is no such run: not all calls say so by an exception of their own. */
  private static boolean isNotFound(Exception error) {
    return error instanceof WorkflowNotFoundException
        || error instanceof StatusRuntimeException refusal && refusal.getStatus().getCode() == Status.Code.NOT_FOUND;
  }

  private static boolean isGone(WorkflowStub run) {
    try {
      run.describe();
      return false;
    } catch (WorkflowNotFoundException e) {
      return true;
    }
  }

  /** Returns once nobody knows a run any more, whatever they ask. */
  private static void untilGone(World w, WorkflowExecution execution) throws Exception {
    WorkflowStub run = w.run(execution.getWorkflowId(), execution.getRunId());
    w.until(() -> isGone(run));
    isUnknown(w, () -> w.events(execution), "its history");
    isUnknown(w, () -> run.query("values", List.class), "a query");
    isUnknown(w, () -> run.getResult(List.class), "its result");
    isUnknown(w, () -> delete(w, execution), "another deletion");
  }

  static void areForgotten(World w) throws Exception {
    w.serve();
    // Not remembered by the case: there is no history to replay afterwards.
    Register first = w.stub(Register.class);
    WorkflowExecution closed = WorkflowClient.start(first::run);
    first.put(1);
    first.put(0);
    w.run(closed.getWorkflowId(), closed.getRunId()).getResult(List.class);
    Register next = w.stub(Register.class, it -> it.setWorkflowId(closed.getWorkflowId()));
    WorkflowStub nextRun = w.remember(WorkflowClient.start(next::run));
    Register second = w.stub(Register.class);
    WorkflowExecution open = WorkflowClient.start(second::run);
    second.put(1);
    w.equal(second.values(), List.of(1), "the open one");

    delete(w, closed);
    delete(w, World.execution(open.getWorkflowId(), ""));
    untilGone(w, closed);
    untilGone(w, open);
    // This SDK signals the latest run of an id.
    Callable<?> signal =
        () -> {
          second.put(2);
          return null;
        };
    isUnknown(w, signal, "a signal");
    isUnknown(w, () -> delete(w, World.execution(w.id(), "")), "a deletion of what never was");
    next.put(2);
    w.equal(next.values(), List.of(2), "the next run of an id goes on");
    next.put(0);
    nextRun.getResult(List.class);
    Register again = w.stub(Register.class, it -> it.setWorkflowId(open.getWorkflowId()));
    w.remember(WorkflowClient.start(again::run));
    w.equal(again.values(), List.of(), "values of a run that takes an id again");
  }
}
