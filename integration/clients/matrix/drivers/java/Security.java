import com.google.gson.Gson;
import com.google.gson.JsonObject;
import java.util.HashMap;
import java.util.Map;

/** How the client authenticates: KSHIM_SECURITY, as `secured.py` has it. */
final class Security {
    private static final String MODULES = "org.apache.kafka.common.security.";

    /** The properties that every client of this process has. */
    static final Map<String, Object> SETTINGS = settings();

    private Security() {}

    private static Map<String, Object> settings() {
        var told = System.getenv("KSHIM_SECURITY");
        Map<String, Object> settings = new HashMap<>();
        if (told == null) {
            return settings;
        }
        var asked = new Gson().fromJson(told, JsonObject.class);
        settings.put("security.protocol", asked.get("protocol").getAsString());
        if (asked.has("mechanism")) {
            settings.put("sasl.mechanism", asked.get("mechanism").getAsString());
            settings.put("sasl.jaas.config", jaas(asked));
        }
        if (asked.has("ca")) {
            settings.put("ssl.truststore.type", "PEM");
            settings.put("ssl.truststore.location", asked.get("ca").getAsString());
        }
        if (asked.has("keystore")) {
            settings.put("ssl.keystore.type", "PKCS12");
            settings.put("ssl.keystore.location", asked.get("keystore").getAsString());
            settings.put("ssl.keystore.password", asked.get("keystore_password").getAsString());
        }
        return settings;
    }

    private static String jaas(JsonObject asked) {
        var user = asked.get("user").getAsString();
        return switch (asked.get("mechanism").getAsString()) {
            case "OAUTHBEARER" -> MODULES
                + "oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=\"" + user + "\";";
            case "PLAIN" -> MODULES + "plain.PlainLoginModule required " + login(asked);
            default -> MODULES + "scram.ScramLoginModule required " + login(asked);
        };
    }

    private static String login(JsonObject asked) {
        var password = asked.get("password").getAsString();
        return "username=\"" + asked.get("user").getAsString() + "\" password=\"" + password + "\";";
    }
}
