package programs;

import static programs.Activities.seenOf;
import static programs.World.count;

import io.temporal.activity.LocalActivityOptions;
import io.temporal.api.enums.v1.EventType;
import io.temporal.api.history.v1.HistoryEvent;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowStub;
import io.temporal.common.RetryOptions;
import io.temporal.workflow.SignalMethod;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ThreadLocalRandom;

/** What a history keeps so that a replay is what the run was: local activities, versions, side effects. */
public final class Markers {
  private Markers() {}

  /** Calls local activities: one that succeeds at once, one at its third attempt, one whose back-off is a timer. */
  @WorkflowInterface
  public interface Local {
    @WorkflowMethod
    List<Integer> run();
  }

  public static final class LocalImpl implements Local {
    @Override
    public List<Integer> run() {
      List<Integer> attempts = new ArrayList<>();
      for (int attempt : new int[] {1, 3}) {
        attempts.add(calling(20, Duration.ofMinutes(1)).succeedAt("local " + attempt, attempt));
        Workflow.sleep(20);
      }
      attempts.add(calling(400, Duration.ofMillis(100)).succeedAt("patient", 2));
      return attempts;
    }

    private static Activities calling(long everyMs, Duration threshold) {
      // Without a bound this SDK does not try local activities again.
      RetryOptions retry =
          RetryOptions.newBuilder()
              .setInitialInterval(Duration.ofMillis(everyMs))
              .setBackoffCoefficient(1)
              .setMaximumAttempts(5)
              .build();
      LocalActivityOptions options =
          LocalActivityOptions.newBuilder()
              .setStartToCloseTimeout(Duration.ofSeconds(10))
              .setRetryOptions(retry)
              .setLocalRetryThreshold(threshold)
              .build();
      return Workflow.newLocalActivityStub(Activities.class, options);
    }
  }

  /** Takes the path of the version that it was started with. */
  @WorkflowInterface
  public interface Versioned {
    @WorkflowMethod
    List<Integer> run();
  }

  public static final class VersionedImpl implements Versioned {
    @Override
    public List<Integer> run() {
      int before = Workflow.getVersion("the path", Workflow.DEFAULT_VERSION, 3);
      Workflow.sleep(50);
      return List.of(before, Workflow.getVersion("the path", Workflow.DEFAULT_VERSION, 3));
    }
  }

  /** What a workflow drew at random, and what it saw of a value that changes. */
  public static final class Drawn {
    public List<Long> drawn = new ArrayList<>();
    public List<Integer> mutable = new ArrayList<>();
  }

  /** Draws by side effects, with timers in between. */
  @WorkflowInterface
  public interface Draw {
    @WorkflowMethod
    Drawn run();

    @SignalMethod
    void goOn();
  }

  public static final class DrawImpl implements Draw {
    private boolean goesOn;

    @Override
    public Drawn run() {
      String id = Workflow.getInfo().getWorkflowId();
      Activities.see(id, "begun");
      Drawn seen = new Drawn();
      seen.drawn.add(draw(id));
      // The value changes at the third look; a marker is written only when it does.
      for (int look = 0; look < 5; look++) {
        int now = look / 2;
        seen.mutable.add(
            Workflow.mutableSideEffect("level", Integer.class, (before, after) -> !Objects.equals(before, after), () -> now));
        Workflow.sleep(20);
      }
      Workflow.await(() -> goesOn);
      seen.drawn.add(draw(id));
      return seen;
    }

    @Override
    public void goOn() {
      goesOn = true;
    }

    private static long draw(String id) {
      return Workflow.sideEffect(
          Long.class,
          () -> {
            Activities.see(id, "side effect");
            return ThreadLocalRandom.current().nextLong();
          });
    }
  }

  static void localActivitiesAreRetried(World w) {
    w.serve();
    WorkflowStub run = w.remember(WorkflowClient.start(w.stub(Local.class)::run));
    w.equal(run.getResult(List.class), List.of(1, 3, 2), "the attempts that succeeded");
    List<String> attempts = List.of("local 1", "local 3", "local 3", "local 3", "patient", "patient");
    w.equal(seenOf(run.getExecution().getWorkflowId()), attempts, "attempts in all");
    List<HistoryEvent> events = w.events(run.getExecution());
    w.equal(count(events, EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED), 0L, "ordinary activities");
    w.equal(count(events, EventType.EVENT_TYPE_TIMER_FIRED), 3L, "timers, one of them for the back-off");
    // One for each, and one that says that the last of them waits for a timer.
    w.equal(count(events, EventType.EVENT_TYPE_MARKER_RECORDED), 4L, "markers");
  }

  static void versionsStayWhatTheyWere(World w) {
    w.serve();
    WorkflowStub run = w.remember(WorkflowClient.start(w.stub(Versioned.class)::run));
    w.equal(run.getResult(List.class), List.of(3, 3), "the path");
    List<HistoryEvent> events = w.events(run.getExecution());
    w.equal(count(events, EventType.EVENT_TYPE_MARKER_RECORDED), 1L, "markers");
    long upserts = count(events, EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES);
    w.equal(upserts, 1L, "upserts of the change version");
    List<?> versions = run.describe().getSearchAttributes().get("TemporalChangeVersion");
    w.equal(versions, List.of("the path-3"), "the change version");
  }

  static void sideEffectsHappenOnce(World w) throws Exception {
    w.serve();
    Draw draw = w.stub(Draw.class);
    WorkflowStub run = w.remember(WorkflowClient.start(draw::run));
    w.until(() -> count(w.events(run.getExecution()), EventType.EVENT_TYPE_TIMER_FIRED) == 5);
    // Another worker replays the whole history, and must find what was drawn.
    w.close();
    w.serve();
    draw.goOn();
    Drawn drawn = run.getResult(Drawn.class);
    w.that(!drawn.drawn.get(0).equals(drawn.drawn.get(1)), "two draws differ", drawn.drawn);
    w.equal(drawn.mutable, List.of(0, 0, 1, 1, 2), "the value as it changed");
    List<String> seen = seenOf(run.getExecution().getWorkflowId());
    w.equal(Collections.frequency(seen, "side effect"), 2, "draws");
    w.equal(Collections.frequency(seen, "begun"), 2, "it is replayed");
    // Two side effects, and three values of the mutable one.
    w.equal(count(w.events(run.getExecution()), EventType.EVENT_TYPE_MARKER_RECORDED), 5L, "markers");
  }
}
