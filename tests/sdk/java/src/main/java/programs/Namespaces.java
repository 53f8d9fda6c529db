package programs;

import static programs.World.count;

import com.google.protobuf.util.Durations;
import io.grpc.StatusRuntimeException;
import io.temporal.api.enums.v1.EventType;
import io.temporal.api.enums.v1.WorkflowExecutionStatus;
import io.temporal.api.errordetails.v1.NamespaceNotFoundFailure;
import io.temporal.api.operatorservice.v1.DeleteNamespaceRequest;
import io.temporal.api.workflowservice.v1.RegisterNamespaceRequest;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowException;
import io.temporal.client.WorkflowStub;
import io.temporal.serviceclient.StatusUtils;
import java.util.List;
import java.util.stream.IntStream;
import programs.Registers.Register;

/** Namespaces: what is in one is nothing to another. */
public final class Namespaces {
  private Namespaces() {}

  /** Makes a namespace: the same in there, once it can be used. */
  private static World within(World w, String namespace) throws Exception {
    RegisterNamespaceRequest request =
        RegisterNamespaceRequest.newBuilder()
            .setNamespace(namespace)
            .setWorkflowExecutionRetentionPeriod(Durations.fromDays(1))
            .build();
    w.service().registerNamespace(request);
    World other = w.with(it -> it.setNamespace(namespace));
    // Of several nodes each has some of these.
    w.until(() -> IntStream.range(0, 20).allMatch(n -> isKnown(other, "nobody-" + n)));
    return other;
  }

  /** Whether there is the namespace of this world, by the answer to somebody who asks for this run, which is not there. */
  private static boolean isKnown(World w, String nobody) {
    WorkflowException refusal = w.fails(WorkflowException.class, w.latest(nobody)::describe, "there is no such run");
    return !StatusUtils.hasFailure((StatusRuntimeException) refusal.getCause(), NamespaceNotFoundFailure.class);
  }

  static void keepEqualNamesApart(World w) throws Exception {
    try (World other = within(w, w.id())) {
      w.serve();
      Register register = w.stub(Register.class);
      WorkflowStub run = w.remember(WorkflowClient.start(register::run));
      String id = run.getExecution().getWorkflowId();
      // Of the same id, and on a queue of the same name.
      Register twins = other.stub(Register.class, it -> it.setWorkflowId(id));
      WorkflowStub twin = other.remember(WorkflowClient.start(twins::run));
      String runId = run.getExecution().getRunId();
      w.that(!runId.equals(twin.getExecution().getRunId()), "two runs", runId);
      register.put(1);
      twins.put(2);
      w.equal(register.values(), List.of(1), "what the one was told");
      register.put(0);
      run.getResult(List.class);
      WorkflowExecutionStatus status = twin.describe().getStatus();
      w.equal(status, WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING, "the other one goes on");
      long started = count(other.events(twin.getExecution()), EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED);
      w.equal(started, 0L, "its tasks that went to a worker of another namespace");
      w.close();

      other.serve();
      twins.put(0);
      w.equal(twin.getResult(List.class), List.of(2), "what the other one was told");
      other.closeAndReplay();
      other.close();

      w.operator().deleteNamespace(DeleteNamespaceRequest.newBuilder().setNamespace(other.namespace()).build());
      w.until(() -> !isKnown(other, "nobody"));
      status = run.describe().getStatus();
      w.equal(status, WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED, "the one is what it was");
    }
  }
}
