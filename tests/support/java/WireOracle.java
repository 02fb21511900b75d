import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.requests.RequestHeader;

/**
 * Kafka's own message classes as judges of bytes.
 *
 * <p>Questions begin with {@code int16 version, class name, NUL}. {@code rewrite} reads the bytes that follow and writes
 * them again; {@code convert} does so from one version to another, whose int16 comes first; {@code fresh} writes a message as its constructor leaves it; {@code headers} tells the two header versions
 * of an API key; {@code header} reads a request header and writes it again with the number of bytes that it took.
 */
public final class WireOracle implements Harness.Service {

    @Override
    public byte[] call(String method, byte[] payload) throws Exception {
        ByteBuffer buffer = ByteBuffer.wrap(payload);
        switch (method) {
            case "rewrite":
                return rewrite(buffer);
            case "convert":
                return convert(buffer);
            case "fresh":
                return fresh(buffer);
            case "headers":
                return headers(buffer);
            case "header":
                return header(buffer);
            default:
                throw new IllegalArgumentException("no such method: " + method);
        }
    }

    private static byte[] convert(ByteBuffer buffer) throws Exception {
        short target = buffer.getShort();
        return written(read(buffer), target);
    }

    private static byte[] rewrite(ByteBuffer buffer) throws Exception {
        short version = buffer.getShort(buffer.position());
        return written(read(buffer), version);
    }

    private static Message read(ByteBuffer buffer) throws Exception {
        short version = buffer.getShort();
        Class<?> type = Class.forName(name(buffer));
        Message message = (Message) type.getConstructor(Readable.class, short.class)
            .newInstance(new ByteBufferAccessor(buffer), version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException(buffer.remaining() + " bytes are left over");
        }
        return message;
    }

    private static byte[] fresh(ByteBuffer buffer) throws Exception {
        short version = buffer.getShort();
        Class<?> type = Class.forName(name(buffer));
        return written((Message) type.getConstructor().newInstance(), version);
    }

    private static byte[] headers(ByteBuffer buffer) {
        short version = buffer.getShort();
        ApiMessageType type = ApiMessageType.fromApiKey(buffer.getShort());
        return new byte[] {(byte) type.requestHeaderVersion(version), (byte) type.responseHeaderVersion(version)};
    }

    private static byte[] header(ByteBuffer buffer) {
        RequestHeader header = RequestHeader.parse(buffer);
        int size = buffer.position();
        byte[] again = written(header.data(), header.headerVersion());
        return ByteBuffer.allocate(4 + again.length).putInt(size).put(again).array();
    }

    private static byte[] written(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer out = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(out), cache, version);
        if (out.hasRemaining()) {
            throw new IllegalStateException("the message is shorter than it said");
        }
        return out.array();
    }

    private static String name(ByteBuffer buffer) {
        int start = buffer.position();
        while (buffer.get() != 0) {
            continue;
        }
        return new String(buffer.array(), start, buffer.position() - 1 - start, StandardCharsets.UTF_8);
    }
}
