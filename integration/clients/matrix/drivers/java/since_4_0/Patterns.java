import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;

/** Subscriptions to patterns: with the consumer protocol the server looks for topics. */
final class Patterns {
    private Patterns() {}

    static void subscribe(
        KafkaConsumer<?, ?> consumer, Arguments.Open asked, ConsumerRebalanceListener listener
    ) {
        if ("consumer".equals(asked.protocol())) {
            consumer.subscribe(new SubscriptionPattern(asked.pattern()), listener);
        } else {
            consumer.subscribe(Pattern.compile(asked.pattern()), listener);
        }
    }
}
