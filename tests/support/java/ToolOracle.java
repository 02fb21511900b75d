import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.utils.Exit;
import scala.Console;
import scala.runtime.BoxedUnit;

/** Any of Kafka's tools without a JVM per run: "run" takes its class, arguments and input, and tells what it printed. */
public final class ToolOracle implements Harness.Service {

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int STILL_RUNNING = -1;

    private int exitCode;

    private static final class Ended extends RuntimeException {
    }

    @Override
    public byte[] call(String method, byte[] payload) throws Exception {
        JsonNode asked = JSON.readTree(payload);
        String[] args = JSON.convertValue(asked.get("args"), String[].class);
        Class<?> tool = Class.forName(asked.get("main").asText());
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        PrintStream usualErr = System.err;
        PrintStream usualOut = System.out;
        InputStream usualIn = System.in;
        exitCode = STILL_RUNNING;
        Exit.setExitProcedure((code, message) -> end(code));
        Exit.setHaltProcedure((code, message) -> end(code));
        Exit.setShutdownHookAdder((name, runnable) -> { });
        System.setIn(new ByteArrayInputStream(asked.get("stdin").asText().getBytes(StandardCharsets.UTF_8)));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        try {
            Console.withOut(System.out, () -> {
                run(tool, args);
                return BoxedUnit.UNIT;
            });
        } finally {
            System.setErr(usualErr);
            System.setOut(usualOut);
            System.setIn(usualIn);
        }
        ObjectNode answer = JSON.createObjectNode();
        answer.put("stdout", out.toString(StandardCharsets.UTF_8));
        answer.put("stderr", err.toString(StandardCharsets.UTF_8));
        answer.put("exit_code", exitCode == STILL_RUNNING ? 0 : exitCode);
        return JSON.writeValueAsBytes(answer);
    }

    /** The first code counts: a tool that catches everything would catch its own end, and end again. */
    private void end(int code) {
        if (exitCode == STILL_RUNNING) {
            exitCode = code;
        }
        throw new Ended();
    }

    private void run(Class<?> tool, String[] args) {
        try {
            tool.getMethod("main", String[].class).invoke(null, (Object) args);
        } catch (InvocationTargetException thrown) {
            if (exitCode == STILL_RUNNING && !(thrown.getCause() instanceof Ended)) {
                thrown.getCause().printStackTrace();
                exitCode = 1;
            }
        } catch (ReflectiveOperationException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
