import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** The calls that no longer are as they were before 2.5. */
final class Versions {
    private Versions() {}

    static Map<TopicPartition, OffsetAndMetadata> committed(
        KafkaConsumer<?, ?> consumer, Collection<TopicPartition> partitions, Duration timeout
    ) {
        Map<TopicPartition, OffsetAndMetadata> found = new HashMap<>();
        partitions.forEach(each -> found.put(each, consumer.committed(each, timeout)));
        return found;
    }

    static void sendOffsets(
        KafkaProducer<?, ?> producer, Map<TopicPartition, OffsetAndMetadata> offsets, String group
    ) {
        producer.sendOffsetsToTransaction(offsets, group);
    }

    /** Sets all others back to their defaults. */
    static KafkaFuture<Void> alterConfigs(
        AdminClient admin, ConfigResource resource, List<ConfigEntry> entries
    ) {
        return admin.alterConfigs(Map.of(resource, new Config(entries))).all();
    }
}
