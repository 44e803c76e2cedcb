"""Keeps the output of Spark's JVM, and shows it only on request, so that a command prints only its answer.

If the JVM does not start, PySpark knows only that it has exited. The reason is in the output.
"""

from __future__ import annotations

import os
import re
import threading
from collections import deque
from collections.abc import Iterable
from typing import Final

MOST_LINES: Final = 500
STDERR: Final = 2


class Output:
    """A pipe for the JVM's output, of which the last MOST_LINES lines are kept.

    shown: True to copy the output to standard error, too.
    """

    def __init__(self, *, shown: bool) -> None:
        self._reading, self.writing = os.pipe()
        """`writing` is the end for the JVM. Call close_writing() once the JVM has it."""
        self._kept: deque[str] = deque(maxlen=MOST_LINES)
        self._shown = shown
        self._thread = threading.Thread(target=self._read, name="Spark's output", daemon=True)
        self._thread.start()

    def close_writing(self) -> None:
        os.close(self.writing)

    def lines(self) -> list[str]:
        """The last lines of the JVM's output. Waits until the JVM has exited."""
        self._thread.join()
        return list(self._kept)

    def _read(self) -> None:
        with open(self._reading, "rb") as pipe:
            for line in pipe:
                self._kept.append(line.decode(errors="replace").rstrip())
                if self._shown:
                    os.write(STDERR, line)


_DO_JAVA: Final = "install Java 17, or set JAVA_HOME to where it is"
_SHOW: Final = "kshim pipeline -v shows all that it said"

# Patterns for the line that says why a JVM has exited, and the text to show for it.
_WHY: Final = tuple(
    (re.compile(pattern), said)
    for pattern, said in (
        (
            r"(getSubject is .*|.*UnsupportedOperationException: .*[sS]ecurity [mM]anager.*)",
            "this Java is too new for it ({0}); " + _DO_JAVA,
        ),
        (r"(UnsupportedClassVersionError: .*)", "this Java is too old for it ({0}); " + _DO_JAVA),
        (r"(JAVA_HOME is not set)", "{0}; " + _DO_JAVA),
        (r"(Unrecognized VM option .*|Unrecognized option: .*)", "Java says: {0}; " + _SHOW),
        (
            r"(Invalid (?:maximum|initial) heap size.*|Could not reserve .*)",
            "Java says: {0}; set --conf spark.driver.memory",
        ),
        (r"^Exception in thread \"main\" (?:[\w.$]+(?:Exception|Error): )?(.+)", "{0}; " + _SHOW),
        (r"^Error: (?!.*A JNI error|.*Could not create the Java)(.+)", "{0}; " + _SHOW),
    )
)


def why_exited(output: Iterable[str]) -> str:
    """Return one line: why Spark's JVM has exited at its start, by its output, and what to do."""
    lines = [line.strip() for line in output if line.strip()]
    for pattern, said in _WHY:
        for line in lines:
            if found := pattern.search(line):
                return said.format(found[1].rstrip(". "))
    return f"{lines[-1]}; {_SHOW}" if lines else "it said nothing"


def reason(error: Exception) -> str:
    """The first informative line of one of Spark's errors. Python's errors may wrap Java's."""
    text = str(error)
    java = getattr(error, "java_exception", None)
    if java is not None:
        text = str(java.toString())
    first = next(iter(text.strip().splitlines()), type(error).__name__)
    if _LACKS_A_CLASS.search(text):
        return f"{first}; do the jars of spark.jars belong to this Spark, and are they all there?"
    return re.sub(r"^[\w.$]+(?:Exception|Error): ", "", first)


_LACKS_A_CLASS: Final = re.compile(r"\b(NoClassDefFoundError|ClassNotFoundException|NoSuchMethodError)\b")
