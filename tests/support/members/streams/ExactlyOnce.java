import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/**
 * Kafka Streams: numbers that are wrong if a line is processed twice or never. Lines come from the topic "in" with
 * their number as key. "counts" gets each word with how often it came; "joined" gets each line once, with what the
 * table "table" holds for its first word. Settings come as name=value.
 */
public final class ExactlyOnce {
    public static void main(String[] words) throws InterruptedException {
        Properties settings = new Properties();
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());
        settings.put("processing.guarantee", "exactly_once_v2");
        for (String word : words) {
            String[] setting = word.split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        CountDownLatch ended = new CountDownLatch(1);
        KafkaStreams streams = new KafkaStreams(topology(settings).build(), settings);
        streams.setStateListener((now, before) -> {
            say("state " + now);
            if (now == KafkaStreams.State.ERROR || now == KafkaStreams.State.NOT_RUNNING) {
                ended.countDown();
            }
        });
        streams.setUncaughtExceptionHandler(refused -> {
            Throwable root = refused;
            while (root.getCause() != null) {
                root = root.getCause();
            }
            say("replaced " + root.toString().replace('\n', ' '));
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(10))));
        streams.start();
        ended.await();
    }

    private static StreamsBuilder topology(Properties settings) {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> lines = builder.stream((String) settings.remove("in"));
        lines.flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((number, word) -> word)
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream()
            .mapValues(count -> "" + count)
            .to((String) settings.remove("counts"));
        lines.map((number, line) -> KeyValue.pair(line.split(" ")[0], number))
            .join(builder.<String, String>table((String) settings.remove("table")), (number, held) -> number + " " + held)
            .to((String) settings.remove("joined"));
        return builder;
    }

    private static synchronized void say(String line) {
        System.out.println(line);
    }
}
