package programs;

import static programs.World.count;

import io.temporal.api.common.v1.WorkflowExecution;
import io.temporal.api.enums.v1.EventType;
import io.temporal.api.enums.v1.ParentClosePolicy;
import io.temporal.api.enums.v1.WorkflowExecutionStatus;
import io.temporal.api.history.v1.HistoryEvent;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowExecutionAlreadyStarted;
import io.temporal.client.WorkflowStub;
import io.temporal.failure.ApplicationFailure;
import io.temporal.failure.CanceledFailure;
import io.temporal.failure.ChildWorkflowFailure;
import io.temporal.failure.TerminatedFailure;
import io.temporal.failure.TimeoutFailure;
import io.temporal.workflow.Async;
import io.temporal.workflow.CancelExternalWorkflowException;
import io.temporal.workflow.CancellationScope;
import io.temporal.workflow.ChildWorkflowOptions;
import io.temporal.workflow.Promise;
import io.temporal.workflow.SignalMethod;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Parents and children, and what workflows send to each other. */
public final class Children {
  private Children() {}

  /** Ends as it is told to. */
  @WorkflowInterface
  public interface Child {
    @WorkflowMethod
    String run(String how);

    @SignalMethod
    void end();
  }

  public static final class ChildImpl implements Child {
    private boolean signalled;

    @Override
    public String run(String how) {
      switch (how) {
        case "succeed":
          return "done";
        case "fail":
          throw ApplicationFailure.newFailure("as it was told", "Told");
        default:
          Workflow.await(() -> signalled);
          return "signalled";
      }
    }

    @Override
    public void end() {
      signalled = true;
    }
  }

  private static String nameOf(String name) {
    return Workflow.getInfo().getWorkflowId() + "-" + name;
  }

  private static Child child(String name, ParentClosePolicy policy) {
    ChildWorkflowOptions.Builder options =
        ChildWorkflowOptions.newBuilder().setWorkflowId(nameOf(name)).setParentClosePolicy(policy);
    if (name.equals("expire")) {
      options.setWorkflowRunTimeout(Duration.ofSeconds(1));
    }
    return Workflow.newChildWorkflowStub(Child.class, options.build());
  }

  /** Has a child for each way to end, and tells how it heard of it; one it signals, one it cancels. */
  @WorkflowInterface
  public interface Parent {
    @WorkflowMethod
    Map<String, String> run();
  }

  public static final class ParentImpl implements Parent {
    private final Map<String, Child> children = new HashMap<>();
    private final Map<String, Promise<String>> results = new TreeMap<>();

    @Override
    public Map<String, String> run() {
      for (String name : List.of("succeed", "fail", "signal", "expire", "terminate")) {
        start(name);
      }
      CancellationScope scope = Workflow.newCancellationScope(() -> start("cancel"));
      scope.run();
      Map<String, String> ends = new TreeMap<>();
      children.get("signal").end();
      try {
        Workflow.newExternalWorkflowStub(Child.class, "nobody-" + Workflow.getInfo().getRunId()).end();
      } catch (ApplicationFailure e) {
        ends.put("nobody", e.getType().endsWith("_NOT_FOUND") ? "unknown" : e.getType());
      }
      scope.cancel();
      ChildWorkflowOptions own =
          ChildWorkflowOptions.newBuilder().setWorkflowId(Workflow.getInfo().getWorkflowId()).build();
      ends.put("clash", end(Async.function(Workflow.newChildWorkflowStub(Child.class, own)::run, "succeed")));
      results.forEach((name, result) -> ends.put(name, end(result)));
      return ends;
    }

    private void start(String name) {
      Child child = child(name, ParentClosePolicy.PARENT_CLOSE_POLICY_TERMINATE);
      children.put(name, child);
      results.put(name, Async.function(child::run, name));
      Workflow.getWorkflowExecution(child).get();
    }

    /** A word for how a child has ended. */
    private static String end(Promise<String> result) {
      try {
        result.get();
        return "completed";
      } catch (ChildWorkflowFailure e) {
        Throwable cause = e.getCause();
        if (cause instanceof ApplicationFailure told) {
          return "failed: " + told.getType();
        }
        if (cause instanceof CanceledFailure) {
          return "cancelled";
        }
        if (cause instanceof TerminatedFailure) {
          return "terminated";
        }
        if (cause instanceof TimeoutFailure) {
          return "timed out";
        }
        return cause instanceof WorkflowExecutionAlreadyStarted ? "refused" : e.toString();
      }
    }
  }

  /** Starts a child for each policy and leaves them. */
  @WorkflowInterface
  public interface Leaver {
    @WorkflowMethod
    void run();
  }

  public static final class LeaverImpl implements Leaver {
    @Override
    public void run() {
      Map<String, ParentClosePolicy> policies = new TreeMap<>();
      policies.put("terminated", ParentClosePolicy.PARENT_CLOSE_POLICY_TERMINATE);
      policies.put("cancelled", ParentClosePolicy.PARENT_CLOSE_POLICY_REQUEST_CANCEL);
      policies.put("left", ParentClosePolicy.PARENT_CLOSE_POLICY_ABANDON);
      policies.forEach(
          (name, policy) -> {
            Child child = child(name, policy);
            Async.function(child::run, name);
            Workflow.getWorkflowExecution(child).get();
          });
    }
  }

  /** Goes on in a new run until none are left. */
  @WorkflowInterface
  public interface Relay {
    @WorkflowMethod
    int run(int left, int runs);
  }

  public static final class RelayImpl implements Relay {
    @Override
    public int run(int left, int runs) {
      if (left > 0) {
        Workflow.newContinueAsNewStub(Relay.class).run(left - 1, runs + 1);
      }
      return runs + 1;
    }
  }

  /** Hears of the last run of a child that continues as new. */
  @WorkflowInterface
  public interface RelayParent {
    @WorkflowMethod
    int run();
  }

  public static final class RelayParentImpl implements RelayParent {
    @Override
    public int run() {
      ChildWorkflowOptions options = ChildWorkflowOptions.newBuilder().setWorkflowId(nameOf("relay")).build();
      return Workflow.newChildWorkflowStub(Relay.class, options).run(2, 0);
    }
  }

  /** Signals one stranger and cancels another, and one that is not there. */
  @WorkflowInterface
  public interface Stranger {
    @WorkflowMethod
    List<String> run(String signalled, String cancelled);
  }

  public static final class StrangerImpl implements Stranger {
    @Override
    public List<String> run(String signalled, String cancelled) {
      List<String> said = new ArrayList<>();
      Workflow.newExternalWorkflowStub(Child.class, signalled).end();
      said.add("signal: done");
      Workflow.newUntypedExternalWorkflowStub(cancelled).cancel();
      said.add("cancel: done");
      try {
        Workflow.newUntypedExternalWorkflowStub("nobody-" + Workflow.getInfo().getRunId()).cancel();
      } catch (CancelExternalWorkflowException e) {
        said.add("cancel nobody: refused");
      }
      return said;
    }
  }

  static void parentsHearOfEveryEnd(World w) throws Exception {
    w.serve();
    WorkflowStub run = w.remember(WorkflowClient.start(w.stub(Parent.class)::run));
    // A child by its own id is refused meanwhile; then it hears of the end of the last one.
    w.until(
        () -> count(w.events(run.getExecution()), EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED) == 1);
    w.latest(run.getExecution().getWorkflowId() + "-terminate").terminate("the case wants it");
    Map<String, String> ends =
        Map.of(
            "succeed", "completed",
            "fail", "failed: Told",
            "signal", "completed",
            "cancel", "cancelled",
            "expire", "timed out",
            "terminate", "terminated",
            "nobody", "unknown",
            "clash", "refused");
    w.equal(run.getResult(Map.class), ends, "the ends of the children");
  }

  static void areLeftAsTheirPolicySays(World w) throws Exception {
    w.serve();
    WorkflowStub run = w.remember(WorkflowClient.start(w.stub(Leaver.class)::run));
    run.getResult(Void.class);
    String id = run.getExecution().getWorkflowId();
    WorkflowExecutionStatus terminated = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_TERMINATED;
    w.until(() -> w.latest(id + "-terminated").describe().getStatus() == terminated);
    WorkflowExecutionStatus cancelled = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_CANCELED;
    w.until(() -> w.latest(id + "-cancelled").describe().getStatus() == cancelled);
    WorkflowStub left = w.latest(id + "-left");
    WorkflowExecutionStatus running = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING;
    w.equal(left.describe().getStatus(), running, "the one that was left");
    left.signal("end");
    w.equal(left.getResult(String.class), "signalled", "it goes on by itself");
  }

  static void continueAsNew(World w) {
    w.serve();
    WorkflowStub run = w.remember(WorkflowClient.start(w.stub(RelayParent.class)::run));
    w.equal(run.getResult(Integer.class), 3, "the result of the last run");
    List<HistoryEvent> events = w.events(run.getExecution());
    w.equal(count(events, EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED), 1L, "children");
    w.equal(count(events, EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED), 1L, "ends that it hears of");
    WorkflowStub alone = w.remember(WorkflowClient.start(w.stub(Relay.class)::run, 1, 0));
    w.equal(alone.getResult(Integer.class), 2, "the same without a parent");
    w.that(!World.successor(w.events(alone.getExecution())).isEmpty(), "the first run names the next");
  }

  static void strangersAreSignalledAndCancelled(World w) {
    w.serve();
    WorkflowStub signalled = w.remember(WorkflowClient.start(w.stub(Child.class)::run, "signal"));
    WorkflowStub cancelled = w.remember(WorkflowClient.start(w.stub(Child.class)::run, "cancel"));
    WorkflowExecution one = signalled.getExecution();
    WorkflowExecution other = cancelled.getExecution();
    WorkflowStub run =
        w.remember(WorkflowClient.start(w.stub(Stranger.class)::run, one.getWorkflowId(), other.getWorkflowId()));
    List<String> said = List.of("signal: done", "cancel: done", "cancel nobody: refused");
    w.equal(run.getResult(List.class), said, "what came of it");
    w.equal(signalled.getResult(String.class), "signalled", "the one that is signalled");
    Throwable failure = w.failure(cancelled);
    w.that(failure instanceof CanceledFailure, "the one that is cancelled", failure);
    HistoryEvent asked =
        w.events(other).stream()
            .filter(HistoryEvent::hasWorkflowExecutionCancelRequestedEventAttributes)
            .findFirst()
            .get();
    WorkflowExecution by = asked.getWorkflowExecutionCancelRequestedEventAttributes().getExternalWorkflowExecution();
    w.equal(by.getWorkflowId(), run.getExecution().getWorkflowId(), "who has asked for it");
  }
}
