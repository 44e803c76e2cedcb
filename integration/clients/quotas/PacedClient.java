import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** A paced client: see the package's docstring. Arguments as those of librdkafka.py. */
public class PacedClient {
    static final byte[] RECORD = new byte[2000];
    static volatile long began = 0;
    static final AtomicLong bytes = new AtomicLong();
    static double bytesPerSecond, pacedSeconds;

    static double elapsed() {
        return (System.nanoTime() - began) / 1e9;
    }

    static void add(long count) {
        if (began == 0) began = System.nanoTime();
        bytes.addAndGet(count);
    }

    static boolean isAhead(long done) {
        if (began == 0) return done > 0;
        double seconds = elapsed();
        return seconds < pacedSeconds && done > seconds * bytesPerSecond;
    }

    public static void main(String[] args) throws Exception {
        bytesPerSecond = Double.parseDouble(args[4]);
        pacedSeconds = Double.parseDouble(args[5]);
        Thread teller = new Thread(() -> {
            while (true) {
                try {
                    Thread.sleep(100);
                } catch (InterruptedException error) {
                    return;
                }
                if (began != 0) System.out.printf("%.3f %d%n", elapsed(), bytes.get());
            }
        });
        teller.setDaemon(true);
        teller.start();
        if (args[3].equals("produce")) produce(args[0], args[1], args[2]);
        else consume(args[0], args[1], args[2]);
    }

    static void produce(String bootstrap, String clientId, String topic) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "client.id", clientId,
            "linger.ms", 20, "batch.size", (int) (0.04 * bytesPerSecond), "buffer.memory", 4194304, "max.block.ms", 300000, "delivery.timeout.ms", 300000);
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
        for (long sent = 0; ; sent += RECORD.length) {
            while (isAhead(sent)) Thread.sleep(10);
            producer.send(new ProducerRecord<>(topic, RECORD), (metadata, error) -> {
                if (error == null) add(RECORD.length);
            });
        }
    }

    static void consume(String bootstrap, String clientId, String topic) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "client.id", clientId,
            "enable.auto.commit", false, "fetch.max.bytes", (int) (0.1 * bytesPerSecond),
            "max.partition.fetch.bytes", (int) (0.1 * bytesPerSecond));
        KafkaConsumer<byte[], byte[]> consumer =
            new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.assign(List.of(new TopicPartition(topic, 0)));
        consumer.seekToBeginning(consumer.assignment());
        while (true) {
            while (isAhead(bytes.get())) Thread.sleep(10);
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100)))
                add(record.value().length);
        }
    }
}
