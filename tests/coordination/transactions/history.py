"""A transaction coordinator with the test's own clock, producer ids and journal.

A `History` sends requests, passes time, writes the markers on demand, and remembers every answer.
After each step the journal and the coordinator must agree.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

from kshim.coordination.decision import Caller, Decision
from kshim.coordination.transactions.coordinator import TransactionCoordinator
from kshim.coordination.transactions.decision import Ending, TransactionRecord
from kshim.coordination.transactions.records import decode_record, encode_record
from kshim.coordination.transactions.requests import AddPartitions, DescribeTransaction
from kshim.coordination.transactions.settings import Settings
from kshim.coordination.transactions.states import State
from kshim.coordination.transactions.transaction import Transaction
from schemas.error_code import ErrorCode
from schemas.messages.end_txn import EndTxnRequest, EndTxnResponse
from schemas.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

NOW_MS = 1_700_000_000_000
TIMEOUT_MS = 60_000
ID = "payments"
T0, T1, OTHER = ("topic", 0), ("topic", 1), ("other", 0)


class History:
    """One shard of transactional ids."""

    def __init__(self, settings: Settings | None = None, *, first_producer_id: int = 1000) -> None:
        self.settings = settings or Settings()
        self.now_ms = NOW_MS
        self.journal: list[tuple[bytes, bytes | None]] = []
        self.endings: list[Ending] = []
        """The transactions whose markers are not written yet."""
        self._producer_ids = count(first_producer_id)
        self._tokens = count()
        self.coordinator = self._new_coordinator()
        self.load()

    def _new_coordinator(self) -> TransactionCoordinator:
        return TransactionCoordinator(self.settings, lambda: next(self._producer_ids), 1)

    def load(self) -> None:
        """Read the journal, as after a restart."""
        self.endings.clear()
        self.coordinator.begin_load(0)
        records = (decode_record(key, value) for key, value in self.journal)
        self.coordinator.replay(0, [record for record in records if record is not None])
        self.carry_out(self.coordinator.finish_load(0, self.now_ms))

    def restart(self) -> None:
        """Start a new coordinator on the same journal."""
        self.coordinator = self._new_coordinator()
        self.load()

    def decide(self, request: Any, version: int = 5) -> Decision:
        """Decide about a request and carry the decision out; its reply has the token 0."""
        decision = self.coordinator.handle(Caller(0, version), request, self.now_ms)
        self.carry_out(decision)
        return decision

    def ask(self, request: Any, version: int = 5) -> Any:
        (reply,) = self.decide(request, version).replies
        return reply.response

    def carry_out(self, decision: Decision) -> None:
        self.coordinator.replay(0, decision.records)
        for record in decision.records:
            self.journal.append(encode_record(record))
            self._check(record.transactional_id)
        self.endings += decision.endings

    def _check(self, transactional_id: str) -> None:
        """The last record must equal what the coordinator knows, except for the previous epoch."""
        stored, known = _decoded(self.journal[-1]).transaction, self.transaction(transactional_id)
        assert stored == (known and replace(known, last_producer_epoch=-1))

    def write_markers(self) -> None:
        """Write all markers of all transactions that are ending."""
        while self.endings:
            self.carry_out(self.coordinator.complete(self.endings.pop(0), self.now_ms))

    def pass_ms(self, ms: int) -> list[Decision]:
        """Pass time and do what is due; return the decisions."""
        self.now_ms += ms
        decisions = []
        for decision in self.coordinator.advance(self.now_ms):
            self.carry_out(decision)
            decisions.append(decision)
        return decisions

    def transaction(self, transactional_id: str = ID) -> Transaction | None:
        return self.coordinator._shards[0].transactions.get(transactional_id)

    @property
    def state(self) -> State:
        transaction = self.transaction()
        assert transaction is not None
        return transaction.state

    # ---- what a producer sends

    def init(self, version: int = 5, **fields: Any) -> InitProducerIdResponse:
        answer: InitProducerIdResponse = self.ask(init(**fields), version)
        return answer

    def add(self, producer: tuple[int, int], *partitions: tuple[str, int], **fields: Any) -> ErrorCode:
        """The only error, the same for all partitions."""
        result = self.ask(AddPartitions(ID, *producer, partitions or (T0,), **fields))
        (error,) = {
            each.partition_error_code for t in result.topic_results for each in t.results_by_partition
        }
        return ErrorCode(error)

    def end(self, producer: tuple[int, int], committed: bool = True, version: int = 5) -> EndTxnResponse:
        answer: EndTxnResponse = self.ask(end(producer, committed), version)
        return answer

    def describe(self) -> Any:
        return self.ask(DescribeTransaction(ID), 0)

    def give_epoch(self, producer_epoch: int) -> None:
        """Pretend that the id was used so often that its producer has this epoch."""
        transaction = self.transaction()
        assert transaction is not None
        self.carry_out(
            Decision(0, (TransactionRecord(ID, replace(transaction, producer_epoch=producer_epoch)),))
        )


def _decoded(entry: tuple[bytes, bytes | None]) -> Any:
    record = decode_record(*entry)
    assert record is not None
    return record


def init(**fields: Any) -> InitProducerIdRequest:
    request = InitProducerIdRequest(
        transactional_id=ID, transaction_timeout_ms=TIMEOUT_MS, producer_id=-1, producer_epoch=-1
    )
    return replace(request, **fields)


def end(producer: tuple[int, int], committed: bool = True) -> EndTxnRequest:
    producer_id, producer_epoch = producer
    return EndTxnRequest(
        transactional_id=ID, producer_id=producer_id, producer_epoch=producer_epoch, committed=committed
    )
