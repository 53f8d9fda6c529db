package programs;

import java.time.Duration;

/** How long a test waits for what must come, whatever the machine: as tests/patience has it. */
final class Patience {
  static final Duration MOST =
      Duration.ofSeconds(120 * Long.parseLong(System.getenv().getOrDefault("EVERLOG_PATIENCE", "1")));

  private Patience() {}
}
