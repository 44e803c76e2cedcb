"""A producer of transactions that sends each request by itself, and the partition in which their ends are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from integration.support.awaiting import wait_until
from integration.upstream.partition import AGAIN, WITHIN_S, Partition
from kshim.testing.wire import Wire
from schemas.error_code import ErrorCode
from schemas.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from schemas.messages.describe_transactions import DescribeTransactionsRequest, TransactionState
from schemas.messages.end_txn import EndTxnRequest, EndTxnResponse
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.init_producer_id import InitProducerIdRequest

ADD_PARTITIONS = 3
"""The newest version that clients send: later ones are for brokers."""
EPOCH_BUMPED, EPOCH_KEPT = 5, 4
"""Of EndTxn: with a new epoch for each transaction (KIP-890), and without."""


class Transactor:
    """One transactional id, asked at the only node that there is."""

    def __init__(self, wire: Wire, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._wire = wire
        self._id = transactional_id
        wire.ask(3, FindCoordinatorRequest(key=transactional_id, key_type=1))
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
        begun = self._until(lambda: wire.ask(5, request))
        assert begun.error_code == ErrorCode.NONE, begun
        self.producer_id: int = begun.producer_id
        self.producer_epoch: int = begun.producer_epoch

    def _until(self, ask: Callable[[], Any]) -> Any:
        """The first answer that is not to be asked again."""

        def asked() -> Any:
            answer = ask()
            return None if answer.error_code in AGAIN else answer

        return wait_until(asked, WITHIN_S, "an answer of the transaction coordinator")

    def add_once(self, topic: str, partition: int = 0) -> ErrorCode:
        """Add a partition to the transaction; CONCURRENT_TRANSACTIONS while the one before ends."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=(AddPartitionsToTxnTopic(name=topic, partitions=(partition,)),),
        )
        answer = self._wire.ask(ADD_PARTITIONS, request)
        (found,) = answer.results_by_topic_v3_and_below
        return ErrorCode(found.results_by_partition[0].partition_error_code)

    def add(self, topic: str, partition: int = 0) -> ErrorCode:
        """Like `add`, repeated until the transaction before has ended."""

        def added() -> list[ErrorCode] | None:
            error = self.add_once(topic, partition)
            return None if error in AGAIN else [error]

        return wait_until(added, WITHIN_S, "a partition is added")[0]

    def end(self, committed: bool = True, version: int = EPOCH_KEPT) -> EndTxnResponse:
        """End the transaction, and take the epoch of the next one."""
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            committed=committed,
        )
        answer: EndTxnResponse = self._until(lambda: self._wire.ask(version, request))
        if answer.error_code == ErrorCode.NONE and version == EPOCH_BUMPED:
            self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
        return answer

    def described(self) -> TransactionState:
        request = DescribeTransactionsRequest(transactional_ids=(self._id,))
        state: TransactionState = self._wire.ask(0, request).transaction_states[0]
        return state


def transactor(partition: Partition, transactional_id: str, timeout_ms: int = 60_000) -> Transactor:
    return Transactor(partition.wire, transactional_id, timeout_ms)
