package programs;

import io.temporal.api.common.v1.WorkflowExecution;
import io.temporal.api.history.v1.HistoryEvent;
import io.temporal.api.workflow.v1.ResetPointInfo;
import io.temporal.api.workflow.v1.WorkflowExecutionInfo;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowStub;
import java.util.List;
import programs.Registers.Register;

/** Builds of workers: where each came in, as a run tells it, and the way back to before a bad one. */
public final class Builds {
  private Builds() {}

  /** A register with a mistake. */
  public static final class DoublingImpl extends Registers.RegisterImpl {
    @Override
    public void put(int value) {
      super.put(2 * value);
    }
  }

  /** Runs a worker of a build, for which this is the register, as long as the function takes. */
  private static void during(World w, String build, Class<?> register, Runnable function) {
    w.serve(it -> it.setBuildId(build), register);
    function.run();
    w.close();
  }

  private static WorkflowExecutionInfo told(WorkflowStub run) {
    return run.describe().getWorkflowExecutionInfo();
  }

  private static List<String> builds(WorkflowExecutionInfo info) {
    return info.getAutoResetPoints().getPointsList().stream().map(ResetPointInfo::getBuildId).toList();
  }

  private static String completer(HistoryEvent event) {
    return event.getWorkflowTaskCompletedEventAttributes().getWorkerVersion().getBuildId();
  }

  static void areToldByTheirRuns(World w) {
    Register register = w.stub(Register.class);
    WorkflowStub run = w.remember(WorkflowClient.start(register::run));
    for (String build : List.of("one", "two")) {
      during(
          w,
          build,
          Registers.RegisterImpl.class,
          () -> {
            for (int value = 1; value <= 2; value++) {
              register.put(value);
              register.values();
            }
          });
    }
    WorkflowExecutionInfo info = told(run);
    w.equal(builds(info), List.of("one", "two"), "the builds, once each");
    w.equal(info.getMostRecentWorkerVersionStamp().getBuildId(), "two", "the latest");
    List<String> attribute = List.of("unversioned", "unversioned:one", "unversioned:two");
    w.equal(run.describe().getSearchAttributes().get("BuildIds"), attribute, "the search attribute");

    List<HistoryEvent> events = w.events(run.getExecution());
    List<String> completers =
        events.stream()
            .filter(HistoryEvent::hasWorkflowTaskCompletedEventAttributes)
            .map(Builds::completer)
            .distinct()
            .toList();
    w.equal(completers, List.of("one", "two"), "who has completed the tasks");
    for (ResetPointInfo point : info.getAutoResetPoints().getPointsList()) {
      w.equal(point.getRunId(), run.getExecution().getRunId(), "the run of a point");
      HistoryEvent task = events.get((int) point.getFirstWorkflowTaskCompletedId() - 1);
      w.equal(completer(task), point.getBuildId(), "the build of the task of a point");
    }
  }

  static void runsGoBackToBeforeABadOne(World w) {
    Register register = w.stub(Register.class);
    WorkflowExecution run = WorkflowClient.start(register::run);
    WorkflowStub stub = w.remember(run);
    during(
        w,
        "good",
        Registers.RegisterImpl.class,
        () -> {
          register.put(1);
          w.equal(register.values(), List.of(1), "by the good one");
        });
    during(
        w,
        "bad",
        DoublingImpl.class,
        () -> {
          register.put(10);
          w.equal(register.values(), List.of(2, 20), "by the bad one");
          register.put(100);
          w.equal(register.values(), List.of(2, 20, 200), "by the bad one, once more");
        });
    WorkflowExecutionInfo info = told(stub);
    w.equal(builds(info), List.of("good", "bad"), "the builds");
    ResetPointInfo bad = info.getAutoResetPoints().getPoints(1);
    w.that(bad.getResettable(), "there was nothing under way", bad);
    during(
        w,
        "mended",
        Registers.RegisterImpl.class,
        () -> {
          WorkflowExecution base = World.execution(run.getWorkflowId(), bad.getRunId());
          WorkflowStub again = w.reset(base, bad.getFirstWorkflowTaskCompletedId());
          Register latest = w.client.newWorkflowStub(Register.class, run.getWorkflowId());
          w.equal(latest.values(), List.of(1, 10, 100), "kept rightly");
          w.equal(builds(told(again)), List.of("good", "mended"), "the builds of the run that was reset");
          latest.put(0);
          w.equal(again.getResult(List.class), List.of(1, 10, 100), "the values");
        });
  }
}
