import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.StreamSupport;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;

/** A consumer on a thread of its own, which polls it and carries out calls in between. */
final class Polling implements ConsumerRebalanceListener {
    private static final Duration POLL = Duration.ofMillis(50);
    /** A rebalance listener is called in the next poll, so this shows in how long a rebalance takes. */
    private static final Duration SHORT_POLL = Duration.ofMillis(5);
    private static final int CALL_S = 50;

    /** A record as the protocol has it. */
    record Received(
        String topic,
        int partition,
        long offset,
        String key,
        String value,
        List<List<String>> headers,
        long timestamp
    ) {
        static Received of(ConsumerRecord<byte[], byte[]> record) {
            return new Received(
                record.topic(),
                record.partition(),
                record.offset(),
                Arguments.text(record.key()),
                Arguments.text(record.value()),
                StreamSupport.stream(record.headers().spliterator(), false).map(Received::header).toList(),
                record.timestamp()
            );
        }

        private static List<String> header(Header each) {
            List<String> pair = new ArrayList<>(); // a value may be null
            pair.add(each.key());
            pair.add(Arguments.text(each.value()));
            return pair;
        }
    }

    interface Function<T> {
        T apply(KafkaConsumer<byte[], byte[]> consumer) throws Exception;
    }

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final boolean commitOnRevoke;
    private final BlockingQueue<Received> records = new LinkedBlockingQueue<>();
    private final BlockingQueue<FutureTask<?>> calls = new LinkedBlockingQueue<>();
    private final AtomicReference<Exception> failure = new AtomicReference<>();
    private final AtomicReference<List<List<Object>>> events = new AtomicReference<>(List.of());
    private final Thread thread = new Thread(this::run, "polling");
    private boolean ends;

    Polling(KafkaConsumer<byte[], byte[]> consumer, boolean commitOnRevoke) {
        this.consumer = consumer;
        this.commitOnRevoke = commitOnRevoke;
        thread.setDaemon(true);
    }

    void start() {
        thread.start();
    }

    /** The records that came, at most `count`; waits for them. Throws what the consumer has thrown, if none came. */
    List<Received> take(int count, long timeoutMs) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
        List<Received> found = new ArrayList<>();
        for (long left = deadline - System.nanoTime();
                found.size() < count && left > 0;
                left = deadline - System.nanoTime()) {
            Received next = records.poll(Math.min(left, POLL.toNanos()), TimeUnit.NANOSECONDS);
            if (next != null) {
                found.add(next);
            } else if (found.isEmpty()) {
                throwFailure();
            }
        }
        return found;
    }

    /** What the listener was told since the last call. */
    List<List<Object>> events() {
        return events.getAndSet(List.of());
    }

    /** `function(consumer)`, on the consumer's thread. Throws what it throws. */
    <T> T call(Function<T> function) throws Exception {
        throwFailure();
        return begin(function).get(CALL_S, TimeUnit.SECONDS);
    }

    /** Have `function(consumer)` called on the consumer's thread. */
    <T> FutureTask<T> begin(Function<T> function) {
        var task = new FutureTask<T>(() -> function.apply(consumer));
        calls.add(task);
        return task;
    }

    void close() throws Exception {
        call(it -> {
            ends = true;
            it.close();
            return null;
        });
        thread.join();
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        note("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        if (commitOnRevoke) {
            consumer.commitSync();
        }
        note("revoked", partitions);
    }

    /** Clients before 2.4 do not know it: so it overrides nothing there. */
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        note("lost", partitions);
    }

    private void note(String kind, Collection<TopicPartition> partitions) {
        events.updateAndGet(seen -> {
            List<List<Object>> more = new ArrayList<>(seen);
            more.add(List.of(kind, sorted(partitions), System.currentTimeMillis()));
            return more;
        });
    }

    static List<TopicPartition> sorted(Collection<TopicPartition> partitions) {
        var byTopic = Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition);
        return partitions.stream().sorted(byTopic).toList();
    }

    private void run() {
        while (!ends) {
            try {
                consumer.poll(SHORT_POLL).forEach(record -> records.add(Received.of(record)));
                carryOut(calls.poll());
            } catch (Exception error) {
                failure.set(error);
                carryOut(nextCall());
            }
        }
    }

    /** All calls that wait, from this one on. */
    private void carryOut(FutureTask<?> first) {
        for (FutureTask<?> each = first; each != null && !ends; each = calls.poll()) {
            each.run();
        }
    }

    /** The next call, if there is one before it is time to poll again. */
    private FutureTask<?> nextCall() {
        try {
            return calls.poll(POLL.toNanos(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException error) {
            throw new IllegalStateException("nobody interrupts this thread", error);
        }
    }

    private void throwFailure() throws Exception {
        Exception error = failure.getAndSet(null);
        if (error != null) {
            throw error;
        }
    }
}
