import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.Base64;

/** Runs the main methods of tools in one JVM: each line on stdin is one run, and gets one line on stdout.
 *
 * The request is the class and its arguments, separated by tabs. The answer is the exit status, a tab, and all
 * that was printed, in base64. */
public class RunTools {
    static class Exited extends RuntimeException {
        final int status;

        Exited(int status, String message) {
            super(message);
            this.status = status;
        }
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        throwInsteadOfExits();
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in));
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            PrintStream out = new PrintStream(printed, true);
            System.setOut(out);
            System.setErr(out);
            int status = run(line.split("\t", -1));
            out.flush();
            answers.println(status + "\t" + Base64.getEncoder().encodeToString(printed.toByteArray()));
            answers.flush();
        }
    }

    /** Makes Kafka's own class for exits throw. Kafka 4.4 has moved it. */
    static void throwInsteadOfExits() throws Exception {
        Class<?> exit;
        try {
            exit = Class.forName("org.apache.kafka.common.utils.internals.Exit");
        } catch (ClassNotFoundException before44) {
            exit = Class.forName("org.apache.kafka.common.utils.Exit");
        }
        Class<?> procedure = Class.forName(exit.getName() + "$Procedure");
        Object thrower = Proxy.newProxyInstance(exit.getClassLoader(), new Class<?>[] {procedure},
            (self, method, given) -> { throw new Exited((Integer) given[0], (String) given[1]); });
        exit.getMethod("setExitProcedure", procedure).invoke(null, thrower);
        exit.getMethod("setHaltProcedure", procedure).invoke(null, thrower);
    }

    static int run(String[] words) throws Exception {
        Object arguments = Arrays.copyOfRange(words, 1, words.length);
        try {
            Class.forName(words[0]).getMethod("main", String[].class).invoke(null, arguments);
            return 0;
        } catch (InvocationTargetException thrown) {
            for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
                if (cause instanceof Exited) {
                    return ((Exited) cause).status;
                }
            }
            thrown.getCause().printStackTrace();
            return -1;
        }
    }
}
