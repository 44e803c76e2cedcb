import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;

/** Like `integration.support.member`, but Apache's consumer. At SIGTERM it closes between two polls. */
public final class Member {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static volatile boolean stopping = false;

    public static void main(String[] arguments) throws Exception {
        JsonNode options = JSON.readTree(arguments[0]);
        Thread main = Thread.currentThread();
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(properties(options));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stopping = true;
            consumer.wakeup();
            try {
                main.join();
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }));
        emit("started", Map.of());
        consumer.subscribe(List.of(options.get("topic").asText()), new Listener(consumer));
        consume(consumer);
        long began = System.nanoTime();
        consumer.close();
        emit("closed", Map.of("seconds", (System.nanoTime() - began) / 1e9));
    }

    private static Properties properties(JsonNode options) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", options.get("bootstrap").asText());
        properties.put("group.id", options.get("group_id").asText());
        properties.put("client.id", options.get("client_id").asText());
        properties.put("group.protocol", options.get("protocol").asText());
        if (options.get("protocol").asText().equals("classic")) {
            properties.put("session.timeout.ms", options.get("session_timeout_ms").asText());
            properties.put("heartbeat.interval.ms", "300");
        }
        properties.put("metadata.max.age.ms", options.get("metadata_max_age_ms").asText());
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        String strings = "org.apache.kafka.common.serialization.StringDeserializer";
        properties.put("key.deserializer", strings);
        properties.put("value.deserializer", strings);
        return properties;
    }

    private static void consume(KafkaConsumer<String, String> consumer) {
        while (!stopping) {
            try {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofSeconds(5));
                if (!records.isEmpty()) {
                    commit(consumer, records);
                }
            } catch (WakeupException error) {
                // the loop ends
            }
        }
    }

    /** Prints the records that were read, and only then commits their offsets. */
    private static void commit(KafkaConsumer<String, String> consumer, ConsumerRecords<String, String> records) {
        List<List<Object>> read = new ArrayList<>();
        Map<TopicPartition, OffsetAndMetadata> offsets = new LinkedHashMap<>();
        for (ConsumerRecord<String, String> each : records) {
            read.add(List.of(each.partition(), each.offset(), each.value()));
            offsets.put(new TopicPartition(each.topic(), each.partition()), new OffsetAndMetadata(each.offset() + 1));
        }
        emit("records", Map.of("records", read));
        try {
            consumer.commitSync(offsets);
        } catch (WakeupException error) {
            return;
        } catch (KafkaException error) {
            emit("commit_failed", Map.of("error", error.getClass().getSimpleName()));
            return;
        }
        Map<String, Long> done = new LinkedHashMap<>();
        offsets.forEach((partition, offset) -> done.put(String.valueOf(partition.partition()), offset.offset()));
        emit("committed", Map.of("offsets", done));
    }

    private static synchronized void emit(String event, Map<String, ?> facts) {
        Map<String, Object> line = new LinkedHashMap<>(facts);
        line.put("event", event);
        try {
            System.out.println(JSON.writeValueAsString(line));
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private record Listener(KafkaConsumer<String, String> consumer) implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            int generation = consumer.groupMetadata().generationId();
            emit("assigned", Map.of("generation_id", generation, "partitions", numbers(partitions)));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            emit("revoked", Map.of("partitions", numbers(partitions)));
        }

        private static List<Integer> numbers(Collection<TopicPartition> partitions) {
            return partitions.stream().map(TopicPartition::partition).sorted().toList();
        }
    }
}
