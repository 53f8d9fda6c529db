package programs;

import io.grpc.netty.shaded.io.grpc.netty.GrpcSslContexts;
import io.temporal.serviceclient.WorkflowServiceStubsOptions;
import java.io.File;
import java.util.Optional;
import javax.net.ssl.SSLException;

/** How a client connects: over TLS by an authority, and with an API key, where the environment says so. */
final class Secured {
  private Secured() {}

  static WorkflowServiceStubsOptions.Builder options(String address) {
    WorkflowServiceStubsOptions.Builder options = WorkflowServiceStubsOptions.newBuilder().setTarget(address);
    String authority = System.getenv("EVERLOG_TEST_CA_FILE");
    if (authority != null) {
      try {
        options.setSslContext(GrpcSslContexts.forClient().trustManager(new File(authority)).build());
      } catch (SSLException e) {
        throw new IllegalStateException(e);
      }
    }
    key().ifPresent(key -> options.addApiKey(() -> key));
    return options;
  }

  static Optional<String> key() {
    return Optional.ofNullable(System.getenv("EVERLOG_TEST_API_KEY"));
  }
}
