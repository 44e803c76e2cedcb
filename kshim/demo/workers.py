"""The demo's clients, each a process: `python -m kshim.demo.workers NAME BOOTSTRAP`.

A worker prints each event as a line of JSON on stdout, and ends when its stdin is closed. The parent closes
it to stop the worker in good order. If the parent dies, the operating system closes it, so no worker outlives
the run.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import threading
from collections.abc import Iterable
from queue import SimpleQueue
from typing import TYPE_CHECKING

from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.errors import RetriableError

from kshim.demo.scene import GROUP, TOPIC, now_ms

if TYPE_CHECKING:
    from kafka.producer.future import RecordMetadata

PAUSE_MS = 50
"""The pause between two polls, as if processing the records took time, and between two rounds of records."""
RECORDS_AT_ONCE = 5
"""Records of a producer's round: one hundred records per second."""
KEYS = 60
FLUSH_TIMEOUT_S = 20
SESSION_TIMEOUT_MS = 6_000
"""How long a crash goes unnoticed: the least that Kafka's default `group.min.session.timeout.ms` allows."""
HEARTBEAT_INTERVAL_MS = 500

Record = tuple[int, int, str]
"""Partition, offset and value."""

_one_line_at_a_time = threading.Lock()


def report(event: str, name: str, **fields: object) -> None:
    """Print an event. On return its line is in the pipe, and survives a SIGKILL."""
    line = json.dumps({"event": event, "name": name, "at_ms": now_ms(), **fields}, separators=(",", ":"))
    with _one_line_at_a_time:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def one_line(error: BaseException) -> str:
    """The error's class, and the first line of its text."""
    first, *_ = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def produce(name: str, bootstrap: str, stop: threading.Event) -> None:
    """Send records with acks=all until asked to stop, then wait for the last acknowledgements."""
    acknowledged: SimpleQueue[Record] = SimpleQueue()
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, client_id=name, acks="all", linger_ms=10, reconnect_backoff_max_ms=500
    )

    def report_acknowledged() -> None:
        if records := [acknowledged.get() for _ in range(acknowledged.qsize())]:
            report("acknowledged", name, records=records)

    def send(number: int) -> None:
        value = f"{name} {number}"

        def keep(metadata: RecordMetadata) -> None:
            acknowledged.put((metadata.partition, metadata.offset, value))

        future = producer.send(TOPIC, key=f"key-{number % KEYS}".encode(), value=value.encode())
        future.add_callback(keep).add_errback(lambda error: report("failed", name, error=one_line(error)))

    number = 0
    while not stop.wait(PAUSE_MS / 1000):
        for _ in range(RECORDS_AT_ONCE):
            send(number)
            number += 1
        report_acknowledged()
    producer.flush(timeout=FLUSH_TIMEOUT_S)
    producer.close()
    report_acknowledged()


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Reports each change of the assignment. It does no more, as the client's own thread calls it."""

    def __init__(self, name: str, consumer: KafkaConsumer) -> None:
        self.name, self.consumer = name, consumer

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Report that the member has no partitions, because the group rebalances or went on without it."""
        report("revoked", self.name)

    on_partitions_lost = on_partitions_revoked

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Report the new assignment: for this member the rebalance is over."""
        numbers = sorted(partition.partition for partition in assigned)
        generation = self.consumer.group_metadata().generation_id
        report("assigned", self.name, generation=generation, partitions=numbers)


def commit(name: str, consumer: KafkaConsumer, records: Iterable[Record]) -> None:
    """Commit these records as read, and report the commit when the server has confirmed it.

    A commit that fails (the group rebalances, the server is down) loses nothing: the records come again. It
    is not retried, unlike with `consumer.commit()`: by then the partition may belong to another member.
    """
    offsets = {partition: offset + 1 for partition, offset, _ in records}

    def answered(_: object, answer: object) -> None:
        if not isinstance(answer, Exception):
            report("committed", name, offsets=list(offsets.items()))

    consumer.commit_async(
        {TopicPartition(TOPIC, p): OffsetAndMetadata(offset, "", -1) for p, offset in offsets.items()},
        callback=answered,
    )


def poll(consumer: KafkaConsumer) -> list[Record]:
    """The next records for this member; none while the server is down."""
    try:
        polled = consumer.poll(timeout_ms=200)
    except RetriableError:
        return []
    return [(r.partition, r.offset, r.value.decode()) for batch in polled.values() for r in batch]


def consume(name: str, bootstrap: str, stop: threading.Event) -> None:
    """Join the group, and read and commit until asked to stop."""
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        client_id=name,
        group_id=GROUP,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        reconnect_backoff_max_ms=500,
    )
    consumer.subscribe([TOPIC], listener=Listener(name, consumer))
    # A leader that does not know the partitions yet would assign none, find them later and rejoin; and
    # kafka-python 3.0.12 drops out of the group if a poll times out in that kind of rejoin.
    consumer.topics()
    while not stop.is_set():
        if records := poll(consumer):
            # Report records before committing them, so that every committed record is known to be received.
            report("received", name, records=records)
            commit(name, consumer, records)
        stop.wait(PAUSE_MS / 1000)
    consumer.close()


def count_records(name: str, bootstrap: str, stop: threading.Event) -> None:
    """Read the topic once with Spark's own Kafka source, from beginning to end, and count its records."""
    from pyspark.sql.functions import col, count, count_distinct

    from kshim.testing.spark import spark_session

    scratch = tempfile.gettempdir()
    conf = {"spark.local.dir": scratch, "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={scratch}"}
    with spark_session("kshim demo", conf=conf) as spark:
        source = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
        records = source.option("subscribe", TOPIC).load()
        [(total, different)] = records.select(count(col("value")), count_distinct(col("value"))).collect()
        report("counted", name, count=total, values=different)


WORK = {"producer": produce, "consumer": consume, "spark": count_records}
"""The work of a process, by its name without the number."""


def main(name: str, bootstrap: str) -> None:
    """Do the work of this name until stdin is closed. An error is reported as "failed", with status 1."""
    stop = threading.Event()

    def wait_for_end_of_stdin() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=wait_for_end_of_stdin, daemon=True).start()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        WORK[name.split("-")[0]](name, bootstrap, stop)
    except Exception as error:
        logging.exception("%s failed", name)
        report("failed", name, error=one_line(error))
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
