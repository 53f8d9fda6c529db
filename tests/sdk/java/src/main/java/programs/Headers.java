package programs;

import static programs.Activities.seenOf;

import io.temporal.activity.ActivityExecutionContext;
import io.temporal.activity.ActivityOptions;
import io.temporal.api.common.v1.Payload;
import io.temporal.api.common.v1.WorkflowExecution;
import io.temporal.api.history.v1.HistoryEvent;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowStub;
import io.temporal.client.WorkflowUpdateHandle;
import io.temporal.common.converter.DefaultDataConverter;
import io.temporal.common.interceptors.ActivityInboundCallsInterceptor;
import io.temporal.common.interceptors.ActivityInboundCallsInterceptorBase;
import io.temporal.common.interceptors.Header;
import io.temporal.common.interceptors.WorkerInterceptorBase;
import io.temporal.common.interceptors.WorkflowClientCallsInterceptor;
import io.temporal.common.interceptors.WorkflowClientCallsInterceptorBase;
import io.temporal.common.interceptors.WorkflowClientInterceptorBase;
import io.temporal.common.interceptors.WorkflowInboundCallsInterceptor;
import io.temporal.common.interceptors.WorkflowInboundCallsInterceptorBase;
import io.temporal.common.interceptors.WorkflowOutboundCallsInterceptor;
import io.temporal.common.interceptors.WorkflowOutboundCallsInterceptorBase;
import io.temporal.workflow.Async;
import io.temporal.workflow.ChildWorkflowOptions;
import io.temporal.workflow.Promise;
import io.temporal.workflow.QueryMethod;
import io.temporal.workflow.SignalMethod;
import io.temporal.workflow.UpdateMethod;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import programs.Children.Child;

/** Headers that interceptors put on everything. */
public final class Headers {
  private Headers() {}

  /** Has an activity, a child that it signals, and a run that follows, once it is told to go on. */
  @WorkflowInterface
  public interface Relayed {
    @WorkflowMethod
    void run(boolean follows);

    @SignalMethod
    void goOn();

    @UpdateMethod
    void change();

    @QueryMethod
    String ask();
  }

  public static final class RelayedImpl implements Relayed {
    private boolean told;

    @Override
    public void run(boolean follows) {
      if (!follows) {
        return;
      }
      Workflow.await(() -> told);
      ActivityOptions options = ActivityOptions.newBuilder().setStartToCloseTimeout(Duration.ofSeconds(10)).build();
      Workflow.newActivityStub(Activities.class, options).succeedAt("relayed", 1);
      String id = Workflow.getInfo().getWorkflowId() + "-child";
      Child child =
          Workflow.newChildWorkflowStub(Child.class, ChildWorkflowOptions.newBuilder().setWorkflowId(id).build());
      Promise<String> ended = Async.function(child::run, "signal");
      Workflow.getWorkflowExecution(child).get();
      child.end();
      ended.get();
      Workflow.newContinueAsNewStub(Relayed.class).run(false);
    }

    @Override
    public void goOn() {
      told = true;
    }

    @Override
    public void change() {}

    @Override
    public String ask() {
      return "asked";
    }
  }

  private static void set(Header header, String text) {
    header.getValues().put("trace", DefaultDataConverter.STANDARD_INSTANCE.toPayload(text).get());
  }

  private static String textOf(Map<String, Payload> header) {
    return DefaultDataConverter.STANDARD_INSTANCE.fromPayload(header.get("trace"), String.class, String.class);
  }

  /** Puts a header on everything that a client sends. */
  private static final class Sending extends WorkflowClientInterceptorBase {
    @Override
    public WorkflowClientCallsInterceptor workflowClientCallsInterceptor(WorkflowClientCallsInterceptor next) {
      return new WorkflowClientCallsInterceptorBase(next) {
        @Override
        public WorkflowStartOutput start(WorkflowStartInput input) {
          set(input.getHeader(), "start");
          return super.start(input);
        }

        @Override
        public WorkflowSignalOutput signal(WorkflowSignalInput input) {
          set(input.getHeader(), "signal");
          return super.signal(input);
        }

        @Override
        public <R> QueryOutput<R> query(QueryInput<R> input) {
          set(input.getHeader(), "query");
          return super.query(input);
        }

        @Override
        public <R> WorkflowUpdateHandle<R> startUpdate(StartUpdateInput<R> input) {
          set(input.getHeader(), "update");
          return super.startUpdate(input);
        }
      };
    }
  }

  /** Notes the headers that come in, and puts one on what a workflow starts. */
  private static final class Noting extends WorkerInterceptorBase {
    @Override
    public ActivityInboundCallsInterceptor interceptActivity(ActivityInboundCallsInterceptor next) {
      return new ActivityInboundCallsInterceptorBase(next) {
        private String workflowId;

        @Override
        public void init(ActivityExecutionContext context) {
          workflowId = context.getInfo().getWorkflowId();
          super.init(context);
        }

        @Override
        public ActivityOutput execute(ActivityInput input) {
          Activities.see(workflowId, "activity with " + textOf(input.getHeader().getValues()));
          return super.execute(input);
        }
      };
    }

    @Override
    public WorkflowInboundCallsInterceptor interceptWorkflow(WorkflowInboundCallsInterceptor next) {
      return new NotingWorkflow(next);
    }
  }

  private static final class NotingWorkflow extends WorkflowInboundCallsInterceptorBase {
    NotingWorkflow(WorkflowInboundCallsInterceptor next) {
      super(next);
    }

    private static void note(String what, Header header) {
      Activities.see(Workflow.getInfo().getWorkflowId(), what + " with " + textOf(header.getValues()));
    }

    @Override
    public void init(WorkflowOutboundCallsInterceptor outbound) {
      super.init(
          new WorkflowOutboundCallsInterceptorBase(outbound) {
            @Override
            public <R> ActivityOutput<R> executeActivity(ActivityInput<R> input) {
              set(input.getHeader(), "workflow");
              return super.executeActivity(input);
            }

            @Override
            public <R> ChildWorkflowOutput<R> executeChildWorkflow(ChildWorkflowInput<R> input) {
              set(input.getHeader(), "workflow");
              return super.executeChildWorkflow(input);
            }

            @Override
            public SignalExternalOutput signalExternalWorkflow(SignalExternalInput input) {
              set(input.getHeader(), "workflow");
              return super.signalExternalWorkflow(input);
            }

            @Override
            public void continueAsNew(ContinueAsNewInput input) {
              set(input.getHeader(), "workflow");
              super.continueAsNew(input);
            }
          });
    }

    @Override
    public WorkflowOutput execute(WorkflowInput input) {
      note("workflow", input.getHeader());
      return super.execute(input);
    }

    @Override
    public void handleSignal(SignalInput input) {
      note("signal", input.getHeader());
      super.handleSignal(input);
    }

    @Override
    public QueryOutput handleQuery(QueryInput input) {
      note("query", input.getHeader());
      return super.handleQuery(input);
    }

    @Override
    public UpdateOutput executeUpdate(UpdateInput input) {
      note("update", input.getHeader());
      return super.executeUpdate(input);
    }
  }

  /** The header of an event that may have one. */
  private static Map<String, Payload> headerOf(HistoryEvent event) {
    return switch (event.getEventType()) {
      case EVENT_TYPE_WORKFLOW_EXECUTION_STARTED ->
          event.getWorkflowExecutionStartedEventAttributes().getHeader().getFieldsMap();
      case EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED ->
          event.getWorkflowExecutionSignaledEventAttributes().getHeader().getFieldsMap();
      case EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED ->
          event
              .getWorkflowExecutionUpdateAcceptedEventAttributes()
              .getAcceptedRequest()
              .getInput()
              .getHeader()
              .getFieldsMap();
      case EVENT_TYPE_ACTIVITY_TASK_SCHEDULED ->
          event.getActivityTaskScheduledEventAttributes().getHeader().getFieldsMap();
      case EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED ->
          event.getStartChildWorkflowExecutionInitiatedEventAttributes().getHeader().getFieldsMap();
      default -> Map.of();
    };
  }

  /** The headers of the events that have one, in order. */
  private static List<String> headersOf(List<HistoryEvent> events) {
    return events.stream()
        .map(Headers::headerOf)
        .filter(header -> header.containsKey("trace"))
        .map(Headers::textOf)
        .toList();
  }

  static void travelWithEverything(World w) {
    w.use(it -> it.setInterceptors(new Sending()), new Noting());
    w.serve();
    Relayed relayed = w.stub(Relayed.class);
    WorkflowExecution first = WorkflowClient.start(relayed::run, true);
    WorkflowStub run = w.remember(first);
    String id = first.getWorkflowId();
    w.equal(relayed.ask(), "asked", "a query");
    relayed.change();
    relayed.goOn();
    run.getResult(Void.class);
    Set<String> arrived =
        Set.of(
            "workflow with start",
            "query with query",
            "update with update",
            "signal with signal",
            "activity with workflow",
            "relayed",
            "workflow with workflow");
    w.equal(Set.copyOf(seenOf(id)), arrived, "what arrived");
    List<HistoryEvent> events = w.events(first);
    w.equal(headersOf(events), List.of("start", "update", "signal", "workflow", "workflow"), "in the history");
    List<HistoryEvent> following = w.events(World.execution(id, World.successor(events)));
    w.equal(headersOf(following), List.of("workflow"), "in the run that follows");
    List<HistoryEvent> child = w.events(World.execution(id + "-child", ""));
    w.equal(headersOf(child), List.of("workflow", "workflow"), "in the child");
  }
}
