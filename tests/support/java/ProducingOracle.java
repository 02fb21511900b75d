import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.concurrent.ConcurrentLinkedQueue;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Java's own producer: "open" takes its properties, "send" takes records and tells of those that are done.
 *
 * A record is partition, length, value; it is known by its number among all that were sent. What is told of one:
 * its number, its offset (-1 where there is none), and what went wrong (empty where nothing did).
 */
public final class ProducingOracle implements Harness.Service {

    private record Done(long number, long offset, String error) {
    }

    private final ConcurrentLinkedQueue<Done> done = new ConcurrentLinkedQueue<>();
    private KafkaProducer<byte[], byte[]> producer;
    private String topic;
    private long sent = 0;

    @Override
    public byte[] call(String method, byte[] payload) throws IOException {
        switch (method) {
            case "open":
                return open(payload);
            case "send":
                return send(new DataInputStream(new ByteArrayInputStream(payload)));
            default:
                throw new IllegalArgumentException("no such method: " + method);
        }
    }

    private byte[] open(byte[] payload) throws IOException {
        Properties properties = new Properties();
        properties.load(new StringReader(new String(payload, StandardCharsets.UTF_8)));
        topic = (String) properties.remove("topic");
        producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
        return new byte[0];
    }

    private byte[] send(DataInputStream records) throws IOException {
        while (records.available() > 0) {
            int partition = records.readInt();
            byte[] value = records.readNBytes(records.readInt());
            long number = sent++;
            producer.send(new ProducerRecord<>(topic, partition, null, value), (metadata, error) ->
                done.add(error == null ? new Done(number, metadata.offset(), "") : new Done(number, -1, error.toString())));
        }
        ByteArrayOutputStream answer = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(answer);
        for (Done one = done.poll(); one != null; one = done.poll()) {
            out.writeLong(one.number());
            out.writeLong(one.offset());
            byte[] error = one.error().getBytes(StandardCharsets.UTF_8);
            out.writeInt(error.length);
            out.write(error);
        }
        return answer.toByteArray();
    }
}
