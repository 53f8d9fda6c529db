package programs;

import static programs.World.count;

import com.google.protobuf.ByteString;
import io.temporal.api.common.v1.WorkflowExecution;
import io.temporal.api.enums.v1.EventType;
import io.temporal.api.history.v1.HistoryEvent;
import io.temporal.api.workflowservice.v1.GetWorkflowExecutionHistoryRequest;
import io.temporal.api.workflowservice.v1.GetWorkflowExecutionHistoryResponse;
import io.temporal.api.workflowservice.v1.GetWorkflowExecutionHistoryReverseRequest;
import io.temporal.api.workflowservice.v1.GetWorkflowExecutionHistoryReverseResponse;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowStub;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.Function;
import programs.Registers.Register;

/** Histories in pages, and of runs that go over from worker to worker. */
public final class Histories {
  private static final int PAGE = 5;

  private Histories() {}

  private record Page(List<HistoryEvent> events, ByteString next) {}

  private static Page page(World w, WorkflowExecution run, ByteString token) {
    GetWorkflowExecutionHistoryRequest request =
        GetWorkflowExecutionHistoryRequest.newBuilder()
            .setNamespace(w.namespace())
            .setExecution(run)
            .setMaximumPageSize(PAGE)
            .setNextPageToken(token)
            .build();
    GetWorkflowExecutionHistoryResponse answer = w.service().getWorkflowExecutionHistory(request);
    return new Page(answer.getHistory().getEventsList(), answer.getNextPageToken());
  }

  private static Page pageBackwards(World w, WorkflowExecution run, ByteString token) {
    GetWorkflowExecutionHistoryReverseRequest request =
        GetWorkflowExecutionHistoryReverseRequest.newBuilder()
            .setNamespace(w.namespace())
            .setExecution(run)
            .setMaximumPageSize(PAGE)
            .setNextPageToken(token)
            .build();
    GetWorkflowExecutionHistoryReverseResponse answer = w.service().getWorkflowExecutionHistoryReverse(request);
    return new Page(answer.getHistory().getEventsList(), answer.getNextPageToken());
  }

  /** Claims that these events come, and in pages. */
  private static void inPages(World w, List<HistoryEvent> events, Function<ByteString, Page> pages) {
    List<HistoryEvent> all = new ArrayList<>();
    ByteString token = ByteString.EMPTY;
    int count = 0;
    do {
      Page page = pages.apply(token);
      all.addAll(page.events);
      token = page.next;
      count++;
    } while (!token.isEmpty());
    w.that(count > events.size() / 10, "pages", count);
    w.equal(all, events, "they hold the same");
  }

  static void comeInPages(World w) {
    Register register = w.stub(Register.class);
    WorkflowStub run = w.remember(WorkflowClient.start(register::run));
    for (int value = 1; value <= 30; value++) {
      register.put(value);
    }
    register.put(0);
    w.serve();
    run.getResult(List.class);
    List<HistoryEvent> events = new ArrayList<>(w.events(run.getExecution()));
    w.equal(count(events, EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED), 31L, "signals");
    inPages(w, events, token -> page(w, run.getExecution(), token));
    Collections.reverse(events);
    inPages(w, events, token -> pageBackwards(w, run.getExecution(), token));
  }

  /** Runs a worker; whoever waited until the time of its own queue is over would wait for hours. */
  private static void serve(World w, String identity) {
    w.serve(it -> it.setIdentity(identity).setStickyQueueScheduleToStartTimeout(Duration.ofHours(10)));
  }

  static void goOnWhenAWorkerStops(World w) {
    serve(w, "first");
    Register register = w.stub(Register.class);
    WorkflowStub run = w.remember(WorkflowClient.start(register::run));
    register.put(1);
    w.equal(register.values(), List.of(1), "by the first one");
    w.close();

    register.put(2);
    serve(w, "second");
    w.equal(register.values(), List.of(1, 2), "by the second one");
    register.put(3);
    register.put(0);
    w.equal(run.getResult(List.class), List.of(1, 2, 3), "the values");
    w.equal(register.values(), List.of(1, 2, 3), "a query after the end");

    List<HistoryEvent> events = w.events(run.getExecution());
    List<String> workers =
        events.stream()
            .filter(HistoryEvent::hasWorkflowTaskCompletedEventAttributes)
            .map(event -> event.getWorkflowTaskCompletedEventAttributes().getIdentity())
            .distinct()
            .toList();
    w.equal(workers, List.of("first", "second"), "who has completed the tasks");
    w.equal(count(events, EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT), 0L, "tasks that nobody took");
  }
}
