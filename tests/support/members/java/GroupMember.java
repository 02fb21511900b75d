import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A member of a consumer group: reads, commits, and says so. Settings come as name=value, the topic is "topic". */
public final class GroupMember {
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        "sticky", "org.apache.kafka.clients.consumer.StickyAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    public static void main(String[] words) throws InterruptedException {
        Properties settings = new Properties();
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("max.poll.records", "50");
        for (String word : words) {
            String[] setting = word.split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        String topic = (String) settings.remove("topic");
        settings.computeIfPresent("partition.assignment.strategy", (name, value) -> ASSIGNORS.get(value));
        CountDownLatch closed = new CountDownLatch(1);
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try {
                closed.await();
            } catch (InterruptedException ignored) {
                Thread.currentThread().interrupt();
            }
        }));
        try {
            consumer.subscribe(List.of(topic), new Listener());
            while (true) {
                readAndCommit(consumer);
            }
        } catch (WakeupException leaving) {
            consumer.close();
            say("left");
        } catch (KafkaException refused) {
            say("failed " + refused.toString().replace('\n', ' '));
        } finally {
            closed.countDown();
        }
    }

    private static void readAndCommit(KafkaConsumer<String, String> consumer) {
        Map<TopicPartition, OffsetAndMetadata> next = new TreeMap<>((a, b) -> a.partition() - b.partition());
        for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
            say("record " + record.partition() + " " + record.offset() + " " + record.value());
            next.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
        }
        if (next.isEmpty()) {
            return;
        }
        try {
            consumer.commitSync(next, Duration.ofSeconds(20));
            next.forEach((partition, offset) -> say("committed " + partition.partition() + " " + offset.offset()));
        } catch (WakeupException leaving) {
            throw leaving;
        } catch (KafkaException refused) {
            say("uncommitted " + refused.getClass().getSimpleName());
        }
    }

    private static synchronized void say(String line) {
        System.out.println(line);
    }

    private static final class Listener implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            say("assigned " + named(partitions));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            say("revoked " + named(partitions));
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            say("revoked " + named(partitions));
        }

        private static String named(Collection<TopicPartition> partitions) {
            return partitions.isEmpty()
                ? "-"
                : partitions.stream().map(each -> "" + each.partition()).sorted().collect(Collectors.joining(","));
        }
    }
}
