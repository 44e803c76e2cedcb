"""A member of the group: an ordinary kafka-python consumer that tells what it is given, reads and commits."""

from collections.abc import Iterable
from threading import Event as Signal

from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.errors import RetriableError

from kshim.demo.events import Assigned, Committed, Joining, Received, Records, Revoked, now_ms
from kshim.demo.worker import run, tell

SESSION_TIMEOUT_MS = 6_000
"""The least that Kafka's default `group.min.session.timeout.ms` allows: how long a crash goes unnoticed."""
HEARTBEAT_INTERVAL_MS = 500
PAUSE_MS = 50
"""Between two polls, as if the records were work."""


def numbers(partitions: Iterable[TopicPartition]) -> tuple[int, ...]:
    """The partition numbers, sorted."""
    return tuple(sorted(partition.partition for partition in partitions))


class Told(ConsumerRebalanceListener):  # type: ignore[misc]
    """Tells each change of the assignment. Called on the client's own thread, so it only tells."""

    def __init__(self, name: str, consumer: KafkaConsumer) -> None:
        self.name = name
        self.consumer = consumer

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """The group rebalances: these partitions go back."""
        tell(Revoked(name=self.name, at_ms=now_ms(), partitions=numbers(revoked)))

    def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        """The group went on without this member."""
        tell(Revoked(name=self.name, at_ms=now_ms(), partitions=numbers(lost)))

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """The rebalance is over for this member."""
        generation = self.consumer.group_metadata().generation_id
        tell(Assigned(name=self.name, at_ms=now_ms(), generation=generation, partitions=numbers(assigned)))


def commit(name: str, consumer: KafkaConsumer, topic: str, records: Records) -> None:
    """Commit these records as read, and tell it when the server has confirmed it.

    A commit that fails (the group rebalances, the server is down) loses nothing: the records come again. It
    is not sent a second time, as `consumer.commit()` would: by then the partition may be another member's.
    """
    offsets = {partition: offset + 1 for partition, offset, _ in records}

    def answered(_: object, answer: object) -> None:
        if not isinstance(answer, Exception):
            tell(Committed(name=name, at_ms=now_ms(), offsets=tuple(offsets.items())))

    consumer.commit_async(
        {TopicPartition(topic, p): OffsetAndMetadata(offset, "", -1) for p, offset in offsets.items()},
        callback=answered,
    )


def poll(consumer: KafkaConsumer) -> Records:
    """What the server has for this member. Nothing, while there is no server."""
    try:
        polled = consumer.poll(timeout_ms=200)
    except RetriableError:
        return ()
    return tuple((r.partition, r.offset, r.value.decode()) for batch in polled.values() for r in batch)


def consume(arguments: list[str], stop: Signal) -> None:
    """Read and commit until asked to stop. Arguments: NAME BOOTSTRAP GROUP TOPIC."""
    name, bootstrap, group_id, topic = arguments
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        client_id=name,
        group_id=group_id,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        reconnect_backoff_max_ms=500,
    )
    consumer.subscribe([topic], listener=Told(name, consumer))
    # So that the member knows the partitions should it be the leader. Else it assigns none, finds them later
    # and rejoins; and kafka-python 3.0.12 drops out of the group if a poll times out in that kind of rejoin.
    consumer.topics()
    tell(Joining(name=name, at_ms=now_ms()))
    while not stop.is_set():
        if records := poll(consumer):
            # Told before it is committed: so whatever was committed is known to have been received.
            tell(Received(name=name, at_ms=now_ms(), records=records))
            commit(name, consumer, topic, records)
        stop.wait(PAUSE_MS / 1000)
    consumer.close()


if __name__ == "__main__":
    run(consume)
