"""The strangers: what each promises, how it is tortured, and what is known to break its promise."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from integration.frameworks.process import FRUGAL
from integration.spark.jars import fetch_jars as fetch_spark_jars
from integration.support.java import compile_with, fetch_jars
from integration.support.toolchain import Missing
from kshim.torture.promises import Anomaly, Promise

FRAMEWORKS: Final = Path(__file__).parents[2] / "frameworks"
JAVA: Final = Path(__file__).with_name("java")
LEAST, EXACTLY = Promise.AT_LEAST_ONCE, Promise.EXACTLY_ONCE
REPORT: Final = ("--report",)
WRITES: Final = ("--output", "out")
TRANSACTIONS: Final = (*WRITES, "--promise", "exactly-once")
SLOW_START: Final = ("--start", "60s", "--settle", "40s")
"""A framework takes seconds to start, and more on a busy machine."""
SAME_PARTITIONS: Final = ("--faults=-partitions",)
"""A store has as many partitions as the topic had when it was made."""
REMOVED: Final = ("--faults", "expire")
"""Nothing but what is known to break the promise: other faults are in its way, and a run takes longer."""
SCHEDULE: Final = "--schedule"
ALONE: Final = ("--no-group", SCHEDULE, str(Path(__file__).with_name("spark.json")))
"""A checkpoint has one writer. It needs so long to start that only few faults leave it time to work."""
VERY_SLOW_START: Final = ("--start", "240s", "--settle", "300s")

KOMBU_VALUE: Final = json.dumps(
    {
        "body": '{"number": $number}',
        "content-type": "application/json",
        "content-encoding": "utf-8",
        "headers": {},
        "properties": {
            "delivery_mode": 2,
            "delivery_tag": "$number",
            "delivery_info": {"exchange": "input", "routing_key": "input"},
        },
    }
)
"""A message as kombu writes it."""
KOMBU: Final = (*WRITES, "--group", "input-consumer-group", "--value", KOMBU_VALUE)


class Stranger(NamedTuple):
    """A program of a framework, and its torture."""

    name: str
    framework: str
    """With its version, and the setting that makes the promise."""
    promise: Promise
    """What the framework's documentation promises."""
    command: Callable[[], Sequence[str]]
    """Returns the command line. Raises Missing."""
    options: tuple[str, ...]
    found: tuple[Anomaly, ...] = ()
    """What breaks the promise; nothing for a promise that holds."""
    why: str = ""
    """Why it is broken."""


def _python(module: str, needs: str, *arguments: str) -> Callable[[], Sequence[str]]:
    def command() -> Sequence[str]:
        if find_spec(needs) is None:
            raise Missing(f"{needs} is not installed")
        return [sys.executable, "-m", f"integration.torture.strangers.{module}", *arguments]

    return command


def _spark() -> Sequence[str]:
    if find_spec("pyspark") is None:
        raise Missing("pyspark is not installed")
    return [*_python("spark", "pyspark")(), ",".join(map(str, fetch_spark_jars()))]


def _java(pom: Path, source: Path, argument: str) -> Callable[[], Sequence[str]]:
    def command() -> Sequence[str]:
        classes = compile_with(fetch_jars(pom), source)
        logged = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return ["java", *FRUGAL, logged, "-cp", classes, source.stem, argument]

    return command


def _streams(guarantee: str) -> Callable[[], Sequence[str]]:
    return _java(FRAMEWORKS / "streams" / "pom.xml", JAVA / "streams" / "Counts.java", guarantee)


def _spring(ack_mode: str) -> Callable[[], Sequence[str]]:
    return _java(JAVA / "spring" / "pom.xml", JAVA / "spring" / "Listener.java", ack_mode)


def _connect() -> Sequence[str]:
    connect = FRAMEWORKS / "connect"
    framework = compile_with(fetch_jars(connect / "pom.xml"), connect / "AppInfoParser.java")
    classes = compile_with(framework, JAVA / "connect" / "Report.java")
    return [*_python("connect", "integration")(), classes]


STRANGERS: Final = (
    Stranger(
        "quixstreams-at-least-once",
        "Quix Streams 3.28, `at-least-once`",
        LEAST,
        _python("quix", "quixstreams", "at-least-once"),
        (*WRITES, *SLOW_START),
    ),
    Stranger(
        "quixstreams-exactly-once",
        "Quix Streams 3.28, `exactly-once`",
        EXACTLY,
        _python("quix", "quixstreams", "exactly-once"),
        (*TRANSACTIONS, *SLOW_START, *REMOVED),
        (Anomaly.DUPLICATED, Anomaly.WENT_BACK),
        "a transaction that is open when the assignment is lost is kept, and committed by the next member",
    ),
    Stranger(
        "faust-at-least-once",
        "Faust 0.15 (faust-streaming), `at_least_once`",
        LEAST,
        _python("faust_agent", "faust", "at_least_once"),
        REPORT,
    ),
    Stranger(
        "faust-exactly-once",
        "Faust 0.15 (faust-streaming), `exactly_once`",
        EXACTLY,
        _python("faust_agent", "faust", "exactly_once"),
        TRANSACTIONS,
        (Anomaly.DUPLICATED,),
        "what it writes to a topic that it does not read stands outside its transactions",
    ),
    Stranger(
        "faststream-ack-first",
        "FastStream 0.7 with aiokafka, `ACK_FIRST`, its default",
        Promise.AT_MOST_ONCE,
        _python("faststream_subscriber", "faststream", "ACK_FIRST"),
        (*REPORT, "--promise", "at-most-once"),
        (Anomaly.DUPLICATED, Anomaly.LATE),
        "the client commits every five seconds, not before a record is processed",
    ),
    Stranger(
        "faststream-ack",
        "FastStream 0.7 with aiokafka, `ACK`",
        LEAST,
        _python("faststream_subscriber", "faststream", "ACK"),
        REPORT,
    ),
    Stranger(
        "kombu-prefetch-1",
        "kombu 5.6, `confluentkafka`, a prefetch count of 1",
        LEAST,
        _python("kombu_worker", "kombu", "1"),
        (*KOMBU, "--faults", "kill"),
        (Anomaly.LOST, Anomaly.EARLY),
        "an acknowledgement is committed in the background, with what has been polled by then",
    ),
    Stranger(
        "kombu-prefetch-10",
        "kombu 5.6, `confluentkafka`, a prefetch count of 10",
        LEAST,
        _python("kombu_worker", "kombu", "10"),
        (*KOMBU, "--rate", "150"),
        (Anomaly.LOST, Anomaly.EARLY),
        "an acknowledgement commits all that was polled, also what is not acknowledged",
    ),
    Stranger(
        "kafka-streams-at-least-once",
        "Kafka Streams 4.4, `at_least_once`",
        LEAST,
        _streams("at_least_once"),
        (*WRITES, *SLOW_START, *SAME_PARTITIONS),
    ),
    Stranger(
        "kafka-streams-exactly-once",
        "Kafka Streams 4.4, `exactly_once_v2`",
        EXACTLY,
        _streams("exactly_once_v2"),
        (*TRANSACTIONS, *SLOW_START, *SAME_PARTITIONS),
    ),
    Stranger(
        "spring-kafka-batch",
        "Spring for Apache Kafka 4.1, `AckMode.BATCH`, its default",
        LEAST,
        _spring("BATCH"),
        (*REPORT, *SLOW_START),
    ),
    Stranger(
        "kafka-connect-sink",
        "Kafka Connect 4.4, the sink for files",
        LEAST,
        _connect,
        (*REPORT, "--group", "connect-torture", *SLOW_START),
    ),
    Stranger(
        "spark-kafka-sink",
        "Spark 4.2, a stream with a checkpoint and the sink for Kafka",
        LEAST,
        _spark,
        (*WRITES, *ALONE, *VERY_SLOW_START),
    ),
)
