"""A member of a consumer group as a separate process, so that a test can kill it.

Run it as `python -m integration.support.member JSON`. It prints each event as a line of JSON on stdout. At
SIGTERM it closes between two polls; at SIGUSR1 it prints where it stands. At SIGINT, as with Ctrl-C, poll()
raises KeyboardInterrupt, and then it closes.
"""

from __future__ import annotations

import signal
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.errors import KafkaConnectionError, KafkaError

from integration.support import member_process
from integration.support.clients import ASSIGNORS, POLL_MS, generation_id, new_consumer
from integration.support.events import emit


class Listener(ConsumerRebalanceListener):
    def __init__(self, consumer: KafkaConsumer) -> None:
        self.consumer = consumer

    def on_partitions_revoked(self, revoked: Any) -> None:
        emit("revoked", partitions=sorted(tp.partition for tp in revoked))

    def on_partitions_lost(self, lost: Any) -> None:
        emit("revoked", partitions=sorted(tp.partition for tp in lost))

    def on_partitions_assigned(self, assigned: Any) -> None:
        partitions = sorted(tp.partition for tp in assigned)
        emit("assigned", generation_id=generation_id(self.consumer), partitions=partitions)


def consume(consumer: KafkaConsumer, stopping: list[int]) -> None:
    """Print the records that were read, and only then commit their offsets."""
    while not stopping:
        try:
            batches = consumer.poll(timeout_ms=POLL_MS)
        except KafkaConnectionError:  # kafka-python 3 sometimes raises it while its broker is away
            emit("disconnected")
            continue
        if not batches:
            continue
        emit(
            "records",
            records=[(r.partition, r.offset, r.value.decode()) for batch in batches.values() for r in batch],
        )
        try:
            consumer.commit()
        except KafkaError as error:
            emit("commit_failed", error=type(error).__name__)
        else:
            emit("committed", offsets={tp.partition: b[-1].offset + 1 for tp, b in batches.items()})


def new_member(options: dict[str, Any], **settings: Any) -> KafkaConsumer:
    """The consumer that a member process is, not subscribed yet."""
    if options.get("instance_id") is not None:
        settings["group_instance_id"] = options["instance_id"]
    return new_consumer(
        options["bootstrap"],
        group_id=options["group_id"],
        client_id=options["client_id"],
        partition_assignment_strategy=[ASSIGNORS[options["assignor"]]],
        session_timeout_ms=options["session_timeout_ms"],
        heartbeat_interval_ms=300,
        max_poll_interval_ms=30_000,
        metadata_max_age_ms=options["metadata_max_age_ms"],
        **settings,
    )


def main() -> None:
    options, stopping = member_process.begin()
    # A shell starts background jobs with SIGINT ignored, and their children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    consumer = new_member(options)
    emit("started")
    try:
        consumer.subscribe([options["topic"]], listener=Listener(consumer))
        consume(consumer, stopping)
    except KeyboardInterrupt:
        emit("interrupted")
    member_process.close(consumer)


if __name__ == "__main__":
    main()
