package programs;

import io.temporal.api.common.v1.WorkflowExecution;
import io.temporal.api.enums.v1.EventType;
import io.temporal.api.history.v1.History;
import io.temporal.api.history.v1.HistoryEvent;
import io.temporal.api.history.v1.WorkflowExecutionStartedEventAttributes;
import io.temporal.api.operatorservice.v1.OperatorServiceGrpc.OperatorServiceBlockingStub;
import io.temporal.api.workflowservice.v1.ResetWorkflowExecutionRequest;
import io.temporal.api.workflowservice.v1.WorkflowServiceGrpc.WorkflowServiceBlockingStub;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowClientOptions;
import io.temporal.client.WorkflowException;
import io.temporal.client.WorkflowOptions;
import io.temporal.client.WorkflowStub;
import io.temporal.common.WorkflowExecutionHistory;
import io.temporal.common.interceptors.WorkerInterceptor;
import io.temporal.serviceclient.OperatorServiceStubs;
import io.temporal.serviceclient.OperatorServiceStubsOptions;
import io.temporal.testing.ReplayResults;
import io.temporal.testing.WorkflowReplayer;
import io.temporal.worker.Worker;
import io.temporal.worker.WorkerFactory;
import io.temporal.worker.WorkerFactoryOptions;
import io.temporal.worker.WorkerOptions;
import io.temporal.worker.WorkflowImplementationOptions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;

/** What a case works with: a client, a queue of its own, a worker, and what it has started. */
final class World implements AutoCloseable {
  private static final Class<?>[] WORKFLOWS = {
    Attributes.PaintImpl.class,
    Calls.BeatingImpl.class,
    Calls.BusyImpl.class,
    Calls.CancellingImpl.class,
    Calls.ExpiringImpl.class,
    Calls.HopelessImpl.class,
    Calls.PendingImpl.class,
    Calls.RemoteImpl.class,
    Chains.AgainImpl.class,
    Chains.FerryImpl.class,
    Chains.ThirdImpl.class,
    Children.ChildImpl.class,
    Children.LeaverImpl.class,
    Children.ParentImpl.class,
    Children.RelayImpl.class,
    Children.RelayParentImpl.class,
    Children.StrangerImpl.class,
    Codecs.EchoedImpl.class,
    Completions.OutsideImpl.class,
    Dynamics.Anything.class,
    Headers.RelayedImpl.class,
    Limits.ExcessImpl.class,
    Limits.TurnstileImpl.class,
    Markers.DrawImpl.class,
    Markers.LocalImpl.class,
    Markers.VersionedImpl.class,
    Nondeterminism.ChangingImpl.class,
    Queues.BatchImpl.class,
    Registers.RegisterImpl.class,
    Schedules.PlannedImpl.class,
    Scopes.ScopedImpl.class,
    Scopes.TimersImpl.class,
    Updates.TallyImpl.class,
  };

  WorkflowClient client;
  final String queue;
  private final List<WorkflowExecution> runs = new ArrayList<>();
  private WorkerInterceptor[] interceptors = {};
  private WorkerFactory serving;

  /** A claim that does not hold; it ends its case. */
  static final class Unmet extends RuntimeException {
    Unmet(String why) {
      super(why);
    }
  }

  World(WorkflowClient client, String queue) {
    this.client = client;
    this.queue = queue;
  }

  /** The same with a client of its own, on the same connection. */
  World with(UnaryOperator<WorkflowClientOptions.Builder> options) {
    WorkflowClientOptions own = options.apply(WorkflowClientOptions.newBuilder()).build();
    return new World(WorkflowClient.newInstance(client.getWorkflowServiceStubs(), own), queue);
  }

  /** Gives the case a client of its own, on the same connection, and its workers and replays these interceptors. */
  void use(UnaryOperator<WorkflowClientOptions.Builder> options, WorkerInterceptor... interceptors) {
    client = with(options).client;
    this.interceptors = interceptors;
  }

  String namespace() {
    return client.getOptions().getNamespace();
  }

  WorkflowServiceBlockingStub service() {
    return client.getWorkflowServiceStubs().blockingStub();
  }

  OperatorServiceBlockingStub operator() {
    OperatorServiceStubsOptions.Builder stubs =
        OperatorServiceStubsOptions.newBuilder()
            .setChannel(client.getWorkflowServiceStubs().getRawChannel());
    Secured.key().ifPresent(key -> stubs.addApiKey(() -> key));
    OperatorServiceStubsOptions options = stubs.validateAndBuildWithDefaults();
    return OperatorServiceStubs.newServiceStubs(options).blockingStub();
  }

  void that(boolean ok, String what, Object... details) {
    if (!ok) {
      throw new Unmet(what + ": " + Arrays.deepToString(details));
    }
  }

  void equal(Object actual, Object expected, String what) {
    that(Objects.equals(actual, expected), what, "expected", expected, "found", actual);
  }

  /** The exception of this class that the call ends with. */
  <E extends Throwable> E fails(Class<E> kind, Callable<?> call, String what) {
    Throwable thrown = null;
    try {
      call.call();
    } catch (Throwable e) {
      thrown = e;
    }
    that(kind.isInstance(thrown), what, thrown);
    return kind.cast(thrown);
  }

  /** The failure that a run ends with. */
  Throwable failure(WorkflowStub run) {
    return fails(WorkflowException.class, () -> run.getResult(Void.class), "it does not complete").getCause();
  }

  String id() {
    return "java-" + UUID.randomUUID();
  }

  /** Runs a worker with everything registered until the case is over. */
  void serve() {
    serve(options -> options, WORKFLOWS);
  }

  void serve(UnaryOperator<WorkerOptions.Builder> options) {
    serve(options, WORKFLOWS);
  }

  /** Runs a worker with these workflows until it is closed, or the case is over. */
  void serve(UnaryOperator<WorkerOptions.Builder> options, Class<?>... workflows) {
    serving = factory();
    WorkerOptions.Builder eager = WorkerOptions.newBuilder().setMaxHeartbeatThrottleInterval(Duration.ofMillis(100));
    register(serving.newWorker(queue, options.apply(eager).build()), workflows)
        .registerActivitiesImplementations(new Activities.Impl(), new Dynamics.DoAnything());
    serving.start();
  }

  private WorkerFactory factory() {
    WorkerFactoryOptions options = WorkerFactoryOptions.newBuilder().setWorkerInterceptors(interceptors).build();
    return WorkerFactory.newInstance(client, options);
  }

  private static Worker register(Worker worker, Class<?>... workflows) {
    WorkflowImplementationOptions options =
        WorkflowImplementationOptions.newBuilder().setEnableUpsertVersionSearchAttributes(true).build();
    worker.registerWorkflowImplementationTypes(options, workflows);
    return worker;
  }

  <T> T stub(Class<T> workflow) {
    return stub(workflow, options -> options);
  }

  /** A workflow that is not started yet, on the case's queue. */
  <T> T stub(Class<T> workflow, UnaryOperator<WorkflowOptions.Builder> options) {
    WorkflowOptions.Builder own = WorkflowOptions.newBuilder().setWorkflowId(id()).setTaskQueue(queue);
    return client.newWorkflowStub(workflow, options.apply(own).build());
  }

  /** What was started, which will be replayed. */
  synchronized WorkflowStub remember(WorkflowExecution run) {
    runs.add(run);
    return run(run.getWorkflowId(), run.getRunId());
  }

  WorkflowStub run(String workflowId, String runId) {
    return client.newUntypedWorkflowStub(workflowId, Optional.of(runId), Optional.empty());
  }

  WorkflowStub latest(String workflowId) {
    return client.newUntypedWorkflowStub(workflowId);
  }

  /** Sends a run back to the workflow task that ended with this event: the run that goes on instead. */
  WorkflowStub reset(WorkflowExecution run, long taskEnd) {
    ResetWorkflowExecutionRequest request =
        ResetWorkflowExecutionRequest.newBuilder()
            .setNamespace(namespace())
            .setWorkflowExecution(run)
            .setWorkflowTaskFinishEventId(taskEnd)
            .setRequestId(UUID.randomUUID().toString())
            .setReason("the case wants it")
            .build();
    return remember(execution(run.getWorkflowId(), service().resetWorkflowExecution(request).getRunId()));
  }

  /** Looks again and again until it is so; a case has a deadline. */
  void until(Callable<Boolean> isSo) throws Exception {
    while (!isSo.call()) {
      Thread.sleep(50);
    }
  }

  /** The history of a run, in order. */
  List<HistoryEvent> events(WorkflowExecution run) {
    return client.fetchHistory(run.getWorkflowId(), run.getRunId()).getEvents();
  }

  static WorkflowExecution execution(String workflowId, String runId) {
    return WorkflowExecution.newBuilder().setWorkflowId(workflowId).setRunId(runId).build();
  }

  static long count(List<HistoryEvent> events, EventType type) {
    return events.stream().filter(event -> event.getEventType() == type).count();
  }

  /** What the first event says. */
  static WorkflowExecutionStartedEventAttributes startOf(List<HistoryEvent> events) {
    return events.get(0).getWorkflowExecutionStartedEventAttributes();
  }

  /** The run that goes on from this one, however it has ended; or nothing. */
  static String successor(List<HistoryEvent> events) {
    HistoryEvent last = events.get(events.size() - 1);
    return switch (last.getEventType()) {
      case EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW ->
          last.getWorkflowExecutionContinuedAsNewEventAttributes().getNewExecutionRunId();
      case EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED ->
          last.getWorkflowExecutionCompletedEventAttributes().getNewExecutionRunId();
      case EVENT_TYPE_WORKFLOW_EXECUTION_FAILED ->
          last.getWorkflowExecutionFailedEventAttributes().getNewExecutionRunId();
      case EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT ->
          last.getWorkflowExecutionTimedOutEventAttributes().getNewExecutionRunId();
      default -> "";
    };
  }

  /**
   * Ends what is still open and replays each history that the case has made: its runs, what goes on from them, and
   * their children.
   */
  void closeAndReplay() throws Exception {
    Map<String, WorkflowExecutionHistory> histories = new LinkedHashMap<>();
    for (int n = 0; n < runs.size(); n++) {
      WorkflowExecution run = runs.get(n);
      if (histories.containsKey(run.getRunId())) {
        continue;
      }
      try {
        latest(run.getWorkflowId()).terminate("the case is over");
      } catch (WorkflowException e) {
        // It has ended by itself.
      }
      WorkflowExecutionHistory history = client.fetchHistory(run.getWorkflowId(), run.getRunId());
      histories.put(run.getRunId(), asItsWorkersSawIt(history));
      String next = successor(history.getEvents());
      if (!next.isEmpty()) {
        remember(execution(run.getWorkflowId(), next));
      }
      for (HistoryEvent event : history.getEvents()) {
        if (event.hasChildWorkflowExecutionStartedEventAttributes()) {
          remember(event.getChildWorkflowExecutionStartedEventAttributes().getWorkflowExecution());
        }
      }
    }
    List<WorkflowExecutionHistory> begun =
        histories.values().stream()
            .filter(history -> count(history.getEvents(), EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED) > 0)
            .toList();
    that(!begun.isEmpty(), "nothing to replay");
    // It is never started: it serves the replayer alone.
    Worker replaying = register(factory().newWorker(queue), WORKFLOWS);
    ReplayResults results = WorkflowReplayer.replayWorkflowExecutions(begun, false, replaying);
    results.allErrors().forEach(error -> that(false, "the replay of " + error.workflowId, error.exception));
  }

  /** No worker hears of a termination, and this SDK's replayer does not know its event. */
  private static WorkflowExecutionHistory asItsWorkersSawIt(WorkflowExecutionHistory history) {
    List<HistoryEvent> events = history.getEvents();
    if (history.getLastEvent().getEventType() != EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED) {
      return history;
    }
    History before = History.newBuilder().addAllEvents(events.subList(0, events.size() - 1)).build();
    return new WorkflowExecutionHistory(before, history.getWorkflowExecution().getWorkflowId());
  }

  @Override
  public void close() {
    if (serving != null) {
      serving.shutdownNow();
      serving.awaitTermination(Patience.MOST.toSeconds(), TimeUnit.SECONDS);
    }
  }
}
