"""A member of a consumer group that copies records exactly once, with kafka-python.

Run it as `python -m integration.support.copier JSON`, with the options of `integration.support.member`, and
`copies_to`, a topic, and `transactional_id`. A copy's value names the record that was copied, and the group's
offsets are committed in the same transaction. Prints the same lines as a member, but no records. SIGUSR1
makes it print where it stands, and it ends by itself when a transaction takes too long.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import logging
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

from integration.support.clients import POLL_MS, new_producer, offset_and_metadata
from integration.support.events import emit
from integration.support.member import Listener, new_member, stopped_by_sigterm

TRANSACTION_TIMEOUT_MS = 20_000
DELIVERY_TIMEOUT_MS = 20_000
"""How long a request may take that kafka-python has lost, before it says so."""
TRANSACTION_S = 12.0
"""The process ends if a transaction takes longer: kafka-python may wait for ever for its end."""

Batches = Mapping[TopicPartition, Sequence[Any]]


class Copier:
    """Copies what the consumer reads, each batch in a transaction."""

    def __init__(self, consumer: KafkaConsumer, options: dict[str, Any]) -> None:
        self._consumer = consumer
        self._options = options
        self._producer: KafkaProducer | None = None

    def run(self, stopping: list[int]) -> None:
        while not stopping:
            faulthandler.dump_traceback_later(TRANSACTION_S, exit=True)
            try:
                producer = self._producer = self._producer or self._new_producer()
                faulthandler.cancel_dump_traceback_later()
                batches = self._consumer.poll(timeout_ms=POLL_MS)
                if batches:
                    faulthandler.dump_traceback_later(TRANSACTION_S, exit=True)
                    self._copy(producer, batches)
            except KafkaError as error:
                emit("commit_failed", error=f"{type(error).__name__}: {error}")
                self._forget_producer()

    def _new_producer(self) -> KafkaProducer:
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

    def _forget_producer(self) -> None:
        """Go on with a new producer, which aborts what was not committed. The former one might still send
        records that it has given up, into its next transaction.
        """
        producer, self._producer = self._producer, None
        if producer is not None:
            with contextlib.suppress(KafkaError):
                producer.close(timeout=0)

    def _rewind(self) -> None:
        """Go on behind what was committed. The transactions before this call have ended."""
        for partition in self._consumer.assignment():
            committed = self._consumer.committed(partition)
            if partition in self._consumer.assignment():
                self._consumer.seek(partition, committed or 0)

    def close(self) -> None:
        self._forget_producer()
        faulthandler.cancel_dump_traceback_later()
        self._consumer.close()


def main() -> None:
    options = json.loads(sys.argv[1])
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    faulthandler.register(signal.SIGUSR1)
    stopping = stopped_by_sigterm()
    consumer = new_member(options, isolation_level="read_committed")
    consumer.subscribe([options["topic"]], listener=Listener(consumer))
    emit("started")
    copier = Copier(consumer, options)
    copier.run(stopping)
    copier.close()
    emit("closed", seconds=0.0)


if __name__ == "__main__":
    main()
