package programs;

import io.grpc.StatusRuntimeException;
import io.temporal.api.enums.v1.IndexedValueType;
import io.temporal.api.operatorservice.v1.AddSearchAttributesRequest;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowExecutionDescription;
import io.temporal.client.WorkflowServiceException;
import io.temporal.client.WorkflowStub;
import io.temporal.common.SearchAttributeKey;
import io.temporal.common.SearchAttributes;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Search attributes and memos that workflows change. */
public final class Attributes {
  private static final SearchAttributeKey<String> COLOUR = SearchAttributeKey.forKeyword("JavaColour");
  private static final SearchAttributeKey<Long> WEIGHT = SearchAttributeKey.forLong("JavaWeight");
  private static final SearchAttributeKey<Boolean> HEAVY = SearchAttributeKey.forBoolean("JavaHeavy");

  private Attributes() {}

  /** Changes its search attributes and its memo; the weight that it sees then. */
  @WorkflowInterface
  public interface Paint {
    @WorkflowMethod
    long run();
  }

  public static final class PaintImpl implements Paint {
    @Override
    public long run() {
      Workflow.upsertTypedSearchAttributes(COLOUR.valueSet("green"), WEIGHT.valueSet(12L), HEAVY.valueUnset());
      Map<String, Object> memo = new HashMap<>();
      memo.put("coats", 2);
      memo.put("note", null);
      Workflow.upsertMemo(memo);
      return Workflow.getTypedSearchAttributes().get(WEIGHT);
    }
  }

  private static void add(World w) {
    AddSearchAttributesRequest request =
        AddSearchAttributesRequest.newBuilder()
            .setNamespace(w.namespace())
            .putSearchAttributes(COLOUR.getName(), IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD)
            .putSearchAttributes(WEIGHT.getName(), IndexedValueType.INDEXED_VALUE_TYPE_INT)
            .putSearchAttributes(HEAVY.getName(), IndexedValueType.INDEXED_VALUE_TYPE_BOOL)
            .build();
    try {
      w.operator().addSearchAttributes(request);
    } catch (StatusRuntimeException e) {
      w.that(e.getMessage().contains("already"), "the attributes are registered", e);
    }
  }

  static void andMemoAreUpserted(World w) throws Exception {
    w.serve();
    add(w);
    SearchAttributes attributes = SearchAttributes.newBuilder().set(COLOUR, "red").set(HEAVY, true).build();
    List<WorkflowStub> runs = new ArrayList<>();
    // A server may take a moment to know a name.
    w.until(
        () -> {
          Paint paint =
              w.stub(
                  Paint.class,
                  it -> it.setTypedSearchAttributes(attributes).setMemo(Map.of("note", "wet", "coats", 1)));
          try {
            return runs.add(w.remember(WorkflowClient.start(paint::run)));
          } catch (WorkflowServiceException e) {
            return false;
          }
        });
    WorkflowStub run = runs.get(0);
    w.equal(run.getResult(Long.class), 12L, "what the workflow sees");
    WorkflowExecutionDescription described = run.describe();
    w.equal(described.getTypedSearchAttributes().get(COLOUR), "green", "the colour");
    w.equal(described.getTypedSearchAttributes().get(WEIGHT), 12L, "the weight");
    w.that(!described.getTypedSearchAttributes().containsKey(HEAVY), "an attribute that was removed");
    w.equal(described.getMemo("coats", Integer.class), 2, "the memo");
    w.that(described.getMemo("note", String.class) == null, "a key of the memo that was removed");
  }
}
