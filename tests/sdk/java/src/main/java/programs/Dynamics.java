package programs;

import io.temporal.activity.Activity;
import io.temporal.activity.ActivityOptions;
import io.temporal.activity.DynamicActivity;
import io.temporal.client.WorkflowOptions;
import io.temporal.client.WorkflowStub;
import io.temporal.common.converter.EncodedValues;
import io.temporal.workflow.DynamicQueryHandler;
import io.temporal.workflow.DynamicSignalHandler;
import io.temporal.workflow.DynamicUpdateHandler;
import io.temporal.workflow.DynamicWorkflow;
import io.temporal.workflow.Workflow;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** Workflows, handlers and activities that nobody has written under the names that they are called by. */
public final class Dynamics {
  private Dynamics() {}

  /** Hears two signals of any name, answers to any query and update, and calls an activity that nobody has written. */
  public static final class Anything implements DynamicWorkflow {
    private final List<String> said = new ArrayList<>();

    @Override
    public Object execute(EncodedValues arguments) {
      said.add(Workflow.getInfo().getWorkflowType() + " of " + arguments.get(0, String.class));
      DynamicSignalHandler signals = (name, told) -> said.add(name + " of " + told.get(0, String.class));
      DynamicQueryHandler queries = (name, told) -> name + " of " + told.getSize();
      Workflow.registerListener(signals);
      Workflow.registerListener(queries);
      Workflow.registerListener(
          new DynamicUpdateHandler() {
            @Override
            public Object handleExecute(String name, EncodedValues told) {
              return name + " of " + told.getSize();
            }
          });
      Workflow.await(() -> said.size() == 3);
      ActivityOptions options = ActivityOptions.newBuilder().setStartToCloseTimeout(Duration.ofSeconds(10)).build();
      said.add(Workflow.newUntypedActivityStub(options).execute("an activity of any type", String.class, "x"));
      return said;
    }
  }

  /** The activity of every type that no other has. */
  public static final class DoAnything implements DynamicActivity {
    @Override
    public Object execute(EncodedValues arguments) {
      return Activity.getExecutionContext().getInfo().getActivityType() + " of " + arguments.get(0, String.class);
    }
  }

  static void answerToAnyName(World w) {
    w.serve();
    WorkflowOptions options = WorkflowOptions.newBuilder().setWorkflowId(w.id()).setTaskQueue(w.queue).build();
    WorkflowStub run = w.client.newUntypedWorkflowStub("a workflow of any type", options);
    w.remember(run.start("one"));
    run.signal("this signal", "first");
    w.equal(run.query("a query", String.class, 1, 2, 3), "a query of 3", "the query");
    w.equal(run.update("an update", String.class, 1), "an update of 1", "the update");
    run.signal("that signal", "second");
    List<String> said =
        List.of(
            "a workflow of any type of one",
            "this signal of first",
            "that signal of second",
            "an activity of any type of x");
    w.equal(run.getResult(List.class), said, "what was called");
  }
}
