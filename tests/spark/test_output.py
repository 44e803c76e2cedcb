"""Why Spark's JVM has exited, in one line, from the output of Spark 3.5 to 4.2 and Java 8 to 25."""

from __future__ import annotations

import os

import pytest

from kshim.spark.output import MOST_LINES, Output, reason, why_exited

SHOW = "kshim pipeline -v shows all that it said"
INSTALL = "install Java 17, or set JAVA_HOME to where it is"


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        (
            'WARNING: Using incubator modules\nException in thread "main" java.lang.'
            "UnsupportedOperationException: getSubject is not supported\n\tat java.base/javax.security",
            f"this Java is too new for it (getSubject is not supported); {INSTALL}",
        ),
        (
            "Error: LinkageError occurred while loading main class org.apache.spark.launcher.Main\n"
            "\tjava.lang.UnsupportedClassVersionError: org/apache/spark/launcher/Main is of a newer Java",
            "this Java is too old for it (UnsupportedClassVersionError: org/apache/spark/launcher/Main is of "
            f"a newer Java); {INSTALL}",
        ),
        (
            "Unrecognized VM option 'UseMagic'\nError: Could not create the Java Virtual Machine.\n"
            "Error: A fatal exception has occurred. Program will exit.",
            f"Java says: Unrecognized VM option 'UseMagic'; {SHOW}",
        ),
        (
            "Exception in thread \"main\" org.apache.spark.SparkException: When running with master 'yarn' "
            "either HADOOP_CONF_DIR or YARN_CONF_DIR must be set.\n\tat org.apache.spark.deploy.Submit",
            f"When running with master 'yarn' either HADOOP_CONF_DIR or YARN_CONF_DIR must be set; {SHOW}",
        ),
        ("some\n\nlast words\n\n", f"last words; {SHOW}"),
        ("", "it said nothing"),
    ],
)
def test_why_it_has_exited(printed: str, why: str) -> None:
    assert why_exited(printed.splitlines()) == why


@pytest.mark.parametrize("shown", [True, False])
def test_what_it_prints_is_shown_only_if_asked_for(capfd: pytest.CaptureFixture[str], shown: bool) -> None:
    output = Output(shown=shown)
    os.write(output.writing, b"one\ntw\xff\n" + b"x\n" * MOST_LINES)
    output.close_writing()
    assert output.lines() == ["x"] * MOST_LINES
    said = capfd.readouterr().err
    assert said.startswith("one\ntw") if shown else said == ""


class JavaError(Exception):
    """The error that py4j raises."""

    def __init__(self, text: str) -> None:
        super().__init__("An error occurred while calling o42.collect.\n: " + text)
        self.java_exception = self
        self.toString = lambda: text


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("one\ntwo"), "one"),
        (ValueError(), "ValueError"),
        (JavaError("org.apache.spark.SparkException: Could not parse 'x'\n\tat y"), "Could not parse 'x'"),
        (
            JavaError("java.lang.NoClassDefFoundError: org/apache/kafka/Serializer"),
            "java.lang.NoClassDefFoundError: org/apache/kafka/Serializer; do the jars of spark.jars belong "
            "to this Spark, and are they all there?",
        ),
    ],
)
def test_what_spark_s_errors_say(error: Exception, said: str) -> None:
    assert reason(error) == said
