"""Like `integration.support.member`, but with confluent-kafka. It takes the same options and prints the same
lines.

Run it as `python -m integration.support.librdkafka_member JSON`. At SIGTERM it closes between two polls; at
SIGUSR1 it prints where it stands.
"""

from __future__ import annotations

import struct
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from integration.support import member_process
from integration.support.events import emit

POLL_S = 0.5
MOST_RECORDS = 500
GENERATION_AT = len(b"CGMDv2:")


def generation_id(consumer: Consumer) -> int:
    """The consumer's generation.

    It is at the front of the group metadata, which is meant for transactions.
    """
    told: bytes = consumer.consumer_group_metadata()
    assert told.startswith(b"CGMDv2:"), told
    return int(struct.unpack_from("=i", told, GENERATION_AT)[0])


def assigned(consumer: Consumer, partitions: list[TopicPartition]) -> None:
    emit(
        "assigned",
        generation_id=generation_id(consumer),
        partitions=sorted(each.partition for each in partitions),
    )


def revoked(_: Consumer, partitions: list[TopicPartition]) -> None:
    emit("revoked", partitions=sorted(each.partition for each in partitions))


class Unusable(Exception):
    """The consumer has to be replaced: as a static member it was fenced, for example."""


def consumed(consumer: Consumer) -> list[Message]:
    """The next records. Raises Unusable."""
    records = []
    for each in consumer.consume(MOST_RECORDS, POLL_S):
        error = each.error()
        if error is None:
            records.append(each)
        elif error.fatal():
            raise Unusable(error)
    return records


def consume(consumer: Consumer, stopping: list[int]) -> None:
    """Print the records that were read, and only then commit their offsets."""
    while not stopping:
        records = consumed(consumer)
        if not records:
            continue
        emit("records", records=[_plain(each) for each in records])
        ends = {each.partition(): each.offset() + 1 for each in records}
        topic = records[0].topic()
        try:
            answered = consumer.commit(
                offsets=[TopicPartition(topic, *each) for each in ends.items()], asynchronous=False
            )
        except KafkaException as error:
            emit("commit_failed", error=error.args[0].name())
        else:
            done = {each.partition: each.offset for each in answered if each.error is None}
            emit("committed", offsets=done)


def _plain(record: Message) -> tuple[int, int, str]:
    return record.partition(), record.offset(), record.value().decode()


def new_member(options: dict[str, Any]) -> Consumer:
    """The consumer that a member process is, not subscribed yet."""
    of_classic = {
        "partition.assignment.strategy": options["assignor"],
        "session.timeout.ms": options["session_timeout_ms"],
        "heartbeat.interval.ms": 300,
    }
    instance_id = options.get("instance_id")
    return Consumer(
        {
            **(of_classic if options["protocol"] == "classic" else {}),
            **({} if instance_id is None else {"group.instance.id": instance_id}),
            "bootstrap.servers": options["bootstrap"],
            "group.id": options["group_id"],
            "group.protocol": options["protocol"],
            "client.id": options["client_id"],
            "topic.metadata.refresh.interval.ms": options["metadata_max_age_ms"],
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )


def main() -> None:
    options, stopping = member_process.begin()
    consumer = new_member(options)
    emit("started")
    consumer.subscribe([options["topic"]], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
    consume(consumer, stopping)
    member_process.close(consumer)


if __name__ == "__main__":
    main()
