import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupListing;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The calls of an administrator. */
final class Administering {
    private static final int TIMEOUT_S = 20;
    private final String bootstrap;
    private AdminClient made;

    /** A description of a group, as the protocol has it. */
    record Group(String state, int members) {}

    Administering(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    Map<String, Lines.Call> calls() {
        return Map.ofEntries(
            Map.entry("create_topic", Lines.does(Arguments.Topic.class, this::createTopic)),
            Map.entry("delete_topic", Lines.does(Arguments.Topic.class, this::deleteTopic)),
            Map.entry("grow_topic", Lines.does(Arguments.Topic.class, this::growTopic)),
            Map.entry("topics", arguments -> sorted(wait(admin().listTopics().names()))),
            Map.entry("ends", Lines.asks(Arguments.Topic.class, this::ends)),
            Map.entry("configs", Lines.asks(Arguments.Topic.class, this::configs)),
            Map.entry("alter_configs", Lines.does(Arguments.Topic.class, this::alterConfigs)),
            Map.entry("groups", arguments -> groups()),
            Map.entry("group", Lines.asks(Arguments.Name.class, this::group)),
            Map.entry("delete_group", Lines.does(Arguments.Name.class, this::deleteGroup)),
            Map.entry("delete_records", Lines.does(Arguments.Deleted.class, this::deleteRecords))
        );
    }

    private AdminClient admin() {
        if (made == null) {
            var settings = new Properties();
            settings.putAll(Security.SETTINGS);
            settings.put("bootstrap.servers", bootstrap);
            made = AdminClient.create(settings);
        }
        return made;
    }

    private static <T> T wait(KafkaFuture<T> future) throws Exception {
        return future.get(TIMEOUT_S, TimeUnit.SECONDS);
    }

    private static List<String> sorted(Iterable<String> names) {
        List<String> found = new ArrayList<>();
        names.forEach(found::add);
        found.sort(null);
        return found;
    }

    private void createTopic(Arguments.Topic asked) throws Exception {
        var topic = new NewTopic(asked.topic(), asked.partitions(), (short) 1).configs(asked.configs());
        wait(admin().createTopics(List.of(topic)).all());
    }

    private void deleteTopic(Arguments.Topic asked) throws Exception {
        wait(admin().deleteTopics(List.of(asked.topic())).all());
    }

    private void growTopic(Arguments.Topic asked) throws Exception {
        var more = NewPartitions.increaseTo(asked.partitions());
        wait(admin().createPartitions(Map.of(asked.topic(), more)).all());
    }

    /** Asked by a consumer: it waits until every partition has its leader. */
    private List<List<Long>> ends(Arguments.Topic asked) {
        Map<String, Object> settings = new HashMap<>(Security.SETTINGS);
        settings.put("bootstrap.servers", bootstrap);
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            var partitions = consumer.partitionsFor(asked.topic(), Consuming.TIMEOUT).stream()
                .sorted(Comparator.comparing(PartitionInfo::partition))
                .map(each -> new TopicPartition(each.topic(), each.partition()))
                .toList();
            var first = consumer.beginningOffsets(partitions, Consuming.TIMEOUT);
            var end = consumer.endOffsets(partitions, Consuming.TIMEOUT);
            return partitions.stream().map(each -> List.of(first.get(each), end.get(each))).toList();
        }
    }

    private static ConfigResource resource(String topic) {
        return new ConfigResource(ConfigResource.Type.TOPIC, topic);
    }

    private Map<String, String> configs(Arguments.Topic asked) throws Exception {
        ConfigResource resource = resource(asked.topic());
        var described = wait(admin().describeConfigs(List.of(resource)).all()).get(resource);
        Map<String, String> found = new HashMap<>();
        described.entries().forEach(each -> found.put(each.name(), each.value()));
        return found;
    }

    private void alterConfigs(Arguments.Topic asked) throws Exception {
        List<ConfigEntry> entries = new ArrayList<>();
        asked.configs().forEach((name, value) -> entries.add(new ConfigEntry(name, value)));
        wait(Versions.alterConfigs(admin(), resource(asked.topic()), entries));
    }

    @SuppressWarnings({"deprecation", "removal"}) // what replaces it is not in all versions
    private List<String> groups() throws Exception {
        var found = wait(admin().listConsumerGroups().all());
        return found.stream().map(ConsumerGroupListing::groupId).sorted().toList();
    }

    @SuppressWarnings({"deprecation", "removal"})
    private Group group(Arguments.Name asked) throws Exception {
        var found = wait(admin().describeConsumerGroups(List.of(asked.name())).all()).get(asked.name());
        return new Group(found.state().toString(), found.members().size());
    }

    private void deleteGroup(Arguments.Name asked) throws Exception {
        wait(admin().deleteConsumerGroups(List.of(asked.name())).all());
    }

    private void deleteRecords(Arguments.Deleted asked) throws Exception {
        var where = new TopicPartition(asked.topic(), asked.partition());
        wait(admin().deleteRecords(Map.of(where, RecordsToDelete.beforeOffset(asked.offset()))).all());
    }
}
