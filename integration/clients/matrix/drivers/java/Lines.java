import com.google.gson.FieldNamingPolicy;
import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonDeserializer;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonSerializer;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** The lines of the protocol, and how Kafka's own types are written in them. */
final class Lines {
    /** One call of the protocol. */
    interface Call {
        Object answer(JsonObject arguments) throws Exception;
    }

    interface Question<A> {
        Object answer(A arguments) throws Exception;
    }

    interface Order<A> {
        void carryOut(A arguments) throws Exception;
    }

    /** The client has no such call. */
    static final class Cannot extends RuntimeException {
        Cannot(String why) {
            super(why);
        }
    }

    private static final JsonDeserializer<TopicPartition> READ_PARTITION =
        (json, type, context) -> partition(json.getAsJsonArray());
    private static final JsonSerializer<TopicPartition> WRITE_PARTITION =
        (partition, type, context) -> context.serialize(List.of(partition.topic(), partition.partition()));
    private static final JsonSerializer<OffsetAndMetadata> WRITE_COMMITTED =
        (found, type, context) -> context.serialize(List.of(found.offset(), found.metadata()));
    private static final JsonDeserializer<Arguments.Offset> READ_OFFSET = (json, type, context) -> {
        JsonArray named = json.getAsJsonArray();
        var at = new OffsetAndMetadata(named.get(2).getAsLong(), named.get(3).getAsString());
        return new Arguments.Offset(partition(named), at);
    };
    private static final JsonDeserializer<Arguments.TopicRecord> READ_RECORD = (json, type, context) -> {
        JsonArray pair = json.getAsJsonArray();
        Arguments.Sent sent = context.deserialize(pair.get(1), Arguments.Sent.class);
        return new Arguments.TopicRecord(pair.get(0).getAsString(), sent);
    };
    private static final Gson GSON = new GsonBuilder()
        .serializeNulls()
        .disableHtmlEscaping()
        .setFieldNamingPolicy(FieldNamingPolicy.LOWER_CASE_WITH_UNDERSCORES)
        .registerTypeAdapter(TopicPartition.class, READ_PARTITION)
        .registerTypeAdapter(TopicPartition.class, WRITE_PARTITION)
        .registerTypeAdapter(OffsetAndMetadata.class, WRITE_COMMITTED)
        .registerTypeAdapter(Arguments.Offset.class, READ_OFFSET)
        .registerTypeAdapter(Arguments.TopicRecord.class, READ_RECORD)
        .create();

    private Lines() {}

    /** A call that is answered by a value. */
    static <A> Call asks(Class<A> type, Question<A> question) {
        return arguments -> question.answer(GSON.fromJson(arguments, type));
    }

    /** A call that is answered by null. */
    static <A> Call does(Class<A> type, Order<A> order) {
        return arguments -> {
            order.carryOut(GSON.fromJson(arguments, type));
            return null;
        };
    }

    /** Answer the lines of stdin until it ends. */
    static void serve(Map<String, Call> calls) throws IOException {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var output = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            output.println(GSON.toJson(reply(calls, JsonParser.parseString(line).getAsJsonObject())));
        }
    }

    private static Map<String, Object> reply(Map<String, Call> calls, JsonObject request) {
        String name = request.get("do").getAsString();
        Call call = calls.get(name);
        if (call == null) {
            return Map.of("cannot", "no " + name);
        }
        try {
            return Collections.singletonMap("is", call.answer(request));
        } catch (Cannot error) {
            return Map.of("cannot", error.getMessage());
        } catch (Exception error) {
            Throwable cause = error;
            while (cause instanceof ExecutionException) {
                cause = cause.getCause();
            }
            String message = String.valueOf(cause.getMessage());
            return Map.of("error", cause.getClass().getSimpleName(), "message", message);
        }
    }

    private static TopicPartition partition(JsonArray pair) {
        return new TopicPartition(pair.get(0).getAsString(), pair.get(1).getAsInt());
    }
}
