import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A transactional producer, and readers: what programs.py says of all of them. */
public final class Transactor {
    private static final Properties settings = new Properties();
    private static KafkaProducer<String, String> producer;

    public static void main(String[] words) throws Exception {
        for (String word : words) {
            String[] setting = word.split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            try {
                System.out.println(obey(line.split(" ")));
            } catch (ExecutionException refused) {
                System.out.println("refused " + refused.getCause().getClass().getSimpleName());
            } catch (KafkaException refused) {
                System.out.println("refused " + refused.getClass().getSimpleName());
            }
        }
        System.exit(0);
    }

    private static String obey(String[] words) throws Exception {
        switch (words[0]) {
            case "init" -> {
                producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
                producer.initTransactions();
            }
            case "begin" -> producer.beginTransaction();
            case "send" -> producer.send(new ProducerRecord<>(words[1], Integer.parseInt(words[2]), null, words[3])).get();
            case "offsets" -> producer.sendOffsetsToTransaction(
                Map.of(new TopicPartition(words[2], Integer.parseInt(words[3])),
                    new OffsetAndMetadata(Long.parseLong(words[4]))),
                new ConsumerGroupMetadata(words[1]));
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "end" -> {
                return "found " + end(words[1], words[2]);
            }
            case "read" -> {
                return "found " + String.join(",", read(words[1], words[2]));
            }
            default -> throw new IllegalArgumentException(words[0]);
        }
        return "done";
    }

    private static KafkaConsumer<String, String> aConsumer(String isolation) {
        Properties consuming = new Properties();
        consuming.put("bootstrap.servers", settings.get("bootstrap.servers"));
        consuming.put("isolation.level", "read_" + isolation);
        return new KafkaConsumer<>(consuming, new StringDeserializer(), new StringDeserializer());
    }

    private static long end(String topic, String isolation) {
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaConsumer<String, String> consumer = aConsumer(isolation)) {
            return consumer.endOffsets(List.of(partition)).get(partition);
        }
    }

    private static List<String> read(String topic, String isolation) {
        TopicPartition partition = new TopicPartition(topic, 0);
        List<String> found = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer = aConsumer(isolation)) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            while (!found.contains("last")) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                    found.add(record.value());
                }
            }
        }
        return found;
    }
}
