import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The calls of a producer: each call has its own. */
final class Producing {
    private static final int TIMEOUT_MS = 20_000;
    private final String bootstrap;

    Producing(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    Map<String, Lines.Call> calls() {
        return Map.of(
            "produce", Lines.asks(Arguments.Produce.class, this::produce),
            "transact", Lines.does(Arguments.Transact.class, this::transact)
        );
    }

    private List<List<Long>> produce(Arguments.Produce asked) throws Exception {
        Map<String, Object> settings = Map.of(
            "acks", String.valueOf(asked.acks()),
            "compression.type", asked.compression(),
            "enable.idempotence", asked.idempotent()
        );
        try (var producer = producer(settings)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (Arguments.Sent each : asked.records()) {
                sent.add(producer.send(each.to(asked.topic())));
            }
            List<List<Long>> found = new ArrayList<>();
            for (Future<RecordMetadata> each : sent) {
                found.add(List.of((long) each.get().partition(), each.get().offset()));
            }
            return found;
        }
    }

    private void transact(Arguments.Transact asked) throws Exception {
        try (var producer = producer(Map.of("transactional.id", asked.id()))) {
            producer.initTransactions();
            producer.beginTransaction();
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (Arguments.TopicRecord each : asked.records()) {
                sent.add(producer.send(each.sent().to(each.topic())));
            }
            if (!asked.offsets().isEmpty()) {
                Versions.sendOffsets(producer, Arguments.byPartition(asked.offsets()), asked.group());
            }
            for (Future<RecordMetadata> each : sent) {
                each.get();
            }
            if (asked.end().equals("commit")) {
                producer.commitTransaction();
            } else {
                producer.abortTransaction();
            }
        }
    }

    private KafkaProducer<byte[], byte[]> producer(Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(Security.SETTINGS);
        settings.putAll(more);
        settings.put("bootstrap.servers", bootstrap);
        settings.put("max.block.ms", TIMEOUT_MS);
        settings.put("request.timeout.ms", TIMEOUT_MS / 2);
        settings.put("delivery.timeout.ms", TIMEOUT_MS);
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }
}
