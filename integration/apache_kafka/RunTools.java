import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import java.util.Base64;
import org.apache.kafka.common.utils.Exit;

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
        Exit.setExitProcedure((status, message) -> { throw new Exited(status, message); });
        Exit.setHaltProcedure((status, message) -> { throw new Exited(status, message); });
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
