"""A member of a consumer group that copies records exactly once, with kafka-python.

Run it as `python -m integration.support.copier JSON`, with the options of `integration.support.member`, and
`copies_to`, a topic, and `transactional_id`. A copy's value names the record that was copied, and the group's
offsets are committed in the same transaction. Prints the same lines as a member, but no records. SIGUSR1
makes it print where it stands, and it ends by itself when a transaction takes too long.
"""

from __future__ import annotations

import contextlib
import faulthandler
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

from integration.support import member_process
from integration.support.clients import POLL_MS, new_producer, offset_and_metadata
from integration.support.events import emit
from integration.support.member import Listener, new_member

TRANSACTION_TIMEOUT_MS = 20_000
DELIVERY_TIMEOUT_MS = 20_000
"""How long a request may take that kafka-python has lost, before it says so."""
TRANSACTION_S = 12.0
"""The process ends if a transaction takes longer: kafka-python may wait for ever for its end."""

Batches = Mapping[TopicPartition, Sequence[Any]]


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """End the process, and print where it stands, if the block takes longer."""
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


class Copier:
    """Copies what the consumer reads, each batch in a transaction."""

    errors = KafkaError

    def __init__(self, consumer: KafkaConsumer, options: dict[str, Any]) -> None:
        self._consumer = consumer
        self._options = options

    @at_most(TRANSACTION_S)
    def new_producer(self) -> KafkaProducer:
        producer = new_producer(
            self._options["bootstrap"],
            client_id=self._options["client_id"],
            transactional_id=self._options["transactional_id"],
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
            request_timeout_ms=DELIVERY_TIMEOUT_MS // 2,
        )
        producer.init_transactions()
        self._rewind()
        return producer

    def copy_next(self, producer: KafkaProducer) -> None:
        if batches := self._consumer.poll(timeout_ms=POLL_MS):
            self._copy(producer, batches)

    @at_most(TRANSACTION_S)
    def _copy(self, producer: KafkaProducer, batches: Batches) -> None:
        member = self._consumer.group_metadata()
        if member.generation_id < 0:  # it would commit as if it were no member, which no group refuses
            raise KafkaError("the membership was lost")
        producer.begin_transaction()
        sent = [
            producer.send(
                self._options["copies_to"],
                b"%d-%d" % (partition.partition, record.offset),
                partition=partition.partition,
            )
            for partition, records in batches.items()
            for record in records
        ]
        ends = {partition: records[-1].offset + 1 for partition, records in batches.items()}
        offsets = {partition: offset_and_metadata(end) for partition, end in ends.items()}
        producer.send_offsets_to_transaction(offsets, member)
        for each in sent:  # kafka-python commits a transaction though records of it have expired
            each.get(timeout=DELIVERY_TIMEOUT_MS / 1000)
        producer.commit_transaction()
        emit("committed", offsets={partition.partition: end for partition, end in ends.items()})

    def recover(self, producer: KafkaProducer, _: KafkaError) -> None:
        """Go on with a new producer, which aborts what was not committed. This one might still send records
        that it has given up, into its next transaction.
        """
        self.close(producer)

    @at_most(TRANSACTION_S)
    def close(self, producer: KafkaProducer) -> None:
        with contextlib.suppress(KafkaError):
            producer.close(timeout=0)

    def _rewind(self) -> None:
        """Go on behind what was committed. The transactions before this call have ended."""
        for partition in self._consumer.assignment():
            committed = self._consumer.committed(partition)
            if partition in self._consumer.assignment():
                self._consumer.seek(partition, committed or 0)


def main() -> None:
    options, stopping = member_process.begin()
    consumer = new_member(options, isolation_level="read_committed")
    consumer.subscribe([options["topic"]], listener=Listener(consumer))
    emit("started")
    copier = Copier(consumer, options)
    producer = member_process.copy_until_stopped(copier, stopping)
    if producer is not None:
        copier.close(producer)
    member_process.close(consumer)


if __name__ == "__main__":
    main()
