package programs;

import static programs.Activities.seenOf;

import io.temporal.activity.ActivityOptions;
import io.temporal.api.enums.v1.TaskQueueType;
import io.temporal.api.enums.v1.WorkerStatus;
import io.temporal.api.taskqueue.v1.PollerInfo;
import io.temporal.api.taskqueue.v1.TaskQueue;
import io.temporal.api.worker.v1.WorkerHeartbeat;
import io.temporal.api.worker.v1.WorkerInfo;
import io.temporal.api.workflowservice.v1.DescribeTaskQueueRequest;
import io.temporal.api.workflowservice.v1.ListWorkersRequest;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowStub;
import io.temporal.workflow.Async;
import io.temporal.workflow.Promise;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** Task queues: the rate of one, and the workers of one as they tell of themselves. */
public final class Queues {
  private Queues() {}

  /** Calls that many activities at once. */
  @WorkflowInterface
  public interface Batch {
    @WorkflowMethod
    void run(int count);
  }

  public static final class BatchImpl implements Batch {
    @Override
    public void run(int count) {
      ActivityOptions options = ActivityOptions.newBuilder().setStartToCloseTimeout(Duration.ofSeconds(30)).build();
      Activities activities = Workflow.newActivityStub(Activities.class, options);
      List<Promise<Integer>> calls = new ArrayList<>();
      for (int n = 0; n < count; n++) {
        calls.add(Async.function(activities::succeedAt, "batch", 1));
      }
      Promise.allOf(calls).get();
    }
  }

  static void holdTheirActivitiesBack(World w) {
    w.serve(it -> it.setMaxTaskQueueActivitiesPerSecond(5).setDisableEagerExecution(true));
    long begun = System.nanoTime();
    WorkflowStub run = w.remember(WorkflowClient.start(w.stub(Batch.class)::run, 20));
    run.getResult(Void.class);
    double seconds = (System.nanoTime() - begun) / 1e9;
    w.equal(seenOf(run.getExecution().getWorkflowId()).size(), 20, "activities");
    // What a queue may hand out at once is the server's: a second's worth, and some more where it has parts.
    w.that(seconds > 2.5, "20 activities at 5 a second", seconds);
    DescribeTaskQueueRequest request =
        DescribeTaskQueueRequest.newBuilder()
            .setNamespace(w.namespace())
            .setTaskQueue(TaskQueue.newBuilder().setName(w.queue))
            .setTaskQueueType(TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY)
            .build();
    List<PollerInfo> pollers = w.service().describeTaskQueue(request).getPollersList();
    List<Double> rates = pollers.stream().map(PollerInfo::getRatePerSecond).distinct().toList();
    w.equal(rates, List.of(5.0), "what its pollers say");
  }

  /** What workers have last said of themselves that poll the case's queue. */
  private static List<WorkerHeartbeat> said(World w) {
    ListWorkersRequest request =
        ListWorkersRequest.newBuilder()
            .setNamespace(w.namespace())
            .setQuery("TaskQueue = '" + w.queue + "'")
            .build();
    return w.service().listWorkers(request).getWorkersInfoList().stream().map(WorkerInfo::getWorkerHeartbeat).toList();
  }

  static void workersTellOfThemselves(World w) throws Exception {
    try (World telling = w.with(it -> it.setWorkerHeartbeatInterval(Duration.ofSeconds(1)))) {
      telling.serve();
      w.until(() -> !said(w).isEmpty());
      WorkerHeartbeat first = said(w).get(0);
      w.equal(List.of(first.getSdkName(), first.getTaskQueue()), List.of("temporal-java", w.queue), "who it is");
      w.equal(first.getStatus(), WorkerStatus.WORKER_STATUS_RUNNING, "how it is");
      w.remember(WorkflowClient.start(w.stub(Batch.class)::run, 3)).getResult(Void.class);
      // It tells again and again.
      w.until(() -> said(w).get(0).getActivityTaskSlotsInfo().getTotalProcessedTasks() == 3);
      telling.close();
      w.until(() -> said(w).get(0).getStatus() == WorkerStatus.WORKER_STATUS_SHUTTING_DOWN);
      List<String> keys = said(w).stream().map(WorkerHeartbeat::getWorkerInstanceKey).toList();
      w.equal(keys, List.of(first.getWorkerInstanceKey()), "it is still the same");
    }
  }
}
