import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.SchemaCompatibility.SchemaCompatibilityType;

/** Verdicts TABLE...: compares each verdict of the tables with that of Avro. Ends with 1 where one differs. */
public class Verdicts {
  public static void main(String[] tables) throws Exception {
    int rows = 0;
    int wrong = 0;
    for (String table : tables) {
      for (String line : Files.readAllLines(Path.of(table), UTF_8)) {
        if (line.startsWith("#")) {
          continue;
        }
        String[] row = line.split("\t");
        String verdict;
        try {
          verdict = verdict(row[1], row[2], row[3]);
        } catch (RuntimeException error) {
          verdict = error.toString();
        }
        rows++;
        if (!verdict.equals(row[1])) {
          wrong++;
          System.out.println("FAIL " + row[0] + ": " + row[1] + " in the table, with Avro " + verdict);
        }
      }
    }
    System.out.println(rows + " rows, " + wrong + " of them not as Avro has it");
    System.exit(wrong == 0 && rows > 0 ? 0 : 1);
  }

  /** What Avro says, in the word of the kind of row that {@code expected} is of. */
  private static String verdict(String expected, String one, String other) {
    switch (expected) {
      case "reads", "refuses":
        return reads(parse(one), parse(other)) ? "reads" : "refuses";
      case "same", "different":
        return parse(one).toString().equals(parse(other).toString()) ? "same" : "different";
      default:
        return isValid(one) ? "valid" : "invalid";
    }
  }

  private static boolean reads(Schema reader, Schema writer) {
    try {
      var found = SchemaCompatibility.checkReaderWriterCompatibility(reader, writer);
      return found.getResult().getCompatibility() == SchemaCompatibilityType.COMPATIBLE;
    } catch (RuntimeException ambiguous) {
      // A field that might be one of several: a registry takes it for a refusal.
      return false;
    }
  }

  private static boolean isValid(String schema) {
    try {
      parse(schema);
      return true;
    } catch (RuntimeException error) {
      return false;
    }
  }

  private static Schema parse(String schema) {
    return new Schema.Parser().parse(schema);
  }
}
