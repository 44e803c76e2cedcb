import java.io.IOException;
import java.io.InputStream;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

/** A driver of Apache's Java client, in any version. `integration.clients.matrix` describes the calls. */
final class Main {
    private Main() {}

    public static void main(String[] arguments) throws IOException {
        Map<String, Lines.Call> calls = new HashMap<>();
        calls.put("hello", nothing -> List.of("kafka-clients", version()));
        calls.putAll(new Producing(arguments[0]).calls());
        calls.putAll(new Consuming(arguments[0]).calls());
        calls.putAll(new Administering(arguments[0]).calls());
        Lines.serve(calls);
        System.exit(0); // nothing is closed, as when an application ends without a word
    }

    private static String version() throws IOException {
        Properties found = new Properties();
        try (InputStream stream = Main.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            found.load(stream);
        }
        return found.getProperty("version");
    }
}
