import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.nio.charset.StandardCharsets;

/** Runs one service over stdin and stdout: frames of an int32 length, answered in order, until stdin ends. */
public final class Harness {

    /** What an oracle does: a named question about some bytes. */
    public interface Service {
        byte[] call(String method, byte[] payload) throws Exception;
    }

    private static final byte ANSWERED = 0;
    private static final byte FAILED = 1;

    public static void main(String[] args) throws Exception {
        Service service = (Service) Class.forName(args[0]).getDeclaredConstructor().newInstance();
        DataInputStream in = new DataInputStream(new BufferedInputStream(new FileInputStream(FileDescriptor.in), 1 << 16));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 16));
        System.setOut(System.err);  // Whatever a library prints must not stand between the frames.
        while (true) {
            int size;
            try {
                size = in.readInt();
            } catch (EOFException end) {
                return;
            }
            byte[] frame = in.readNBytes(size);
            int nameEnd = 0;
            while (frame[nameEnd] != 0) {
                nameEnd++;
            }
            String method = new String(frame, 0, nameEnd, StandardCharsets.UTF_8);
            byte[] payload = new byte[frame.length - nameEnd - 1];
            System.arraycopy(frame, nameEnd + 1, payload, 0, payload.length);
            byte status = ANSWERED;
            byte[] answer;
            try {
                answer = service.call(method, payload);
            } catch (Throwable thrown) {
                status = FAILED;
                answer = thrown.toString().getBytes(StandardCharsets.UTF_8);
            }
            out.writeInt(answer.length + 1);
            out.writeByte(status);
            out.write(answer);
            out.flush();
        }
    }

    private Harness() {
    }
}
