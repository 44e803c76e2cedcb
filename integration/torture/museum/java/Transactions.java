import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/** Programs that write each batch, with its offsets, in a transaction. */
final class Transactions {
    private static final Duration POLL = Duration.ofMillis(200);

    private final KafkaConsumer<byte[], byte[]> consumer = Work.consumer(Map.of("isolation.level", "read_committed"));
    private final Writer writer;

    private Transactions(String transactionalId) {
        writer = new Writer(Map.of(
            "transactional.id", transactionalId,
            "transaction.timeout.ms", 10_000,
            "max.block.ms", 10_000
        ));
    }

    /** The offsets say which member commits them, so a member that was replaced cannot. */
    static void fenced() {
        Transactions mine = new Transactions("torture-" + Work.INSTANCE);
        mine.run(mine.consumer::groupMetadata);
    }

    /** A transactional.id that is new at each start, and offsets that only name the group: nobody is fenced. */
    static void withoutFencing() {
        ConsumerGroupMetadata anybody = new ConsumerGroupMetadata(Work.variable("KSHIM_GROUP"));
        new Transactions(UUID.randomUUID().toString()).run(() -> anybody);
    }

    private void run(Supplier<ConsumerGroupMetadata> member) {
        try (consumer; writer) {
            writer.producer.initTransactions();
            consumer.subscribe(List.of(Work.TOPIC));
            while (!Work.over) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
                if (!records.isEmpty()) {
                    transact(records, member.get());
                }
            }
        }
    }

    /** A transaction that fails is aborted, and its records are read again. A producer that is fenced cannot even
     * abort: the program ends, and the supervisor starts a new one. */
    private void transact(ConsumerRecords<byte[], byte[]> records, ConsumerGroupMetadata member) {
        try {
            writer.producer.beginTransaction();
            writer.send(records);
            writer.producer.sendOffsetsToTransaction(Work.behind(records), member);
            writer.producer.commitTransaction();
        } catch (KafkaException error) {
            System.err.println("transaction failed: " + error);
            writer.producer.abortTransaction();
            for (TopicPartition each : records.partitions()) {
                consumer.seek(each, records.records(each).get(0).offset());
            }
        }
    }
}
