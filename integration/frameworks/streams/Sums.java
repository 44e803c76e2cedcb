import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.StandbyUpdateListener;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.QueryableStoreTypes;

/** Counts and sums numbers by bucket: `Sums INPUT OUTPUT KEY=VALUE…`.
 *
 * Each record of INPUT ends with "-NUMBER". It is repartitioned by its bucket, and changes the bucket's state,
 * which goes to OUTPUT: the number, how many were counted before and with it, and their sum. So OUTPUT shows each
 * number that was lost or counted twice.
 *
 * Prints its events as JSON, a line each. The lines "tasks" and "sums" on stdin ask for its active tasks, and for the
 * state that it holds. */
public class Sums {
    static final int BUCKETS = 7;
    static final String STORE = "sums";
    static final ObjectMapper JSON = new ObjectMapper();

    static synchronized void say(String name, Object value) {
        try {
            System.out.println(JSON.writeValueAsString(Map.of(name, value)));
        } catch (Exception error) {
            throw new RuntimeException(error);
        }
    }

    static KeyValue<String, Long> numbered(String value) {
        long number = Long.parseLong(value.substring(value.lastIndexOf('-') + 1));
        return KeyValue.pair("bucket " + number % BUCKETS, number);
    }

    static String add(long number, String state) {
        String[] words = state.split(" ");
        long count = Long.parseLong(words[1]) + 1;
        long sum = Long.parseLong(words[2]) + number;
        return number + " " + count + " " + sum;
    }

    static Topology topology(String input, String output) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(input, Consumed.with(Serdes.ByteArray(), Serdes.String()))
            .map((key, value) -> numbered(value))
            .groupByKey(Grouped.with("bucket", Serdes.String(), Serdes.Long()))
            .aggregate(
                () -> "none 0 0",
                (bucket, number, state) -> add(number, state),
                Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(STORE)
                    .withKeySerde(Serdes.String())
                    .withValueSerde(Serdes.String())
                    .withCachingDisabled())
            .toStream()
            .to(output, Produced.with(Serdes.String(), Serdes.String()));
        return builder.build();
    }

    /** Says how many records of the changelog were read: for a task that is active, or is yet to become it. */
    static class Restoring implements StateRestoreListener, StandbyUpdateListener {
        public void onRestoreStart(TopicPartition partition, String store, long first, long end) { }

        public void onBatchRestored(TopicPartition partition, String store, long last, long count) {
            say("restored", count);
        }

        public void onRestoreEnd(TopicPartition partition, String store, long total) { }

        public void onUpdateStart(TopicPartition partition, String store, long first) { }

        public void onBatchLoaded(
                TopicPartition partition, String store, TaskId task, long last, long count, long end) {
            say("restored", count);
        }

        public void onUpdateSuspended(
                TopicPartition partition, String store, long last, long end, SuspendReason why) { }
    }

    static List<String> tasks(KafkaStreams streams) {
        return streams.metadataForLocalThreads().stream()
            .flatMap(thread -> thread.activeTasks().stream())
            .map(task -> task.taskId().toString())
            .sorted()
            .toList();
    }

    static Map<String, String> sums(KafkaStreams streams) {
        Map<String, String> found = new TreeMap<>();
        var type = QueryableStoreTypes.<String, String>keyValueStore();
        try (KeyValueIterator<String, String> all =
                streams.store(StoreQueryParameters.fromNameAndType(STORE, type)).all()) {
            all.forEachRemaining(each -> found.put(each.key, each.value));
        }
        return found;
    }

    public static void main(String[] args) throws Exception {
        Properties config = new Properties();
        for (String option : Arrays.copyOfRange(args, 2, args.length)) {
            int equals = option.indexOf('=');
            config.put(option.substring(0, equals), option.substring(equals + 1));
        }
        KafkaStreams streams = new KafkaStreams(topology(args[0], args[1]), new StreamsConfig(config));
        streams.setStateListener((now, before) -> say("state", now.name()));
        Restoring restoring = new Restoring();
        streams.setGlobalStateRestoreListener(restoring);
        streams.setStandbyUpdateListener(restoring);
        streams.setUncaughtExceptionHandler(error -> {
            say("failed", error.toString());
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(30))));
        streams.start();
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in));
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            try {
                say(line, line.equals("tasks") ? tasks(streams) : sums(streams));
            } catch (Exception error) {
                say(line, error.toString());
            }
        }
    }
}
