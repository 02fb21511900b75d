import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Delayed;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import kafka.log.Cleaner;
import kafka.log.LogCleanerManager$;
import kafka.log.LogToClean;
import kafka.log.OffsetsToClean;
import kafka.log.UnifiedLog;
import kafka.log.UnifiedLog$;
import kafka.server.BrokerTopicStats;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.AbortedTxn;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.BatchMetadata;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.RecordValidationException;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.utils.Throttler;
import scala.Option;
import scala.Some;
import scala.Tuple2;
import scala.runtime.BoxedUnit;

/**
 * Kafka's own log (UnifiedLog) and cleaner on a partition directory, with a clock that the caller sets.
 * Each call names the directory and the time, and carries its arguments as JSON; the answer is JSON.
 */
public final class LogOracle implements Harness.Service {

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();
    private static final int PRODUCER_EXPIRATION_MS = 86_400_000;
    private static final int TRANSACTION_TIMEOUT_MAX_MS = 900_000;

    private final SetClock clock = new SetClock();
    private final Map<String, OpenLog> logs = new HashMap<>();

    @Override
    public byte[] call(String method, byte[] payload) throws Exception {
        JsonNode request = JSON.readTree(payload);
        clock.nowMs = request.path("now_ms").asLong(clock.nowMs);
        String dir = request.path("dir").asText();
        if (method.equals("open")) {
            logs.put(dir, new OpenLog(request));
        }
        OpenLog open = logs.get(dir);
        ObjectNode answer = JSON.createObjectNode();
        try {
            open.perform(method, request, answer);
        } catch (RecordValidationException refused) {
            answer.put("error", Errors.forException(refused.invalidException()).code());
        } catch (RuntimeException refused) {
            if (!method.equals("append") && !(refused instanceof ApiException)) {
                throw refused;
            }
            answer.put("error", Errors.forException(refused).code());
        }
        open.scheduler.runDue();
        if (method.equals("close") || method.equals("abandon")) {
            logs.remove(dir);
        } else {
            open.describe(answer);
        }
        return JSON.writeValueAsBytes(answer);
    }

    /** One log with the scheduler that deletes and flushes for it. */
    private final class OpenLog {
        final LaterScheduler scheduler = new LaterScheduler();
        final UnifiedLog log;

        OpenLog(JsonNode request) throws Exception {
            File dir = new File(request.get("dir").asText());
            long logStartOffset = request.path("log_start_offset").asLong(0);
            log = UnifiedLog$.MODULE$.apply(
                dir, config(request.path("config")), logStartOffset, request.path("recovery_point").asLong(0), scheduler,
                new BrokerTopicStats(false), clock, TRANSACTION_TIMEOUT_MAX_MS,
                new ProducerStateManagerConfig(PRODUCER_EXPIRATION_MS, false), 600_000, new LogDirFailureChannel(10),
                request.path("clean").asBoolean(false), Option.empty(), true, new ConcurrentHashMap<>(), false,
                LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
        }

        void perform(String method, JsonNode request, ObjectNode answer) throws Exception {
            switch (method) {
                case "open":
                case "state":
                    break;
                case "append":
                    append(request, answer);
                    break;
                case "assign_epoch":
                    log.maybeAssignEpochStartOffset(request.get("epoch").asInt(), request.get("offset").asLong());
                    break;
                case "roll":
                    log.roll(Option.empty());
                    break;
                case "truncate":
                    if (!request.path("forgetful").asBoolean(false)) {
                        log.logSegments().forEach(LogOracle::knowItsLargestTimestamp);
                    }
                    log.truncateTo(request.get("offset").asLong());
                    break;
                case "truncate_fully":
                    log.truncateFullyAndStartAt(request.get("offset").asLong(), Option.empty());
                    break;
                case "high_watermark":
                    log.updateHighWatermark(request.get("offset").asLong());
                    break;
                case "raise_start":
                    log.maybeIncrementLogStartOffset(
                        request.get("offset").asLong(), LogStartOffsetIncrementReason.ClientRecordDeletion);
                    break;
                case "delete_old":
                    answer.put("deleted", log.deleteOldSegments());
                    break;
                case "clean":
                    clean(request, answer);
                    break;
                case "find_time":
                    findTime(request.get("timestamp").asLong(), answer);
                    break;
                case "close":
                    log.flush(true);
                    log.close();
                    break;
                case "abandon":
                    log.closeHandlers();
                    break;
                default:
                    throw new IllegalArgumentException("no such method: " + method);
            }
        }

        private void append(JsonNode request, ObjectNode answer) {
            MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(request.get("records").asText())));
            int epoch = request.path("epoch").asInt();
            LogAppendInfo info;
            if (request.path("follower").asBoolean(false)) {
                info = log.appendAsFollower(records, Integer.MAX_VALUE);
            } else {
                AppendOrigin origin = request.path("coordinator").asBoolean(false) ? AppendOrigin.COORDINATOR : AppendOrigin.CLIENT;
                info = log.appendAsLeader(
                    records, epoch, origin, log.appendAsLeader$default$4(), log.appendAsLeader$default$5(),
                    log.appendAsLeader$default$6());
            }
            answer.put("first_offset", info.firstOffset());
            answer.put("last_offset", info.lastOffset());
        }

        private void clean(JsonNode request, ObjectNode answer) throws Exception {
            Option<Object> last = request.has("first_dirty") ? new Some<>(request.get("first_dirty").asLong()) : Option.empty();
            OffsetsToClean offsets = LogCleanerManager$.MODULE$.cleanableOffsets(log, last, clock.nowMs);
            LogToClean cleanable = new LogToClean(
                log.topicPartition(), log, offsets.firstDirtyOffset(), offsets.firstUncleanableDirtyOffset(), false);
            answer.put("cleanable_bytes", cleanable.cleanableBytes());
            answer.put("total_bytes", cleanable.totalBytes());
            Cleaner cleaner = new Cleaner(
                0, new SkimpyOffsetMap(1 << 20), 1 << 16, 1 << 20, 0.9,
                new Throttler(Double.MAX_VALUE, Long.MAX_VALUE, "cleaner", "entries", clock), clock, partition -> BoxedUnit.UNIT);
            Tuple2<Object, ?> done = cleaner.clean(cleanable);
            answer.put("first_dirty", (Long) done._1());
        }

        private void findTime(long timestamp, ObjectNode answer) {
            Option<FileRecords.TimestampAndOffset> found = log.fetchOffsetByTimestamp(timestamp, Option.empty());
            answer.put("found_timestamp", found.isEmpty() ? -1 : found.get().timestamp);
            answer.put("found_offset", found.isEmpty() ? -1 : found.get().offset);
        }

        void describe(ObjectNode answer) {
            answer.put("log_start_offset", log.logStartOffset());
            answer.put("end_offset", log.logEndOffset());
            answer.put("high_watermark", log.highWatermark());
            answer.put("last_stable_offset", log.lastStableOffset());
            answer.put("recovery_point", log.recoveryPoint());
            ArrayNode epochs = answer.putArray("epochs");
            for (EpochEntry entry : log.leaderEpochCache().get().epochEntries()) {
                epochs.addArray().add(entry.epoch).add(entry.startOffset);
            }
            ArrayNode segments = answer.putArray("segments");
            for (LogSegment segment : log.logSegments()) {
                segments.addArray().add(segment.baseOffset()).add(segment.size());
            }
            ArrayNode aborted = answer.putArray("aborted");
            scala.collection.Iterator<AbortedTxn> entries =
                log.collectAbortedTransactions(log.logStartOffset(), log.logEndOffset()).iterator();
            while (entries.hasNext()) {
                AbortedTxn entry = entries.next();
                aborted.addArray().add(entry.producerId()).add(entry.firstOffset()).add(entry.lastOffset());
            }
            describeProducers(answer.putArray("producers"));
        }

        private void describeProducers(ArrayNode producers) {
            for (ProducerStateEntry entry : new TreeMap<>(log.producerStateManager().activeProducers()).values()) {
                ObjectNode node = producers.addObject();
                node.put("producer_id", entry.producerId());
                node.put("epoch", entry.producerEpoch());
                node.put("coordinator_epoch", entry.coordinatorEpoch());
                node.put("first_offset_of_transaction", entry.currentTxnFirstOffset().orElse(-1));
                node.put("last_timestamp", entry.lastTimestamp());
                ArrayNode batches = node.putArray("batches");
                for (BatchMetadata batch : entry.batchMetadata()) {
                    batches.addArray().add(batch.firstSeq()).add(batch.lastSeq).add(batch.lastOffset).add(batch.timestamp);
                }
            }
        }
    }

    /** A segment just loaded that was asked for nothing yet would forget the largest timestamp with a truncation. */
    private static void knowItsLargestTimestamp(LogSegment segment) {
        try {
            segment.maxTimestampSoFar();
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
    }

    private static LogConfig config(JsonNode node) {
        Properties properties = new Properties();
        node.fields().forEachRemaining(field -> properties.put(field.getKey(), field.getValue().asText()));
        return new LogConfig(properties);
    }

    /** A clock that stands still between calls. */
    private static final class SetClock implements Time {
        long nowMs = 0;

        @Override
        public long milliseconds() {
            return nowMs;
        }

        @Override
        public long nanoseconds() {
            return nowMs * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
            throw new IllegalStateException("nothing waits in the oracle");
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new IllegalStateException("nothing waits in the oracle");
        }
    }

    /** Runs what is due by the set clock after each call; nothing is periodic here. */
    private final class LaterScheduler implements Scheduler {
        private final List<Due> tasks = new ArrayList<>();

        @Override
        public void startup() {
        }

        @Override
        public void shutdown() {
        }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            Due due = new Due(task, clock.nowMs + Math.max(0, delayMs));
            if (periodMs < 0) {
                tasks.add(due);
            }
            return due;
        }

        @Override
        public void resizeThreadPool(int size) {
        }

        void runDue() {
            List<Due> now = new ArrayList<>(tasks);
            for (Due task : now) {
                if (task.atMs <= clock.nowMs) {
                    tasks.remove(task);
                    task.run.run();
                }
            }
        }
    }

    private static final class Due implements ScheduledFuture<Object> {
        final Runnable run;
        final long atMs;

        Due(Runnable run, long atMs) {
            this.run = run;
            this.atMs = atMs;
        }

        @Override
        public long getDelay(TimeUnit unit) {
            return 0;
        }

        @Override
        public int compareTo(Delayed other) {
            return 0;
        }

        @Override
        public boolean cancel(boolean interrupt) {
            return false;
        }

        @Override
        public boolean isCancelled() {
            return false;
        }

        @Override
        public boolean isDone() {
            return false;
        }

        @Override
        public Object get() {
            return null;
        }

        @Override
        public Object get(long timeout, TimeUnit unit) {
            return null;
        }
    }
}
