import java.time.Duration;
import java.util.Properties;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/** Counts the records of each key in a store, and writes the number of each record with the count after it:
 * `java Counts GUARANTEE`. */
public final class Counts {
    private static final Pattern NUMBER = Pattern.compile("\"number\": (\\d+)");

    public static void main(String[] arguments) {
        String output = System.getenv("KSHIM_OUTPUT");
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(System.getenv("KSHIM_TOPIC"), Consumed.with(Serdes.String(), Serdes.String()))
            .groupByKey()
            .aggregate(
                () -> "none 0",
                (key, value, state) -> next(value, state),
                Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("counts")
                    .withKeySerde(Serdes.String())
                    .withValueSerde(Serdes.String())
                    .withCachingDisabled())
            .toStream()
            .mapValues(state -> "{\"number\": %s, \"count\": %s}".formatted((Object[]) state.split(" ")))
            .to(output, Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings(arguments[0]));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(4))));
        streams.start();
    }

    /** The state after a record: its number, and how many came so far. */
    private static String next(String value, String state) {
        Matcher found = NUMBER.matcher(value);
        if (!found.find()) {
            throw new IllegalArgumentException(value);
        }
        return found.group(1) + " " + (Long.parseLong(state.split(" ")[1]) + 1);
    }

    private static Properties settings(String guarantee) {
        Properties settings = new Properties();
        settings.put("application.id", System.getenv("KSHIM_GROUP"));
        settings.put("bootstrap.servers", System.getenv("KSHIM_BOOTSTRAP"));
        settings.put("processing.guarantee", guarantee);
        settings.put("state.dir", System.getenv("KSHIM_STATE_DIR"));
        settings.put("commit.interval.ms", "300");
        settings.put("heartbeat.interval.ms", "200");
        settings.put("reconnect.backoff.max.ms", "300");
        return settings;
    }
}
