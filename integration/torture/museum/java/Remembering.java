import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Programs that keep their positions in memory, and commit them when partitions are revoked. */
final class Remembering implements ConsumerRebalanceListener {
    private static final Duration POLL = Duration.ofMillis(200);
    private static final long EVERY_NS = 1_500_000_000L;

    private final KafkaConsumer<byte[], byte[]> consumer = Work.consumer(Map.of("max.poll.records", 10));
    private final Map<TopicPartition, OffsetAndMetadata> written = new HashMap<>();
    private final boolean forgets;

    private Remembering(boolean forgets) {
        this.forgets = forgets;
    }

    /** When a partition comes back, others have gone on from there. */
    static void seeksFromMemory() {
        new Remembering(false).run();
    }

    static void forgetsOnRevoke() {
        new Remembering(true).run();
    }

    private void run() {
        try (consumer; Writer writer = new Writer(Map.of())) {
            consumer.subscribe(List.of(Work.TOPIC), this);
            long committedNs = System.nanoTime();
            while (!Work.over) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
                writer.write(records);
                written.putAll(Work.behind(records));
                if (System.nanoTime() - committedNs > EVERY_NS) {
                    commit();
                    committedNs = System.nanoTime();
                }
            }
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        for (TopicPartition each : partitions) {
            if (written.containsKey(each)) {
                consumer.seek(each, written.get(each));
            }
        }
    }

    /** Commits what is written. It is also called when the consumer closes. */
    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        commit();
        if (forgets) {
            partitions.forEach(written::remove);
        }
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        if (forgets) {
            partitions.forEach(written::remove);
        }
    }

    private void commit() {
        Map<TopicPartition, OffsetAndMetadata> mine = new HashMap<>(written);
        mine.keySet().retainAll(consumer.assignment());
        Work.commit(consumer, mine);
    }
}
