import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import kafka.tools.DumpLogSegments;
import org.apache.kafka.common.utils.Exit;
import scala.Console;
import scala.runtime.BoxedUnit;

/** Kafka's dump tool without a JVM per run: "dump" takes its arguments, one a line, and tells what it printed. */
public final class DumpOracle implements Harness.Service {

    private static final ObjectMapper JSON = new ObjectMapper();

    private static final class Ended extends RuntimeException {
        final int code;

        Ended(int code, String message) {
            super(message);
            this.code = code;
        }
    }

    @Override
    public byte[] call(String method, byte[] payload) throws Exception {
        String[] args = new String(payload, StandardCharsets.UTF_8).split("\n");
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        PrintStream usualErr = System.err;
        PrintStream usualOut = System.out;
        int exitCode = 0;
        String thrown = null;
        Exit.setExitProcedure((code, message) -> {
            throw new Ended(code, message);
        });
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        try {
            Console.withOut(out, () -> {
                DumpLogSegments.main(args);
                return BoxedUnit.UNIT;
            });
        } catch (Ended ended) {
            exitCode = ended.code;
        } catch (Throwable ended) {
            exitCode = 1;
            thrown = ended.toString();
        } finally {
            System.setErr(usualErr);
            System.setOut(usualOut);
        }
        ObjectNode answer = JSON.createObjectNode();
        answer.put("stdout", out.toString(StandardCharsets.UTF_8));
        answer.put("stderr", err.toString(StandardCharsets.UTF_8));
        answer.put("exit_code", exitCode);
        answer.put("thrown", thrown);
        return JSON.writeValueAsBytes(answer);
    }
}
