import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/** Programs that hand records to an executor, and report them. */
final class Reporting {
    private static final Duration POLL = Duration.ofMillis(200);

    private Reporting() {}

    /** The client commits what was polled, before it is processed. */
    static void executorAndAutoCommit() {
        ExecutorService executor = executor();
        Map<String, Object> settings = Map.of("enable.auto.commit", true, "auto.commit.interval.ms", 300);
        try (KafkaConsumer<byte[], byte[]> consumer = Work.consumer(settings)) {
            consumer.subscribe(List.of(Work.TOPIC));
            while (!Work.over) {
                for (ConsumerRecord<byte[], byte[]> each : consumer.poll(POLL)) {
                    executor.submit(() -> Work.process(each));
                }
            }
        }
    }

    /** Commit when all records of a poll are processed. */
    static void executorThatIsAwaited() {
        ExecutorService executor = executor();
        try (KafkaConsumer<byte[], byte[]> consumer = Work.consumer(Map.of())) {
            consumer.subscribe(List.of(Work.TOPIC));
            while (!Work.over) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
                List<Future<?>> tasks = new ArrayList<>();
                records.forEach(each -> tasks.add(executor.submit(() -> Work.process(each))));
                tasks.forEach(Work::await);
                Work.commit(consumer, Work.behind(records));
            }
        }
    }

    /** One thread, which does not outlive the program. */
    private static ExecutorService executor() {
        return Executors.newSingleThreadExecutor(task -> {
            Thread thread = new Thread(task, "worker");
            thread.setDaemon(true);
            return thread;
        });
    }
}
