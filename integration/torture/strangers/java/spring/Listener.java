import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.listener.KafkaMessageListenerContainer;
import org.springframework.kafka.listener.MessageListener;

/** A listener in a container, which reports each record: `java Listener ACK_MODE`. */
public final class Listener {
    public static void main(String[] arguments) throws InterruptedException {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", System.getenv("KSHIM_BOOTSTRAP"),
            "group.id", System.getenv("KSHIM_GROUP"),
            "auto.offset.reset", "earliest",
            "heartbeat.interval.ms", 200,
            "reconnect.backoff.max.ms", 300,
            "max.poll.records", 40,
            "key.deserializer", ByteArrayDeserializer.class,
            "value.deserializer", ByteArrayDeserializer.class
        );
        ContainerProperties properties = new ContainerProperties(System.getenv("KSHIM_TOPIC"));
        properties.setAckMode(ContainerProperties.AckMode.valueOf(arguments[0]));
        properties.setMessageListener((MessageListener<byte[], byte[]>) Listener::process);
        var factory = new DefaultKafkaConsumerFactory<byte[], byte[]>(settings);
        var container = new KafkaMessageListenerContainer<>(factory, properties);
        Runtime.getRuntime().addShutdownHook(new Thread(container::stop));
        container.start();
        Thread.currentThread().join();
    }

    private static void process(ConsumerRecord<byte[], byte[]> record) {
        try {
            Thread.sleep(12);
        } catch (InterruptedException error) {
            throw new IllegalStateException("nobody interrupts this thread", error);
        }
        System.out.println("processed " + record.topic() + " " + record.partition() + " " + record.offset());
    }
}
