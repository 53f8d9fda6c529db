package programs;

import io.temporal.activity.Activity;
import io.temporal.activity.ActivityExecutionContext;
import io.temporal.activity.ActivityInfo;
import io.temporal.activity.ActivityInterface;
import io.temporal.client.ActivityCanceledException;
import io.temporal.client.ActivityCompletionException;
import io.temporal.failure.ApplicationFailure;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;

/** The activities, and what was seen of them: workflows' activities and cases live in one process. */
@ActivityInterface
public interface Activities {
  /** Fails until this attempt. */
  int succeedAt(String name, int attempt);

  /** Takes longer than anybody waits for it. */
  void hang();

  /** One step for each attempt; the steps of those before come from the details of their heartbeats. */
  List<Integer> climb(int steps);

  /** Gets half the way. */
  void stumble();

  /** Answers with more than a payload may hold. */
  String swell();

  /** Heartbeats until it is cancelled. */
  void linger(String name);

  /** Leaves its completion to somebody outside. */
  String leave();

  /** Answers what it is told. */
  String echo(String text);

  /** What was seen, by workflow id. */
  Map<String, List<String>> SEEN = new ConcurrentHashMap<>();

  static void see(String workflowId, String name) {
    SEEN.computeIfAbsent(workflowId, id -> new CopyOnWriteArrayList<>()).add(name);
  }

  /** What activities of a workflow have called themselves, in order. */
  static List<String> seenOf(String workflowId) {
    return SEEN.getOrDefault(workflowId, List.of());
  }

  /** The attempts that were left to be completed from outside, by workflow id. */
  Map<String, List<ActivityInfo>> LEFT = new ConcurrentHashMap<>();

  static List<ActivityInfo> leftOf(String workflowId) {
    return LEFT.getOrDefault(workflowId, List.of());
  }

  final class Impl implements Activities {
    private static void see(String name) {
      Activities.see(Activity.getExecutionContext().getInfo().getWorkflowId(), name);
    }

    private static void sleep(long ms) {
      try {
        Thread.sleep(ms);
      } catch (InterruptedException e) {
        throw Activity.wrap(e);
      }
    }

    @Override
    public int succeedAt(String name, int attempt) {
      see(name);
      int now = Activity.getExecutionContext().getInfo().getAttempt();
      if (now < attempt) {
        throw ApplicationFailure.newFailure("not yet", "Early");
      }
      return now;
    }

    @Override
    public void hang() {
      see("hang");
      sleep(Duration.ofHours(10).toMillis());
    }

    @Override
    @SuppressWarnings("unchecked")
    public List<Integer> climb(int steps) {
      ActivityExecutionContext context = Activity.getExecutionContext();
      List<Integer> climbed = new ArrayList<>(context.getHeartbeatDetails(List.class).orElse(List.of()));
      climbed.add(context.getInfo().getAttempt());
      context.heartbeat(climbed);
      if (climbed.size() < steps) {
        throw new IllegalStateException("out of breath");
      }
      return climbed;
    }

    @Override
    public void stumble() {
      Activity.getExecutionContext().heartbeat("half the way");
      throw ApplicationFailure.newFailure("not yet", "Early");
    }

    @Override
    public String swell() {
      return Limits.TOO_MUCH;
    }

    @Override
    public void linger(String name) {
      see(name);
      try {
        while (true) {
          Activity.getExecutionContext().heartbeat(name);
          sleep(50);
        }
      } catch (ActivityCanceledException e) {
        see(name + " cancelled");
        throw e;
      } catch (ActivityCompletionException e) {
        // Its workflow is gone.
        throw e;
      }
    }

    @Override
    public String leave() {
      ActivityExecutionContext context = Activity.getExecutionContext();
      context.doNotCompleteOnReturn();
      String workflowId = context.getInfo().getWorkflowId();
      LEFT.computeIfAbsent(workflowId, id -> new CopyOnWriteArrayList<>()).add(context.getInfo());
      return null;
    }

    @Override
    public String echo(String text) {
      return text;
    }
  }
}
