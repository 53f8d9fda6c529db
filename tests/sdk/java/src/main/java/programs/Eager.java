package programs;

import static programs.Activities.seenOf;
import static programs.World.count;
import static programs.World.startOf;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.temporal.api.enums.v1.EventType;
import io.temporal.api.history.v1.HistoryEvent;
import io.temporal.api.workflowservice.v1.RespondWorkflowTaskCompletedResponse;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowStub;
import io.temporal.serviceclient.WorkflowServiceStubs;
import io.temporal.serviceclient.WorkflowServiceStubsOptions;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import programs.Children.Child;
import programs.Queues.Batch;

/** Starts that bring their first task along, and activities that come with the answer to a task. */
public final class Eager {
  private Eager() {}

  /** Counts the activities that come with the answers to workflow tasks. */
  private static final class Counting implements ClientInterceptor {
    private final AtomicInteger handed = new AtomicInteger();

    @Override
    public <Q, A> ClientCall<Q, A> interceptCall(MethodDescriptor<Q, A> method, CallOptions options, Channel next) {
      return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
        @Override
        public void start(Listener<A> listener, Metadata headers) {
          super.start(
              new SimpleForwardingClientCallListener<>(listener) {
                @Override
                public void onMessage(A answer) {
                  if (answer instanceof RespondWorkflowTaskCompletedResponse completed) {
                    handed.addAndGet(completed.getActivityTasksCount());
                  }
                  super.onMessage(answer);
                }
              },
              headers);
        }
      };
    }
  }

  static void startsBringTheirTaskAlong(World w) {
    WorkflowStub slow = start(w);
    w.serve();
    w.equal(slow.getResult(String.class), "done", "one that nobody was there for");
    WorkflowStub run = start(w);
    w.equal(run.getResult(String.class), "done", "the result");
    w.equal(isEager(w, slow), false, "nobody could take it");
    w.equal(isEager(w, run), true, "the worker has got it with the answer");
    List<HistoryEvent> events = w.events(run.getExecution());
    w.equal(count(events, EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED), 1L, "tasks");
    w.equal(events.size(), 5, "events");
  }

  private static WorkflowStub start(World w) {
    return w.remember(WorkflowClient.start(w.stub(Child.class, it -> it.setDisableEagerExecution(false))::run, "succeed"));
  }

  private static boolean isEager(World w, WorkflowStub run) {
    return startOf(w.events(run.getExecution())).getEagerExecutionAccepted();
  }

  static void activitiesRunOnce(World w) {
    Counting counting = new Counting();
    WorkflowServiceStubsOptions options = w.client.getWorkflowServiceStubs().getOptions();
    w.client =
        WorkflowClient.newInstance(
            WorkflowServiceStubs.newServiceStubs(
                Secured.options(options.getTarget())
                    .setGrpcClientInterceptors(List.of(counting))
                    .build()));
    w.serve();
    WorkflowStub run = w.remember(WorkflowClient.start(w.stub(Batch.class)::run, 5));
    run.getResult(Void.class);
    w.equal(counting.handed.get(), 3, "activities in the answer to the task: a worker asks for no more");
    w.equal(seenOf(run.getExecution().getWorkflowId()).size(), 5, "what ran");
  }
}
