import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.DefaultRecord;
import org.apache.kafka.common.record.DefaultRecordBatch;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.ByteBufferOutputStream;

/**
 * Kafka's own reading and writing of record batches.
 * "build" makes batches of a JSON description, "describe" says in JSON what Kafka reads in the given bytes.
 */
public final class RecordsOracle implements Harness.Service {

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();

    @Override
    public byte[] call(String method, byte[] payload) throws Exception {
        switch (method) {
            case "build":
                return build(JSON.readTree(payload));
            case "describe":
                return JSON.writeValueAsBytes(describe(payload));
            default:
                throw new IllegalArgumentException("no such method: " + method);
        }
    }

    private static byte[] build(JsonNode batch) {
        if (batch.has("marker")) {
            return endMarker(batch);
        }
        ByteBufferOutputStream buffer = new ByteBufferOutputStream(1024);
        TimestampType timestampType = batch.path("log_append_time").isNumber()
            ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
        long baseOffset = batch.path("base_offset").asLong(0);
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
            buffer,
            (byte) batch.path("magic").asInt(2),
            Compression.of(CompressionType.forName(batch.path("codec").asText("none"))).build(),
            timestampType,
            baseOffset,
            batch.path("log_append_time").asLong(-1),
            batch.path("producer_id").asLong(-1),
            (short) batch.path("producer_epoch").asInt(-1),
            batch.path("base_sequence").asInt(-1),
            batch.path("transactional").asBoolean(false),
            false,
            batch.path("leader_epoch").asInt(-1),
            Integer.MAX_VALUE,
            batch.path("delete_horizon_ms").asLong(-1));
        long offset = baseOffset;
        for (JsonNode record : batch.path("records")) {
            offset = record.path("offset").asLong(offset);
            builder.appendWithOffset(
                offset, record.path("timestamp").asLong(), bytes(record.get("key")), bytes(record.get("value")),
                headers(record.path("headers")));
            offset++;
        }
        return content(builder.build());
    }

    private static byte[] endMarker(JsonNode batch) {
        EndTransactionMarker marker = new EndTransactionMarker(
            ControlRecordType.valueOf(batch.get("marker").asText()), batch.path("coordinator_epoch").asInt());
        return content(MemoryRecords.withEndTransactionMarker(
            batch.path("base_offset").asLong(0), batch.path("timestamp").asLong(), batch.path("leader_epoch").asInt(-1),
            batch.path("producer_id").asLong(), (short) batch.path("producer_epoch").asInt(), marker));
    }

    private static ArrayNode describe(byte[] payload) {
        ArrayNode answer = JSON.createArrayNode();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(payload)).batches()) {
            batch.ensureValid();
            ObjectNode node = answer.addObject();
            node.put("magic", batch.magic());
            node.put("base_offset", batch.baseOffset());
            node.put("last_offset", batch.lastOffset());
            node.put("size", batch.sizeInBytes());
            node.put("leader_epoch", batch.partitionLeaderEpoch());
            node.put("crc", batch.checksum());
            node.put("codec", batch.compressionType().name);
            node.put("log_append_time", batch.timestampType() == TimestampType.LOG_APPEND_TIME);
            node.put("max_timestamp", batch.maxTimestamp());
            node.put("producer_id", batch.producerId());
            node.put("producer_epoch", batch.producerEpoch());
            node.put("base_sequence", batch.baseSequence());
            node.put("last_sequence", batch.lastSequence());
            node.put("transactional", batch.isTransactional());
            node.put("control", batch.isControlBatch());
            node.put("delete_horizon_ms", batch.deleteHorizonMs().orElse(-1));
            node.put("count", batch.countOrNull());
            if (batch instanceof DefaultRecordBatch) {
                node.put("base_timestamp", ((DefaultRecordBatch) batch).baseTimestamp());
            }
            describeRecords(batch, node.putArray("records"));
        }
        return answer;
    }

    private static void describeRecords(MutableRecordBatch batch, ArrayNode records) {
        for (Record record : batch) {
            if (record instanceof DefaultRecord) {
                ((DefaultRecord) record).ensureValid();
            }
            ObjectNode node = records.addObject();
            node.put("offset", record.offset());
            node.put("timestamp", record.timestamp());
            node.put("key", record.hasKey() ? hex(record.key()) : null);
            node.put("value", record.hasValue() ? hex(record.value()) : null);
            ArrayNode headers = node.putArray("headers");
            for (Header header : record.headers()) {
                headers.addArray().add(header.key()).add(header.value() == null ? null : HEX.formatHex(header.value()));
            }
            if (batch.isControlBatch()) {
                node.put("control_type", ControlRecordType.parse(record.key()).name());
            }
        }
    }

    private static Header[] headers(JsonNode nodes) {
        List<Header> headers = new ArrayList<>();
        for (JsonNode node : nodes) {
            headers.add(new RecordHeader(node.get(0).asText(), bytes(node.get(1))));
        }
        return headers.toArray(new Header[0]);
    }

    private static byte[] bytes(JsonNode node) {
        return node == null || node.isNull() ? null : HEX.parseHex(node.asText());
    }

    private static String hex(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HEX.formatHex(bytes);
    }

    private static byte[] content(MemoryRecords records) {
        ByteBuffer buffer = records.buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }
}
