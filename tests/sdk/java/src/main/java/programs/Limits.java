package programs;

import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.temporal.activity.ActivityOptions;
import io.temporal.api.common.v1.WorkflowExecution;
import io.temporal.api.enums.v1.UpdateWorkflowExecutionLifecycleStage;
import io.temporal.api.history.v1.HistoryEvent;
import io.temporal.api.update.v1.Input;
import io.temporal.api.update.v1.Meta;
import io.temporal.api.update.v1.Request;
import io.temporal.api.update.v1.WaitPolicy;
import io.temporal.api.workflowservice.v1.UpdateWorkflowExecutionRequest;
import io.temporal.client.UpdateOptions;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowServiceException;
import io.temporal.client.WorkflowStub;
import io.temporal.client.WorkflowUpdateHandle;
import io.temporal.client.WorkflowUpdateStage;
import io.temporal.failure.ServerFailure;
import io.temporal.failure.TerminatedFailure;
import io.temporal.workflow.SignalMethod;
import io.temporal.workflow.UpdateMethod;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import programs.Codecs.Echoed;
import programs.Registers.Register;

/** Limits, as a client and a worker meet them. */
public final class Limits {
  /** More than a payload may hold. */
  static final String TOO_MUCH = "much".repeat(600_000);

  private Limits() {}

  private static Activities activities() {
    ActivityOptions options = ActivityOptions.newBuilder().setStartToCloseTimeout(Duration.ofSeconds(10)).build();
    return Workflow.newActivityStub(Activities.class, options);
  }

  /** Is too much in a place of its own, for a server to find. */
  @WorkflowInterface
  public interface Excess {
    @WorkflowMethod
    String run(String place);
  }

  public static final class ExcessImpl implements Excess {
    @Override
    public String run(String place) {
      return switch (place) {
        case "input of an activity" -> activities().echo(TOO_MUCH);
        case "result of an activity" -> activities().swell();
        default -> TOO_MUCH;
      };
    }
  }

  /** Lets nobody pass before it is told to, and ends when it is told so again. */
  @WorkflowInterface
  public interface Turnstile {
    @WorkflowMethod
    int run();

    @UpdateMethod
    int pass();

    @SignalMethod
    void end();
  }

  public static final class TurnstileImpl implements Turnstile {
    private int passed;
    private int told;

    @Override
    public int run() {
      Workflow.await(() -> told == 2);
      return passed;
    }

    @Override
    public int pass() {
      Workflow.await(() -> told > 0);
      return ++passed;
    }

    @Override
    public void end() {
      told++;
    }
  }

  private static void isRefused(World w, String what, Callable<?> call) {
    WorkflowServiceException refused = w.fails(WorkflowServiceException.class, call, what + " is refused");
    w.that(
        refused.getCause() instanceof StatusRuntimeException cause
            && cause.getStatus().getCode() == Status.Code.INVALID_ARGUMENT,
        "how " + what + " is refused",
        refused.getCause());
  }

  static void refuseWhatIsTooLarge(World w) {
    Register register = w.stub(Register.class);
    WorkflowStub run = w.remember(WorkflowClient.start(register::run));
    isRefused(w, "a start", () -> WorkflowClient.start(w.stub(Echoed.class)::run, TOO_MUCH));
    Echoed noted = w.stub(Echoed.class, it -> it.setMemo(Map.of("note", TOO_MUCH)));
    isRefused(w, "a memo", () -> WorkflowClient.start(noted::run, ""));
    WorkflowStub both = WorkflowStub.fromTyped(w.stub(Register.class));
    isRefused(w, "a start with a signal", () -> both.signalWithStart("put", new Object[] {TOO_MUCH}, new Object[0]));
    Callable<?> signal =
        () -> {
          run.signal("put", TOO_MUCH);
          return null;
        };
    isRefused(w, "a signal", signal);
    w.equal(w.events(run.getExecution()).size(), 2, "events: nothing was written");
    w.serve();
    register.put(0);
    run.getResult(List.class);
  }

  /** This SDK's workers do not look at the limits of a namespace. */
  static void holdThatNoWorkerHeeds(World w) {
    w.serve();
    Throwable failed = w.failure(w.remember(WorkflowClient.start(w.stub(Excess.class)::run, "result of an activity")));
    w.that(
        failed.getCause() instanceof ServerFailure why
            && why.getOriginalMessage().equals("Complete result exceeds size limit."),
        "the activity fails",
        failed);
    Map<String, String> reasons =
        Map.of(
            "input of an activity",
            "ScheduleActivityTaskCommandAttributes.Input exceeds size limit.",
            "result of a workflow",
            "CompleteWorkflowExecutionCommandAttributes.Result exceeds size limit.");
    reasons.forEach(
        (place, reason) -> {
          WorkflowStub run = w.remember(WorkflowClient.start(w.stub(Excess.class)::run, place));
          w.that(w.failure(run) instanceof TerminatedFailure, "the run is ended by an " + place);
          List<HistoryEvent> events = w.events(run.getExecution());
          HistoryEvent last = events.get(events.size() - 1);
          String why = last.getWorkflowExecutionTerminatedEventAttributes().getReason();
          w.that(why.endsWith(reason), "why", why);
        });
  }

  static void boundUpdatesInFlight(World w) {
    w.serve();
    Turnstile turnstile = w.stub(Turnstile.class);
    WorkflowStub run = w.remember(WorkflowClient.start(turnstile::run));
    UpdateOptions<Integer> pass =
        UpdateOptions.newBuilder(Integer.class)
            .setUpdateName("pass")
            .setWaitForStage(WorkflowUpdateStage.ACCEPTED)
            .build();
    List<WorkflowUpdateHandle<Integer>> handles = new ArrayList<>();
    for (int n = 0; n < 10; n++) {
      handles.add(run.startUpdate(pass));
    }
    // The client itself would try again and again.
    UpdateWorkflowExecutionRequest another =
        UpdateWorkflowExecutionRequest.newBuilder()
            .setNamespace(w.namespace())
            .setWorkflowExecution(
                WorkflowExecution.newBuilder().setWorkflowId(run.getExecution().getWorkflowId()))
            .setWaitPolicy(
                WaitPolicy.newBuilder()
                    .setLifecycleStage(
                        UpdateWorkflowExecutionLifecycleStage.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED))
            .setRequest(
                Request.newBuilder()
                    .setMeta(Meta.newBuilder().setUpdateId("one too many"))
                    .setInput(Input.newBuilder().setName("pass")))
            .build();
    StatusRuntimeException refused =
        w.fails(
            StatusRuntimeException.class,
            () -> w.service().updateWorkflowExecution(another),
            "one too many is refused");
    w.equal(refused.getStatus().getCode(), Status.Code.RESOURCE_EXHAUSTED, "how it is refused");
    turnstile.end();
    for (int n = 0; n < 10; n++) {
      w.equal(handles.get(n).getResult(), n + 1, "they pass in order");
    }
    w.equal(turnstile.pass(), 11, "then another passes too");
    turnstile.end();
    w.equal(run.getResult(Integer.class), 11, "who has passed");
  }
}
