"""One shard: the transactional ids whose records are in one partition of `__transaction_state`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kshim.coordination.decision import Caller, Decision, Reply
from kshim.coordination.transactions import add_partitions, end_txn
from kshim.coordination.transactions.decision import Ending, TimedOut, TransactionRecord
from kshim.coordination.transactions.describe import describe
from kshim.coordination.transactions.init_producer_id import begin
from kshim.coordination.transactions.requests import (
    AddPartitions,
    DescribeTransaction,
    partition_results,
    refuse,
)
from kshim.coordination.transactions.states import ENDING, IDLE, TRANSITIONS, State
from kshim.coordination.transactions.transaction import Transaction, new_transaction
from schemas.error_code import ErrorCode
from schemas.messages.end_txn import EndTxnRequest
from schemas.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

MOST_EXPIRED = 1_000
"""How many transactional ids one step of an expiry run deletes before it makes way for requests."""
MOST_ABORTED = 100
"""How many transactions, counted with their partitions, one step aborts before it makes way for requests."""


class Shard:
    """The transactional ids of one partition. Requests go to `OPERATIONS`."""

    __slots__ = ("_new_producer_id", "is_loading", "node_id", "number", "transactions")

    def __init__(self, number: int, node_id: int, new_producer_id: Callable[[], int]) -> None:
        """node_id: the broker that leads the shard."""
        self.number = number
        self.node_id = node_id
        self._new_producer_id = new_producer_id
        self.transactions: dict[str, Transaction] = {}
        self.is_loading = True

    # ---- durable state

    def replay(self, record: TransactionRecord) -> None:
        """Apply a record, in the order of the log; the only writer of `transactions`.

        Compaction leaves out intermediate states, so transitions are not checked while the shard is loading.
        """
        transactional_id, transaction = record
        if not self.is_loading:
            before = self.transactions.get(transactional_id)
            state = State.EMPTY if before is None else before.state
            assert (State.DEAD if transaction is None else transaction.state) in TRANSITIONS[state]
        if transaction is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = transaction

    def finish_load(self) -> Decision:
        """Serve from now on. Transactions that were ending when the server stopped get their markers, perhaps
        for a second time.
        """
        self.is_loading = False
        ending = ((name, it) for name, it in self.transactions.items() if it.state in ENDING)
        return Decision(self.number, endings=tuple(Ending(name, it) for name, it in ending))

    # ---- requests

    def init_producer_id(self, caller: Caller, request: InitProducerIdRequest, now_ms: int) -> Decision:
        """See `init_producer_id`. An unknown transactional id is created."""
        transactional_id = request.transactional_id
        assert transactional_id is not None
        known = self.transactions.get(transactional_id)
        transaction = known or new_transaction(
            self._new_producer_id(), request.transaction_timeout_ms, now_ms
        )
        following = begin(transaction, request, self._new_producer_id, now_ms)
        if isinstance(following, ErrorCode):
            return self._reply(caller, refuse(request, caller, following))
        if following.state is State.PREPARE_ABORT:
            refusal = refuse(request, caller, ErrorCode.CONCURRENT_TRANSACTIONS)
            return self._ending(caller, transactional_id, following, refusal)
        response = InitProducerIdResponse(
            producer_id=following.producer_id, producer_epoch=following.producer_epoch
        )
        records = (TransactionRecord(transactional_id, following),)
        return Decision(self.number, records, (Reply(caller.token, response),))

    def add_partitions(self, caller: Caller, request: AddPartitions, now_ms: int) -> Decision:
        """See `add_partitions`."""
        transactional_id = request.transactional_id
        transaction = self.transactions.get(transactional_id)
        if request.verify_only:
            errors = add_partitions.verify(transaction, request)
            return self._reply(caller, partition_results(transactional_id, errors.items()))
        following, error = add_partitions.add(transaction, request, now_ms)
        reply = Reply(caller.token, refuse(request, caller, error))
        records = () if following is None else (TransactionRecord(transactional_id, following),)
        return Decision(self.number, records, (reply,))

    def end_txn(self, caller: Caller, request: EndTxnRequest, now_ms: int) -> Decision:
        """See `end_txn`. The answer leaves when the outcome is durable; the markers are written later."""
        transaction = self.transactions.get(request.transactional_id)
        if caller.api_version >= end_txn.FIRST_VERSION_WITH_EPOCH:
            following, response = end_txn.end_v2(transaction, request, self._new_producer_id, now_ms)
        else:
            following, response = end_txn.end_v1(transaction, request, now_ms)
        if following is None:
            return self._reply(caller, response)
        return self._ending(caller, request.transactional_id, following, response)

    def describe_transaction(self, caller: Caller, request: DescribeTransaction, now_ms: int) -> Decision:
        """See `describe`."""
        transaction = self.transactions.get(request.transactional_id)
        if transaction is None:
            return self._reply(caller, refuse(request, caller, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND))
        return self._reply(caller, describe(request.transactional_id, transaction))

    # ---- without a request

    def complete(self, ended: Ending, now_ms: int) -> Decision:
        """Complete a transaction once all its partitions have their marker, unless it has changed since."""
        if self.transactions.get(ended.transactional_id) != ended.transaction:
            return Decision(self.number)
        completed = ended.transaction.completed(now_ms)
        return Decision(self.number, (TransactionRecord(ended.transactional_id, completed),))

    def abort_timed_out(self, now_ms: int) -> Decision:
        """Abort the transactions that have been open for too long, and fence their producers. Stops once the
        aborted transactions and their partitions together number MOST_ABORTED.
        """
        timed_out: list[tuple[str, Transaction]] = []
        left = MOST_ABORTED
        for name, it in self.transactions.items():
            if it.is_timed_out(now_ms):
                timed_out.append((name, it.fenced(now_ms)))
                left -= 1 + len(it.partitions)
                if left <= 0:
                    break
        return Decision(
            self.number,
            tuple(TransactionRecord(name, fenced) for name, fenced in timed_out),
            reports=tuple(TimedOut(name) for name, _ in timed_out),
            endings=tuple(Ending(name, fenced) for name, fenced in timed_out),
        )

    def expire(self, unused_since_ms: int) -> Decision:
        """Delete the ids that have not been used since `unused_since_ms`, at most MOST_EXPIRED of them."""
        expired = [
            name
            for name, it in self.transactions.items()
            if it.state in IDLE and it.last_update_ms <= unused_since_ms
        ]
        return Decision(self.number, tuple(TransactionRecord(name, None) for name in expired[:MOST_EXPIRED]))

    def _reply(self, caller: Caller, response: object) -> Decision:
        return Decision(self.number, (), (Reply(caller.token, response),))

    def _ending(
        self, caller: Caller, transactional_id: str, following: Transaction, response: object
    ) -> Decision:
        return Decision(
            self.number,
            (TransactionRecord(transactional_id, following),),
            (Reply(caller.token, response),),
            endings=(Ending(transactional_id, following),),
        )


Operation = Callable[[Shard, Caller, Any, int], Decision]

OPERATIONS: dict[type, Operation] = {
    InitProducerIdRequest: Shard.init_producer_id,
    AddPartitions: Shard.add_partitions,
    EndTxnRequest: Shard.end_txn,
    DescribeTransaction: Shard.describe_transaction,
}
"""The method that answers each kind of request."""
