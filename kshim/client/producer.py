"""Writes records to a topic.

The batches of a round are sent to all leaders at once, and their answers are awaited before the next round.
So the records of a partition keep their order when a batch has to be sent again. With acks=all a producer id
and sequence numbers make sure that a batch that is sent again is not written twice (KIP-98).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, NamedTuple

from kshim.client.batches import Batches
from kshim.client.cluster import PAUSE_S, Cluster, Retry, retry_or_check
from kshim.client.connection import Connection
from kshim.client.faults import ClientError, Refused, Unreachable, error_name, is_retriable
from kshim.client.offsets import led
from kshim.client.record import NewRecord, NotWritten, Written
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.init_producer_id import InitProducerIdRequest
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.records import batch
from schemas.records.compression import Compression

ALL: Final = -1
_TOO_LARGE: Final = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
_NEW_ID: Final = (
    *(ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    *(ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
)
"""Errors after which a batch, which was not written, is sent again under a new producer id."""


Settled = Written | NotWritten


class Settings(NamedTuple):
    """How records are written."""

    acks: int = ALL
    """ALL, 1, or 0 for no answer."""
    compression: Compression = Compression.NONE


@dataclass(slots=True)
class _Batch:
    """One batch under way."""

    partition: int
    records: Sequence[NewRecord]
    refusal: ClientError | None = None
    """The last reason for which it has to be sent again."""


class Producer:
    """Call `add` for each record, and `flush` at the end. Both return what became of records."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        settings: Settings,
        *,
        random: Random | None = None,
        now_ms: Callable[[], int] = lambda: int(time.time() * 1000),
    ) -> None:
        """The topic must exist. Raises ClientError."""
        self._cluster = cluster
        self._topic = cluster.led_topic(topic)
        self._settings = settings
        self._now_ms = now_ms
        self._waiting = Batches(topic, len(self._topic.partitions), random or Random())
        self._producer_id, self._epoch = -1, -1
        self._sequences: dict[int, int] = {}
        if settings.acks == ALL:
            self._begin_sequences()

    def add(self, record: NewRecord) -> Iterator[Settled]:
        """Add a record, and send those before it if the batches are full. Raises NoPartition, ClientError."""
        if record.timestamp_ms is None:
            record = record._replace(timestamp_ms=self._now_ms())
        if not self._waiting.add(record):
            yield from self.flush()
            self._waiting.add(record)

    def flush(self) -> Iterator[Settled]:
        """Send all records, and wait until they are written or refused. Raises ClientError."""
        yield from self._write([_Batch(*each) for each in self._waiting.take().items()])

    # ---- inside

    def _begin_sequences(self) -> None:
        """Get a producer id. A broker that gives none gets batches without sequence numbers."""
        self._producer_id, self._epoch, self._sequences = -1, -1, {}
        if not self._cluster.any().serves(ApiKey.INIT_PRODUCER_ID):
            return
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)

        def ask() -> Any:
            found = self._cluster.ask(self._cluster.any(), request)
            retry_or_check("a producer id", found.error_code)
            return found

        try:
            found = self._cluster.until_done(ask)
        except Refused as refused:
            if refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                return  # before Kafka 2.8 this needs a right of its own
            raise
        self._producer_id, self._epoch = found.producer_id, found.producer_epoch

    def _write(self, batches: list[_Batch]) -> Iterator[Settled]:
        """Send batches, at most one for each partition, until all are written or refused."""
        end_s = time.monotonic() + self._cluster.settings.timeout_s
        is_first = True
        while batches:
            if not is_first:
                self._wait_before_retry(batches, end_s)
            is_first = False
            again: list[_Batch] = []
            for each, answered in self._send(batches):
                yield from self._settle(each, answered, again)
            batches = again

    def _wait_before_retry(self, batches: list[_Batch], end_s: float) -> None:
        refusal = next((each.refusal for each in batches if each.refusal is not None), None)
        if refusal is not None:
            if time.monotonic() >= end_s:
                raise refusal
            time.sleep(PAUSE_S)
        self._topic = self._cluster.led_topic(self._topic.name)

    def _send(self, batches: Sequence[_Batch]) -> Iterator[tuple[_Batch, Any]]:
        """Send batches to their leaders, and yield each with its answer: a PartitionProduceResponse, None
        without an answer with acks=0, or the ClientError for which it has to be sent again.
        """
        by_partition = {each.partition: each for each in batches}
        sent: list[tuple[Connection, list[_Batch]]] = []
        try:
            leaders = led(self._topic, by_partition)
        except Retry as retry:
            yield from ((each, retry.error) for each in batches)
            return
        for leader, partitions in leaders.items():
            some = [by_partition[partition] for partition in partitions]
            try:
                connection = self._cluster.node(leader)
                connection.send(self._request(some), has_response=self._settings.acks != 0)
            except Retry as retry:
                yield from ((each, retry.error) for each in some)
            except Unreachable as error:
                self._cluster.drop(connection)
                yield from ((each, error) for each in some)
            else:
                sent.append((connection, some))
        for connection, some in sent:
            yield from self._answers(connection, some)

    def _answers(self, connection: Connection, batches: Sequence[_Batch]) -> Iterator[tuple[_Batch, Any]]:
        if self._settings.acks == 0:
            yield from ((each, None) for each in batches)
            return
        try:
            response = connection.receive(self._cluster.settings.timeout_s + 5)
        except Unreachable as error:
            self._cluster.drop(connection)
            yield from ((each, error) for each in batches)
            return
        answers = {each.index: each for each in response.responses[0].partition_responses}
        yield from ((each, answers[each.partition]) for each in batches)

    def _request(self, batches: Sequence[_Batch]) -> ProduceRequest:
        data = tuple(
            PartitionProduceData(index=each.partition, records=self._encoded(each)) for each in batches
        )
        return ProduceRequest(
            acks=self._settings.acks,
            timeout_ms=int(self._cluster.settings.timeout_s * 1000),
            topic_data=(TopicProduceData(name=self._topic.name, partition_data=data),),
        )

    def _encoded(self, it: _Batch) -> bytes:
        has_id = self._producer_id >= 0
        return batch.encode(
            (
                batch.Record(offset, record.timestamp_ms or 0, record.key, record.value, record.headers)
                for offset, record in enumerate(it.records)
            ),
            compression=self._settings.compression,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._sequences.get(it.partition, 0) if has_id else -1,
        )

    # ---- answers

    def _settle(self, it: _Batch, answered: Any, again: list[_Batch]) -> Iterator[Settled]:
        """Yield what became of a batch's records. A batch that has to be sent again goes to `again`."""
        if isinstance(answered, ClientError):
            it.refusal = answered
            again.append(it)
            return
        code = ErrorCode.NONE if answered is None else answered.error_code
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self._sequences[it.partition] = _after(self._sequences.get(it.partition, 0), len(it.records))
            yield Written(it.partition, -1 if answered is None else answered.base_offset, it.records)
        elif code in _TOO_LARGE and len(it.records) > 1:
            half = len(it.records) // 2
            # One after the other, as a partition has one batch under way.
            for some in (it.records[:half], it.records[half:]):
                yield from self._write([_Batch(it.partition, some)])
        elif code in _NEW_ID and self._producer_id >= 0:
            self._begin_sequences()
            again.append(it)
        elif is_retriable(code):
            it.refusal = Refused(f"{self._topic.name}-{it.partition}", code, answered.error_message)
            again.append(it)
        else:
            yield from self._refused(it, answered, again)

    def _refused(self, it: _Batch, answered: Any, again: list[_Batch]) -> Iterator[Settled]:
        """Yield the refused records. Those that were only in the same batch are sent again without them."""
        wrong = {each.batch_index: each.batch_index_error_message for each in answered.record_errors}
        left = [record for at, record in enumerate(it.records) if at not in wrong] if wrong else []
        for at, record in enumerate(it.records):
            if not wrong or at in wrong:
                message = wrong.get(at) or answered.error_message
                why = f"{error_name(answered.error_code)}{f': {message}' if message else ''}"
                yield NotWritten(record, why)
        if left:
            again.append(_Batch(it.partition, left))


def _after(sequence: int, count: int) -> int:
    """The sequence number after a batch; it wraps at 2**31."""
    return (sequence + count) & 0x7FFFFFFF
