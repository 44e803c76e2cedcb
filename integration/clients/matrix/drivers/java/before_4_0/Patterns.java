import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/** Subscriptions to patterns, which only the client looks for. */
final class Patterns {
    private Patterns() {}

    static void subscribe(
        KafkaConsumer<?, ?> consumer, Arguments.Open asked, ConsumerRebalanceListener listener
    ) {
        consumer.subscribe(Pattern.compile(asked.pattern()), listener);
    }
}
