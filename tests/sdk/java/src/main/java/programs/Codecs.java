package programs;

import com.google.protobuf.ByteString;
import io.temporal.activity.ActivityOptions;
import io.temporal.api.common.v1.Payload;
import io.temporal.api.failure.v1.Failure;
import io.temporal.api.history.v1.HistoryEvent;
import io.temporal.client.WorkflowClient;
import io.temporal.client.WorkflowExecutionDescription;
import io.temporal.client.WorkflowStub;
import io.temporal.common.converter.CodecDataConverter;
import io.temporal.common.converter.DefaultDataConverter;
import io.temporal.failure.ApplicationFailure;
import io.temporal.payload.codec.PayloadCodec;
import io.temporal.workflow.Workflow;
import io.temporal.workflow.WorkflowInterface;
import io.temporal.workflow.WorkflowMethod;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.zip.DeflaterInputStream;
import java.util.zip.InflaterInputStream;
import programs.Children.Child;
import programs.Registers.Register;

/** Payloads and failures that a codec makes opaque to the server. */
public final class Codecs {
  private static final String ENCODING = "binary/zip";

  private Codecs() {}

  /** Answers what its activity answers. */
  @WorkflowInterface
  public interface Echoed {
    @WorkflowMethod
    String run(String text);
  }

  public static final class EchoedImpl implements Echoed {
    @Override
    public String run(String text) {
      ActivityOptions options = ActivityOptions.newBuilder().setStartToCloseTimeout(Duration.ofSeconds(10)).build();
      return Workflow.newActivityStub(Activities.class, options).echo(text);
    }
  }

  private static String encodingOf(Payload payload) {
    return payload.getMetadataOrDefault("encoding", ByteString.EMPTY).toStringUtf8();
  }

  /** Compresses each payload, and marks it so. */
  private static final class Zip implements PayloadCodec {
    @Override
    public List<Payload> encode(List<Payload> payloads) {
      return payloads.stream().map(Zip::zipped).toList();
    }

    @Override
    public List<Payload> decode(List<Payload> payloads) {
      return payloads.stream().map(it -> encodingOf(it).equals(ENCODING) ? unzipped(it) : it).toList();
    }

    private static Payload zipped(Payload payload) {
      try (var zip = new DeflaterInputStream(new ByteArrayInputStream(payload.toByteArray()))) {
        return Payload.newBuilder()
            .putMetadata("encoding", ByteString.copyFromUtf8(ENCODING))
            .setData(ByteString.readFrom(zip))
            .build();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    private static Payload unzipped(Payload payload) {
      try (var zip = new InflaterInputStream(payload.getData().newInput())) {
        return Payload.parseFrom(zip);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }

  private static HistoryEvent lastEvent(World w, WorkflowStub run) {
    return w.client.fetchHistory(run.getExecution().getWorkflowId()).getLastEvent();
  }

  static void hidePayloadsAndFailures(World w) {
    w.use(
        it ->
            it.setDataConverter(
                new CodecDataConverter(DefaultDataConverter.STANDARD_INSTANCE, List.of(new Zip()), true)));
    w.serve();
    String text = "a".repeat(5000);
    Echoed echoed = w.stub(Echoed.class, it -> it.setMemo(Map.of("note", "zipped")));
    WorkflowStub run = w.remember(WorkflowClient.start(echoed::run, text));
    w.equal(run.getResult(String.class), text, "the result");
    WorkflowExecutionDescription described = run.describe();
    w.equal(described.getMemo("note", String.class), "zipped", "the memo");
    Payload memo = described.getWorkflowExecutionInfo().getMemo().getFieldsOrThrow("note");
    w.equal(encodingOf(memo), ENCODING, "the memo at the server");
    Payload result = lastEvent(w, run).getWorkflowExecutionCompletedEventAttributes().getResult().getPayloads(0);
    w.equal(encodingOf(result), ENCODING, "the result in the history");

    Register register = w.stub(Register.class);
    w.remember(WorkflowClient.start(register::run));
    register.put(1);
    register.put(2);
    w.equal(register.values(), List.of(1, 2), "signals and a query");

    WorkflowStub failing = w.remember(WorkflowClient.start(w.stub(Child.class)::run, "fail"));
    ApplicationFailure told = (ApplicationFailure) w.failure(failing);
    w.equal(List.of(told.getOriginalMessage(), told.getType()), List.of("as it was told", "Told"), "the failure");
    Failure failure = lastEvent(w, failing).getWorkflowExecutionFailedEventAttributes().getFailure();
    w.equal(failure.getMessage(), "Encoded failure", "its message in the history");
    w.equal(encodingOf(failure.getEncodedAttributes()), ENCODING, "its encoded attributes");
  }
}
