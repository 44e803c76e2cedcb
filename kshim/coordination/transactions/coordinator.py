"""The transaction coordinator: finds the shard of a transactional id, checks requests, runs due work."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from kshim.coordination.decision import ANY_NODE, Caller, Decision, Reply
from kshim.coordination.fencing import ProducerIdAndEpoch
from kshim.coordination.shards import partition_for
from kshim.coordination.transactions.decision import Ending, TransactionRecord
from kshim.coordination.transactions.describe import listed, unknown_states
from kshim.coordination.transactions.records import decode_record, encode_record
from kshim.coordination.transactions.requests import Request, as_kept, refuse
from kshim.coordination.transactions.settings import Settings
from kshim.coordination.transactions.shard import OPERATIONS, Shard
from schemas.error_code import ErrorCode
from schemas.messages.init_producer_id import InitProducerIdRequest
from schemas.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from schemas.primitives import can_be_written
from schemas.records.end_txn_marker import EndTxnMarker


class TransactionCoordinator:
    """All transactional ids of the shards that this process leads. Pure: no clock, no disk, no network."""

    topic = "__transaction_state"
    encode = staticmethod(encode_record)
    refuse = staticmethod(refuse)
    as_kept = staticmethod(as_kept)

    def __init__(self, settings: Settings, new_producer_id: Callable[[], int], partitions: int = 50) -> None:
        """new_producer_id: returns an unused producer id; called at most once a request."""
        self.settings = settings
        self.partitions = partitions
        self._new_producer_id = new_producer_id
        self._shards: dict[int, Shard] = {}
        self._abort_at_ms: int | None = None
        self._expire_at_ms: int | None = None
        self._due: deque[tuple[Callable[[Shard, int], Decision], int]] = deque()

    # ---- shards

    def shard_for(self, transactional_id: str) -> int:
        """The number of the shard that a transactional id belongs to, by Kafka's hash."""
        return partition_for(transactional_id, self.partitions)

    def begin_load(self, shard: int, node_id: int = 0) -> None:
        """Begin to load `shard` for the broker `node_id`; it is empty, and refuses requests until loaded."""
        self._shards[shard] = Shard(shard, node_id, self._new_producer_id)

    def replay_marker(self, shard: int, marker: EndTxnMarker) -> None:
        """Do nothing: no record in this log is part of a transaction."""

    def load(
        self, shard: int, records: Iterable[tuple[bytes, bytes | None]], producer: ProducerIdAndEpoch | None
    ) -> list[bytes]:
        """Decode and apply stored records of `shard`, which is loading; return the keys of unknown kinds,
        which are skipped. Raises MalformedMessage.
        """
        apply, unknown = self._shards[shard].replay, []
        for key, value in records:
            record = decode_record(key, value)
            if record is None:
                unknown.append(key)
            else:
                apply(record)
        return unknown

    def replay(
        self, shard: int, records: Iterable[TransactionRecord], producer: ProducerIdAndEpoch | None = None
    ) -> None:
        """Apply the records of a decision in `shard`; calls come in the order of its log."""
        apply = self._shards[shard].replay
        for record in records:
            apply(record)

    def revive(self, shard: int) -> Iterator[None]:
        """Do nothing: the replayed values are served as they are."""
        return iter(())

    def finish_load(self, shard: int, now_ms: int) -> Decision:
        """Serve `shard` from now on; the decision names the transactions that still need markers."""
        if self._abort_at_ms is None or self._expire_at_ms is None:
            self._schedule_abort(now_ms)
            self._schedule_expiry(now_ms)
        return self._shards[shard].finish_load()

    def unload(self, shard: int, now_ms: int = 0) -> Decision:
        """Give up `shard`; it has parked no requests."""
        del self._shards[shard]
        return Decision(shard)

    # ---- requests

    def handle(self, caller: Caller, request: Request, now_ms: int) -> Decision:
        """Decide one request. The checks made before the shard is asked are in Kafka's order."""
        error, number = self.static_error(request), self.shard_for(request.transactional_id or "")
        if error is ErrorCode.NONE:
            shard = self._shards.get(number)
            if shard is None or caller.node_id not in (ANY_NODE, shard.node_id):
                error = ErrorCode.NOT_COORDINATOR
            elif shard.is_loading:
                error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            elif not can_be_written(request.transactional_id or ""):
                error = ErrorCode.UNKNOWN_SERVER_ERROR
            else:
                return OPERATIONS[type(request)](shard, caller, request, now_ms)
        return Decision(number, (), (Reply(caller.token, refuse(request, caller, error)),))

    def complete(self, ended: Ending, now_ms: int) -> Decision:
        """Complete a transaction once all its partitions have their marker."""
        return self._shards[self.shard_for(ended.transactional_id)].complete(ended, now_ms)

    def list_transactions(
        self, request: ListTransactionsRequest, node_id: int, now_ms: int
    ) -> ListTransactionsResponse:
        """The transactional ids that a broker coordinates and that pass the filters; refused while a shard is
        loading. The caller applies the filter by pattern, which may take long.
        """
        shards = [shard for shard in self._shards.values() if shard.node_id == node_id]
        if any(shard.is_loading for shard in shards):
            return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        transactions = (entry for shard in shards for entry in shard.transactions.items())
        return ListTransactionsResponse(
            unknown_state_filters=unknown_states(request),
            transaction_states=tuple(listed(transactions, request, now_ms)),
        )

    def static_error(self, request: Request) -> ErrorCode:
        """The error of a request that is invalid for every coordinator, or NONE."""
        if not request.transactional_id:
            return ErrorCode.INVALID_REQUEST
        if isinstance(request, InitProducerIdRequest):
            longest_ms = self.settings.transaction_max_timeout_ms
            if not 0 < request.transaction_timeout_ms <= longest_ms:
                return ErrorCode.INVALID_TRANSACTION_TIMEOUT
        return ErrorCode.NONE

    # ---- time

    def next_deadline_ms(self) -> int | None:
        """When to call `advance`; None if nothing will come due."""
        if self._abort_at_ms is None or self._expire_at_ms is None or not self._shards:
            return None
        return 0 if self._due else min(self._abort_at_ms, self._expire_at_ms)

    def advance(self, now_ms: int) -> Iterator[Decision]:
        """Yield the decision of each due step; the caller carries it out before it takes the next one.

        Steps that the caller does not take stay due, and come first the next time.
        """
        if self._abort_at_ms is not None and now_ms >= self._abort_at_ms:
            self._due.extend((Shard.abort_timed_out, shard) for shard in self._shards)
            self._schedule_abort(now_ms)
        if self._expire_at_ms is not None and now_ms >= self._expire_at_ms:
            self._due.extend((self._expire, shard) for shard in self._shards)
            self._schedule_expiry(now_ms)
        while self._due:
            step, number = self._due.popleft()
            shard = self._shards.get(number)
            if shard is None or shard.is_loading:
                continue
            decision = step(shard, now_ms)
            if decision.records:
                self._due.append((step, number))  # there may be more
                yield decision

    def _expire(self, shard: Shard, now_ms: int) -> Decision:
        return shard.expire(now_ms - self.settings.transactional_id_expiration_ms)

    def _schedule_abort(self, now_ms: int) -> None:
        interval_ms = self.settings.transaction_abort_timed_out_transaction_cleanup_interval_ms
        self._abort_at_ms = now_ms + interval_ms

    def _schedule_expiry(self, now_ms: int) -> None:
        interval_ms = self.settings.transaction_remove_expired_transaction_cleanup_interval_ms
        self._expire_at_ms = now_ms + interval_ms
