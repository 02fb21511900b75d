import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/**
 * Kafka Streams: which lines hold a word. Lines come from the topic "in" with their number as key; "out" gets
 * each word with the numbers of its lines, a set, so that a line that is read twice counts once. Between them
 * are a topic that brings equal words together and the changelog of a store. Settings come as name=value.
 */
public final class WordCount {
    public static void main(String[] words) throws InterruptedException {
        Properties settings = new Properties();
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());
        for (String word : words) {
            String[] setting = word.split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        String in = (String) settings.remove("in");
        String out = (String) settings.remove("out");
        CountDownLatch ended = new CountDownLatch(1);
        KafkaStreams streams = new KafkaStreams(linesOfWords(in, out).build(), settings);
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
            say("failed " + root.toString().replace('\n', ' '));
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(10))));
        streams.start();
        ended.await();
    }

    private static StreamsBuilder linesOfWords(String in, String out) {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> lines = builder.stream(in);
        lines.flatMap((number, line) -> Arrays.stream(line.split(" "))
                .map(word -> KeyValue.pair(word, number)).collect(Collectors.toList()))
            .groupByKey()
            .aggregate(() -> "", (word, number, numbers) -> with(numbers, number),
                Materialized.as(Stores.inMemoryKeyValueStore("lines")))
            .toStream()
            .to(out);
        return builder;
    }

    private static String with(String numbers, String number) {
        TreeSet<String> all = new TreeSet<>(Arrays.asList(numbers.split(",")));
        all.remove("");
        all.add(number);
        return String.join(",", all);
    }

    private static synchronized void say(String line) {
        System.out.println(line);
    }
}
