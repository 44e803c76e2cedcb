"""The journal over the shards that this process leads: appends groups and offsets, and knows the transactions
that have offsets in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from twisted.internet.defer import Deferred, fail

from kshim.storage.interfaces import NO_PRODUCER, JournalBatch, StorageError
from kshim.upstream.shards.mirrored import MirroredOffsets
from kshim.upstream.shards.shard import Shard
from kshim.upstream.shards.stored import loaded
from schemas.records.end_txn_marker import EndTxnMarker


class ShardJournal:
    """Implements `Journal`."""

    def __init__(self, shards: Mapping[int, Shard], mirrored: MirroredOffsets | None) -> None:
        """mirrored: copies commits to the upstream; None if that is switched off."""
        self._shards = shards
        self._mirrored = mirrored

    def append(
        self,
        shard: int,
        records: Sequence[tuple[bytes, bytes | None]],
        now_ms: int,
        *,
        producer: tuple[int, int] = NO_PRODUCER,
    ) -> Deferred[Any]:
        """See `Journal.append`."""
        durable = self._shards[shard].append(records, producer)
        if producer == NO_PRODUCER and self._mirrored is not None:
            durable.addCallback(lambda _: self._note(shard, records))
        return durable

    def prove_leadership(self, shard: int) -> Deferred[Any]:
        """See `Journal.prove_leadership`."""
        return self._shards[shard].prove_leadership()

    def _note(self, shard: int, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Copy offsets to the upstream, unless the shard was released: then its next leader does."""
        if self._mirrored is not None and self._shards[shard].is_led:
            self._mirrored.note(shard, records)

    def end_transaction(self, shard: int, marker: EndTxnMarker) -> Deferred[Any]:
        """Refuse: the upstream writes the ends of transactions. See `Journal.end_transaction`."""
        return fail(StorageError("the upstream ends transactions"))

    def load(self, shard: int) -> Iterator[JournalBatch | EndTxnMarker]:
        """Yield the records that the takeover has read."""
        of_shard = self._shards[shard]
        return loaded(of_shard.fetched, of_shard.transactions)

    # ---- transactions, see `GroupShards`

    def has_open_transactions(self, shard: int) -> bool:
        """See `GroupShards.has_open_transactions`."""
        of_shard = self._shards[shard]
        return of_shard.is_led and bool(of_shard.transactions)

    def is_open(self, shard: int, producer_id: int, producer_epoch: int) -> bool:
        """See `GroupShards.is_open`."""
        return self._shards[shard].transactions.is_open(producer_id, producer_epoch)

    def last_marker(self, shard: int, producer_id: int) -> int:
        """See `GroupShards.last_marker`."""
        return self._shards[shard].transactions.last_marker(producer_id)
