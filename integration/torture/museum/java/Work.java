import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/** What all programs share: their settings, the work of some milliseconds for each record, and a commit. */
final class Work {
    static final String TOPIC = variable("KSHIM_TOPIC");
    static final String OUTPUT = variable("KSHIM_OUTPUT");
    static final String INSTANCE = variable("KSHIM_INSTANCE");
    private static final long WORK_MS = 12;

    /** True from SIGTERM on: the program ends in good order. */
    static volatile boolean over = false;

    private Work() {}

    /** End in good order at SIGTERM: the JVM waits for the main thread. */
    static void endAtSigterm() {
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            over = true;
            try {
                main.join();
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }));
    }

    /** A consumer of the group, which does not commit by itself, with further settings. */
    static KafkaConsumer<byte[], byte[]> consumer(Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(Map.of(
            "bootstrap.servers", variable("KSHIM_BOOTSTRAP"),
            "group.id", variable("KSHIM_GROUP"),
            "auto.offset.reset", "earliest",
            "enable.auto.commit", false,
            "heartbeat.interval.ms", 200,
            "reconnect.backoff.max.ms", 300,
            "max.poll.records", 40,
            "key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer",
            "value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer"
        ));
        settings.putAll(more);
        return new KafkaConsumer<>(settings);
    }

    /** Do the work of one record, and report it. */
    static void process(ConsumerRecord<byte[], byte[]> record) {
        rest();
        System.out.println("processed " + record.topic() + " " + record.partition() + " " + record.offset());
    }

    /** Take the time that a record takes. */
    static void rest() {
        try {
            Thread.sleep(WORK_MS);
        } catch (InterruptedException error) {
            throw new IllegalStateException("nobody interrupts this thread", error);
        }
    }

    /** Wait until something is done. What went wrong with it ends the program. */
    static void await(Future<?> task) {
        try {
            task.get();
        } catch (InterruptedException | ExecutionException error) {
            throw new IllegalStateException(error);
        }
    }

    /** The offsets behind these records. */
    static Map<TopicPartition, OffsetAndMetadata> behind(ConsumerRecords<byte[], byte[]> records) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (ConsumerRecord<byte[], byte[]> each : records) {
            offsets.put(new TopicPartition(each.topic(), each.partition()), new OffsetAndMetadata(each.offset() + 1));
        }
        return offsets;
    }

    /** Commit. What fails is not repeated: the records come again. */
    static void commit(KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, OffsetAndMetadata> offsets) {
        try {
            consumer.commitSync(offsets);
        } catch (KafkaException error) {
            System.err.println("commit failed: " + error);
        }
    }

    static String variable(String name) {
        return Objects.requireNonNull(System.getenv(name), name);
    }
}
