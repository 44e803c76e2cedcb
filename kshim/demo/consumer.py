"""A group member: an ordinary kafka-python consumer that reports its assignments, records and commits."""

from collections.abc import Iterable
from threading import Event as Signal

from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.errors import RetriableError

from kshim.demo.events import Assigned, Committed, Joining, Received, Records, Revoked, now_ms
from kshim.demo.worker import run, tell

SESSION_TIMEOUT_MS = 6_000
"""How long a crash goes unnoticed: the least that Kafka's default `group.min.session.timeout.ms` allows."""
HEARTBEAT_INTERVAL_MS = 500
PAUSE_MS = 50
"""The pause between two polls, as if processing the records took time."""


def numbers(partitions: Iterable[TopicPartition]) -> tuple[int, ...]:
    """The partition numbers, sorted."""
    return tuple(sorted(partition.partition for partition in partitions))


class Told(ConsumerRebalanceListener):  # type: ignore[misc]
    """Reports each change of the assignment. It does no more, as the client's own thread calls it."""

    def __init__(self, name: str, consumer: KafkaConsumer) -> None:
        self.name = name
        self.consumer = consumer

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Report that the member gives these partitions back, because the group rebalances."""
        tell(Revoked(name=self.name, at_ms=now_ms(), partitions=numbers(revoked)))

    def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        """Report that the member has lost these partitions: the group went on without it."""
        tell(Revoked(name=self.name, at_ms=now_ms(), partitions=numbers(lost)))

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Report the new assignment: for this member the rebalance is over."""
        generation = self.consumer.group_metadata().generation_id
        tell(Assigned(name=self.name, at_ms=now_ms(), generation=generation, partitions=numbers(assigned)))


def commit(name: str, consumer: KafkaConsumer, topic: str, records: Records) -> None:
    """Commit these records as read, and report the commit when the server has confirmed it.

    A commit that fails (the group rebalances, the server is down) loses nothing: the records come again. It
    is not retried, unlike with `consumer.commit()`: by then the partition may belong to another member.
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
    """The next records for this member; none while the server is down."""
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
    # A leader that does not know the partitions yet would assign none, find them later and rejoin; and
    # kafka-python 3.0.12 drops out of the group if a poll times out in that kind of rejoin.
    consumer.topics()
    tell(Joining(name=name, at_ms=now_ms()))
    while not stop.is_set():
        if records := poll(consumer):
            # Report records before committing them, so that every committed record is known to be received.
            tell(Received(name=name, at_ms=now_ms(), records=records))
            commit(name, consumer, topic, records)
        stop.wait(PAUSE_MS / 1000)
    consumer.close()


if __name__ == "__main__":
    run(consume)
