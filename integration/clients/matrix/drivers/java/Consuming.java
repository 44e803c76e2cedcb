import com.google.gson.JsonPrimitive;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The calls of a consumer. */
final class Consuming {
    static final Duration TIMEOUT = Duration.ofSeconds(20);
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        "sticky", "org.apache.kafka.clients.consumer.StickyAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    );
    private static final List<String> REMOTE_ASSIGNORS = List.of("range", "uniform");
    private final String bootstrap;
    private final Map<String, Polling> consumers = new HashMap<>();

    Consuming(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    Map<String, Lines.Call> calls() {
        return Map.ofEntries(
            Map.entry("open", Lines.does(Arguments.Open.class, this::open)),
            Map.entry("take", Lines.asks(Arguments.Take.class, this::take)),
            Map.entry("events", Lines.asks(Arguments.Name.class, asked -> of(asked.name()).events())),
            Map.entry("assignment", Lines.asks(Arguments.Name.class, this::assignment)),
            Map.entry("commit", Lines.does(Arguments.Commit.class, this::commit)),
            Map.entry("committed", Lines.asks(Arguments.Partitions.class, this::committed)),
            Map.entry("position", Lines.asks(Arguments.Seek.class, this::position)),
            Map.entry("seek", Lines.does(Arguments.Seek.class, this::seek)),
            Map.entry("seek_to_time", Lines.does(Arguments.Seek.class, this::seekToTime)),
            Map.entry("pause", Lines.does(Arguments.Partitions.class, this::pause)),
            Map.entry("resume", Lines.does(Arguments.Partitions.class, this::resume)),
            Map.entry("stall", Lines.does(Arguments.Stall.class, this::stall)),
            Map.entry("close", Lines.does(Arguments.Name.class, this::close))
        );
    }

    private Polling of(String name) {
        Polling found = consumers.get(name);
        if (found == null) {
            throw new IllegalArgumentException("no consumer " + name);
        }
        return found;
    }

    private void open(Arguments.Open asked) {
        var bytes = new ByteArrayDeserializer();
        var consumer = new KafkaConsumer<>(settings(asked), bytes, bytes);
        var polling = new Polling(consumer, asked.commitOnRevoke());
        if (asked.partitions() != null) {
            consumer.assign(asked.partitions());
        } else if (asked.pattern() != null) {
            Patterns.subscribe(consumer, asked, polling);
        } else {
            consumer.subscribe(asked.topics(), polling);
        }
        consumers.put(asked.name(), polling);
        polling.start();
    }

    private Map<String, Object> settings(Arguments.Open asked) {
        Map<String, Object> settings = new HashMap<>(Security.SETTINGS);
        settings.put("bootstrap.servers", bootstrap);
        settings.put("auto.offset.reset", asked.reset());
        settings.put("enable.auto.commit", asked.autoCommit());
        settings.put("max.poll.interval.ms", asked.maxPollIntervalMs());
        settings.put("metadata.max.age.ms", 500);
        settings.put("isolation.level", asked.isolation());
        settings.putAll(ofProtocol(asked));
        if (asked.group() != null) {
            settings.put("group.id", asked.group());
        } else if (asked.partitions() == null) { // the client subscribes only in a group
            settings.put("group.id", "alone-" + UUID.randomUUID());
        }
        if (asked.requestTimeoutMs() != null) {
            settings.put("request.timeout.ms", asked.requestTimeoutMs());
        }
        if (asked.instance() != null) {
            if (!ConsumerConfig.configNames().contains("group.instance.id")) {
                throw new Lines.Cannot("no static members");
            }
            settings.put("group.instance.id", asked.instance());
        }
        return settings;
    }

    private static Map<String, Object> ofProtocol(Arguments.Open asked) {
        if ("consumer".equals(asked.protocol())) {
            String assignor = asked.assignors().get(0);
            if (!REMOTE_ASSIGNORS.contains(assignor)) {
                throw new Lines.Cannot("no assignor " + assignor);
            }
            return Map.of("group.protocol", "consumer", "group.remote.assignor", assignor);
        }
        return Map.of(
            "session.timeout.ms", asked.sessionTimeoutMs(),
            "heartbeat.interval.ms", asked.sessionTimeoutMs() / 4,
            "partition.assignment.strategy", asked.assignors().stream().map(Consuming::assignor).toList()
        );
    }

    private static String assignor(String name) {
        String found = ASSIGNORS.getOrDefault(name, "");
        try {
            Class.forName(found);
        } catch (ClassNotFoundException error) {
            throw new Lines.Cannot("no assignor " + name);
        }
        return found;
    }

    private List<Polling.Received> take(Arguments.Take asked) throws Exception {
        return of(asked.name()).take(asked.count(), asked.timeoutMs());
    }

    private List<TopicPartition> assignment(Arguments.Name asked) throws Exception {
        return Polling.sorted(of(asked.name()).call(KafkaConsumer::assignment));
    }

    private void commit(Arguments.Commit asked) throws Exception {
        of(asked.name()).call(consumer -> {
            if (asked.waits() && asked.offsets() == null) {
                consumer.commitSync(TIMEOUT);
            } else if (asked.waits()) {
                consumer.commitSync(Arguments.byPartition(asked.offsets()), TIMEOUT);
            } else if (asked.offsets() == null) {
                consumer.commitAsync();
            } else {
                consumer.commitAsync(Arguments.byPartition(asked.offsets()), null);
            }
            return null;
        });
    }

    private Object committed(Arguments.Partitions asked) throws Exception {
        return of(asked.name()).call(consumer -> {
            var found = Versions.committed(consumer, asked.partitions(), TIMEOUT);
            return asked.partitions().stream().map(found::get).collect(Collectors.toList());
        });
    }

    private long position(Arguments.Seek asked) throws Exception {
        return of(asked.name()).call(consumer -> consumer.position(asked.where(), TIMEOUT));
    }

    private void seek(Arguments.Seek asked) throws Exception {
        of(asked.name()).call(consumer -> {
            JsonPrimitive offset = asked.offset();
            if (offset.isNumber()) {
                consumer.seek(asked.where(), offset.getAsLong());
                return null;
            }
            if (offset.getAsString().equals("beginning")) {
                consumer.seekToBeginning(List.of(asked.where()));
            } else {
                consumer.seekToEnd(List.of(asked.where()));
            }
            return consumer.position(asked.where(), TIMEOUT); // the client asks for it only now
        });
    }

    private void seekToTime(Arguments.Seek asked) throws Exception {
        of(asked.name()).call(consumer -> {
            TopicPartition where = asked.where();
            var found = consumer.offsetsForTimes(Map.of(where, asked.timestampMs()), TIMEOUT).get(where);
            if (found == null) {
                consumer.seekToEnd(List.of(where));
            } else {
                consumer.seek(where, found.offset());
            }
            return null;
        });
    }

    private void pause(Arguments.Partitions asked) throws Exception {
        of(asked.name()).call(consumer -> {
            consumer.pause(asked.partitions());
            return null;
        });
    }

    private void resume(Arguments.Partitions asked) throws Exception {
        of(asked.name()).call(consumer -> {
            consumer.resume(asked.partitions());
            return null;
        });
    }

    private void stall(Arguments.Stall asked) {
        of(asked.name()).begin(consumer -> {
            Thread.sleep(asked.ms());
            return null;
        });
    }

    private void close(Arguments.Name asked) throws Exception {
        of(asked.name()).close();
        consumers.remove(asked.name());
    }
}
