import java.time.Duration;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** The calls that were others before 2.5. */
final class Versions {
    private Versions() {}

    static Map<TopicPartition, OffsetAndMetadata> committed(
        KafkaConsumer<?, ?> consumer, Collection<TopicPartition> partitions, Duration timeout
    ) {
        return consumer.committed(new HashSet<>(partitions), timeout);
    }

    @SuppressWarnings({"deprecation", "removal"}) // what replaces it is not in all versions
    static void sendOffsets(
        KafkaProducer<?, ?> producer, Map<TopicPartition, OffsetAndMetadata> offsets, String group
    ) {
        producer.sendOffsetsToTransaction(offsets, new ConsumerGroupMetadata(group));
    }

    static KafkaFuture<Void> alterConfigs(
        AdminClient admin, ConfigResource resource, List<ConfigEntry> entries
    ) {
        var set = entries.stream().map(each -> new AlterConfigOp(each, AlterConfigOp.OpType.SET)).toList();
        return admin.incrementalAlterConfigs(Map.of(resource, set)).all();
    }
}
