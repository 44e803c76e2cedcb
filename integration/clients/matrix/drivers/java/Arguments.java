import com.google.gson.JsonPrimitive;
import com.google.gson.annotations.SerializedName;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;

/** The arguments of the calls, with the values of those that may be left out. */
final class Arguments {
    private Arguments() {}

    /** A record that is sent. */
    record Sent(String key, String value, Integer partition, List<List<String>> headers, Long timestamp) {
        Sent {
            headers = Objects.requireNonNullElse(headers, List.of());
        }

        ProducerRecord<byte[], byte[]> to(String topic) {
            List<Header> named = headers.stream().map(Sent::header).toList();
            return new ProducerRecord<>(topic, partition, timestamp, data(key), data(value), named);
        }

        private static Header header(List<String> each) {
            return new RecordHeader(each.get(0), data(each.get(1)));
        }
    }

    /** [topic, record]. */
    record TopicRecord(String topic, Sent sent) {}

    /** [topic, partition, offset, metadata]. */
    record Offset(TopicPartition partition, OffsetAndMetadata at) {}

    record Produce(String topic, List<Sent> records, Integer acks, String compression, boolean idempotent) {
        Produce {
            acks = Objects.requireNonNullElse(acks, -1);
            compression = Objects.requireNonNullElse(compression, "none");
        }
    }

    record Transact(String id, List<TopicRecord> records, String end, String group, List<Offset> offsets) {
        Transact {
            offsets = Objects.requireNonNullElse(offsets, List.of());
        }
    }

    record Open(
        String name,
        List<String> topics,
        String pattern,
        List<TopicPartition> partitions,
        String group,
        String protocol,
        String reset,
        List<String> assignors,
        String instance,
        boolean autoCommit,
        boolean commitOnRevoke,
        Integer sessionTimeoutMs,
        Integer maxPollIntervalMs,
        String isolation,
        Integer requestTimeoutMs
    ) {
        Open {
            reset = Objects.requireNonNullElse(reset, "earliest");
            assignors = Objects.requireNonNullElse(assignors, List.of("range"));
            sessionTimeoutMs = Objects.requireNonNullElse(sessionTimeoutMs, 10_000);
            maxPollIntervalMs = Objects.requireNonNullElse(maxPollIntervalMs, 300_000);
            isolation = Objects.requireNonNullElse(isolation, "read_uncommitted");
        }
    }

    record Name(String name) {}

    record Take(String name, int count, long timeoutMs) {}

    record Commit(String name, List<Offset> offsets, @SerializedName("wait") Boolean waits) {
        Commit {
            waits = Objects.requireNonNullElse(waits, true);
        }
    }

    record Partitions(String name, List<TopicPartition> partitions) {}

    record Seek(String name, String topic, int partition, JsonPrimitive offset, long timestampMs) {
        TopicPartition where() {
            return new TopicPartition(topic, partition);
        }
    }

    record Stall(String name, long ms) {}

    record Topic(String topic, Integer partitions, Map<String, String> configs) {
        Topic {
            partitions = Objects.requireNonNullElse(partitions, 1);
            configs = Objects.requireNonNullElse(configs, Map.of());
        }
    }

    record Deleted(String topic, int partition, long offset) {}

    static Map<TopicPartition, OffsetAndMetadata> byPartition(List<Offset> offsets) {
        return offsets.stream().collect(Collectors.toMap(Offset::partition, Offset::at));
    }

    static byte[] data(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] data) {
        return data == null ? null : new String(data, StandardCharsets.UTF_8);
    }
}
