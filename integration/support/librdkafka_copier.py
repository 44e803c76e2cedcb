"""Like `integration.support.copier`, but with confluent-kafka. It takes the same options and prints the same
lines.
"""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from integration.support import member_process
from integration.support.events import emit
from integration.support.librdkafka_member import assigned, consumed, new_member, revoked

TRANSACTION_TIMEOUT_MS = 20_000
ANSWER_S = 30.0
"""How long one call may take."""


class Copier:
    """Copies what the consumer reads, each batch in a transaction."""

    errors = KafkaException

    def __init__(self, consumer: Consumer, options: dict[str, Any]) -> None:
        self._consumer = consumer
        self._options = options

    def new_producer(self) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self._options["bootstrap"],
                "client.id": self._options["client_id"],
                "transactional.id": self._options["transactional_id"],
                "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
                "linger.ms": 1,
            }
        )
        producer.init_transactions(ANSWER_S)
        self._rewind()
        return producer

    def copy_next(self, producer: Producer) -> None:
        if records := consumed(self._consumer):
            self._copy(producer, records)

    def _copy(self, producer: Producer, records: list[Message]) -> None:
        member = self._consumer.consumer_group_metadata()
        producer.begin_transaction()
        for record in records:
            where = record.partition()
            producer.produce(
                self._options["copies_to"], f"{where}-{record.offset()}".encode(), partition=where
            )
        ends = {each.partition(): each.offset() + 1 for each in records}
        offsets = [TopicPartition(self._options["topic"], *each) for each in ends.items()]
        producer.send_offsets_to_transaction(offsets, member, ANSWER_S)
        producer.commit_transaction(ANSWER_S)
        emit("committed", offsets=ends)

    def recover(self, producer: Producer, error: KafkaException) -> Producer | None:
        """Abort what was not committed; if that cannot be, a new producer ends it."""
        if error.args[0].fatal():
            return None
        try:
            producer.abort_transaction(ANSWER_S)
            self._rewind()
        except KafkaException as again:
            emit("commit_failed", error=str(again))
            return None
        return producer

    def _rewind(self) -> None:
        """Go on behind what was committed. The transactions before this call have ended."""
        held = self._consumer.assignment()
        if not held:
            return
        committed = self._consumer.committed(held, ANSWER_S)
        for each in committed:
            if each.error is not None:
                raise KafkaException(each.error)
        self._consumer.assign(
            [TopicPartition(each.topic, each.partition, max(each.offset, 0)) for each in committed]
        )


def main() -> None:
    options, stopping = member_process.begin()
    consumer = new_member(options)
    consumer.subscribe([options["topic"]], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
    emit("started")
    member_process.copy_until_stopped(Copier(consumer, options), stopping)
    member_process.close(consumer)


if __name__ == "__main__":
    main()
