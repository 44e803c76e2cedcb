import java.util.Map;

/** Programs with kafka-clients: `java Museum NAME`. */
public final class Museum {
    private static final Map<String, Runnable> PROGRAMS = Map.of(
        "executor-and-auto-commit", Reporting::executorAndAutoCommit,
        "executor-that-is-awaited", Reporting::executorThatIsAwaited,
        "seeks-from-memory", Remembering::seeksFromMemory,
        "forgets-on-revoke", Remembering::forgetsOnRevoke,
        "transactions-without-fencing", Transactions::withoutFencing,
        "transactions", Transactions::fenced
    );

    public static void main(String[] arguments) {
        Work.endAtSigterm();
        PROGRAMS.get(arguments[0]).run();
    }
}
