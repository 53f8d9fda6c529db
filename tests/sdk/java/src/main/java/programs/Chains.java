package programs;

import static programs.World.count;
import static programs.World.startOf;
import static programs.World.successor;

import io.temporal.api.common.v1.WorkflowExecution;
import io.temporal.api.enums.v1.ContinueAsNewInitiator;
import io.temporal.api.enums.v1.EventType;
import io.temporal.api.enums.v1.RetryState;
import io.temporal.api.history.v1.HistoryEvent;
import io.temporal.api.history.v1.WorkflowExecutionFailedEventAttributes;
import io.temporal.api.history.v1.WorkflowExecutionStartedEventAttributes;
import io.temporal.client.BatchRequest;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowFailedException;
import io.temporal.client.WorkflowStub;
import io.temporal.common.RetryOptions;
import io.temporal.common.converter.DefaultDataConverter;
import io.temporal.failure.ApplicationFailure;
import io.temporal.failure.CanceledFailure;
import io.temporal.failure.TerminatedFailure;
import io.temporal.failure.TimeoutFailure;
import io.temporal.workflow.SignalMethod;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/** Runs that go on in others, and how they end. */
public final class Chains {
  private Chains() {}

  /** Fails until its third attempt. */
  @WorkflowInterface
  public interface Third {
    @WorkflowMethod
    int run();
  }

  public static final class ThirdImpl implements Third {
    @Override
    public int run() {
      int attempt = Workflow.getInfo().getAttempt();
      if (attempt < 3) {
        throw ApplicationFailure.newFailure("not yet", "Early");
      }
      return attempt;
    }
  }

  /** Counts its runs by the result of the last one. */
  @WorkflowInterface
  public interface Again {
    @WorkflowMethod
    int run();
  }

  public static final class AgainImpl implements Again {
    @Override
    public int run() {
      Integer last = Workflow.getLastCompletionResult(Integer.class);
      return last == null ? 1 : last + 1;
    }
  }

  /** What a ferry carries from run to run. */
  public static final class State {
    public int trips;
    public int passengers;
    public int runs;
  }

  /** Takes trips from signals, goes on in a new run after five of them, and carries its state. */
  @WorkflowInterface
  public interface Ferry {
    @WorkflowMethod
    State run(State carried);

    @SignalMethod
    void trip(int passengers);

    @SignalMethod
    void layUp();
  }

  public static final class FerryImpl implements Ferry {
    private int here;
    private int passengers;
    private boolean laidUp;

    @Override
    public State run(State carried) {
      Workflow.await(() -> laidUp || here >= 5);
      carried.runs++;
      carried.trips += here;
      carried.passengers += passengers;
      if (!laidUp) {
        Workflow.newContinueAsNewStub(Ferry.class).run(carried);
      }
      return carried;
    }

    @Override
    public void trip(int passengers) {
      here++;
      this.passengers += passengers;
    }

    @Override
    public void layUp() {
      laidUp = true;
    }
  }

  private static RetryOptions.Builder threeTimes() {
    return RetryOptions.newBuilder().setInitialInterval(Duration.ofMillis(100)).setMaximumAttempts(3);
  }

  static void workflowsAreRetried(World w) {
    w.serve();
    RetryOptions retried = threeTimes().build();
    WorkflowStub run = w.remember(WorkflowClient.start(w.stub(Third.class, it -> it.setRetryOptions(retried))::run));
    WorkflowExecution first = run.getExecution();
    w.equal(run.getResult(Integer.class), 3, "the attempt that succeeds");
    List<HistoryEvent> events = w.events(first);
    WorkflowExecutionFailedEventAttributes failed =
        events.get(events.size() - 1).getWorkflowExecutionFailedEventAttributes();
    w.equal(failed.getRetryState(), RetryState.RETRY_STATE_IN_PROGRESS, "the first failure is retried");
    WorkflowExecutionStartedEventAttributes started =
        startOf(w.events(World.execution(first.getWorkflowId(), failed.getNewExecutionRunId())));
    w.equal(started.getContinuedExecutionRunId(), first.getRunId(), "the run before");
    w.equal(started.getContinuedFailure().getMessage(), "not yet", "the failure before");
    w.equal(started.getAttempt(), 2, "the attempt");
    RetryOptions never = threeTimes().setDoNotRetry("Early").build();
    WorkflowStub refused = w.remember(WorkflowClient.start(w.stub(Third.class, it -> it.setRetryOptions(never))::run));
    WorkflowFailedException error =
        w.fails(WorkflowFailedException.class, () -> refused.getResult(Integer.class), "what is not to be retried");
    w.equal(error.getRetryState(), RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE, "why it is not");
    w.equal(((ApplicationFailure) error.getCause()).getType(), "Early", "the failure");
  }

  static void runsCarryTheirState(World w) {
    w.serve();
    Ferry ferry = w.stub(Ferry.class);
    WorkflowExecution first = WorkflowClient.start(ferry::run, new State());
    w.remember(first);
    Ferry latest = w.client.newWorkflowStub(Ferry.class, first.getWorkflowId());
    for (int n = 0; n < 30; n++) {
      latest.trip(n);
    }
    latest.layUp();
    State state = w.latest(first.getWorkflowId()).getResult(State.class);
    w.equal(List.of(state.trips, state.passengers), List.of(30, 435), "the state");
    long signals = 0;
    int seen = 0;
    for (String run = first.getRunId(); !run.isEmpty(); seen++) {
      List<HistoryEvent> events = w.events(World.execution(first.getWorkflowId(), run));
      w.equal(startOf(events).getFirstExecutionRunId(), first.getRunId(), "the first run");
      signals += count(events, EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED);
      run = successor(events);
    }
    w.equal(signals, 31L, "signals in the histories");
    w.that(seen == state.runs && seen > 1, "runs", seen, state.runs);
  }

  static void runsAreSignalledWithTheirStart(World w) {
    w.serve();
    String id = w.id();
    Set<String> runs = new HashSet<>();
    for (int n = 0; n < 4; n++) {
      Ferry ferry = w.stub(Ferry.class, it -> it.setWorkflowId(id));
      BatchRequest request = w.client.newSignalWithStartRequest();
      request.add(ferry::run, new State());
      request.add(ferry::trip, 1);
      WorkflowExecution run = w.client.signalWithStart(request);
      w.remember(run);
      runs.add(run.getRunId());
    }
    w.equal(runs.size(), 1, "the runs that were signalled");
    w.latest(id).signal("layUp");
    w.equal(w.latest(id).getResult(State.class).passengers, 4, "every signal once");
  }

  static void cronRunsGoOnFromTheirResults(World w) throws Exception {
    w.serve();
    WorkflowStub run = w.remember(WorkflowClient.start(w.stub(Again.class, it -> it.setCronSchedule("@every 1s"))::run));
    WorkflowExecution first = run.getExecution();
    List<WorkflowExecutionStartedEventAttributes> starts = new ArrayList<>();
    w.until(
        () -> {
          WorkflowStub latest = w.latest(first.getWorkflowId());
          starts.add(startOf(w.events(latest.describe().getExecution())));
          Integer last =
              DefaultDataConverter.STANDARD_INSTANCE.fromPayloads(
                  0,
                  Optional.of(starts.get(starts.size() - 1).getLastCompletionResult()),
                  Integer.class,
                  Integer.class);
          return last != null && last >= 2;
        });
    WorkflowExecutionStartedEventAttributes started = starts.get(starts.size() - 1);
    ContinueAsNewInitiator cron = ContinueAsNewInitiator.CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE;
    w.equal(started.getInitiator(), cron, "who has begun it");
    w.equal(started.getFirstExecutionRunId(), first.getRunId(), "the first run");
    w.equal(started.getCronSchedule(), "@every 1s", "the schedule");
  }

  static void runsAreCancelledAndTimeOut(World w) {
    w.serve();
    Duration second = Duration.ofSeconds(1);
    WorkflowStub cancelled = w.remember(WorkflowClient.start(w.stub(Ferry.class)::run, new State()));
    WorkflowStub expiring =
        w.remember(WorkflowClient.start(w.stub(Ferry.class, it -> it.setWorkflowExecutionTimeout(second))::run, new State()));
    WorkflowStub terminated = w.remember(WorkflowClient.start(w.stub(Ferry.class)::run, new State()));
    cancelled.cancel();
    terminated.terminate("the case wants it");
    w.that(w.failure(cancelled) instanceof CanceledFailure, "it is cancelled", w.failure(cancelled));
    w.that(w.failure(expiring) instanceof TimeoutFailure, "it times out", w.failure(expiring));
    w.that(w.failure(terminated) instanceof TerminatedFailure, "it is terminated", w.failure(terminated));
  }
}
