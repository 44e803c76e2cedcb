import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/** Writes a result for each record. */
final class Writer implements AutoCloseable {
    final KafkaProducer<byte[], byte[]> producer;

    /** more: settings besides those that all writers have. */
    Writer(Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(Map.of(
            "bootstrap.servers", Work.variable("KSHIM_BOOTSTRAP"),
            "reconnect.backoff.max.ms", 300,
            "key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer",
            "value.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer"
        ));
        settings.putAll(more);
        producer = new KafkaProducer<>(settings);
    }

    /** Write the results of these records, and wait until all are acknowledged. */
    void write(Iterable<ConsumerRecord<byte[], byte[]>> records) {
        for (Future<RecordMetadata> each : send(records)) {
            Work.await(each);
        }
    }

    /** Do the work of these records, and send their results. */
    List<Future<RecordMetadata>> send(Iterable<ConsumerRecord<byte[], byte[]>> records) {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (ConsumerRecord<byte[], byte[]> each : records) {
            Work.rest();
            var result = new ProducerRecord<>(Work.OUTPUT, null, each.key(), each.value(), each.headers());
            result.headers().add("kshim-instance", Work.INSTANCE.getBytes());
            sent.add(producer.send(result));
        }
        return sent;
    }

    @Override
    public void close() {
        producer.close();
    }
}
