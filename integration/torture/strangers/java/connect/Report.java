import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.transforms.Transformation;

/** A transformation that makes a line of each record, which says where the record stood. */
public final class Report implements Transformation<SinkRecord> {
    @Override
    public SinkRecord apply(SinkRecord record) {
        String line = "processed " + record.topic() + " " + record.kafkaPartition() + " " + record.kafkaOffset();
        return record.newRecord(
            record.topic(),
            record.kafkaPartition(),
            null,
            null,
            Schema.STRING_SCHEMA,
            line,
            record.timestamp()
        );
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef();
    }

    @Override
    public void configure(Map<String, ?> configs) { }

    @Override
    public void close() { }
}
