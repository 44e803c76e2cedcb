"""The batches of a shard's log, as bytes."""

from __future__ import annotations

from uuid import UUID

import pytest

from kshim.storage.interfaces import StorageDamaged
from kshim.upstream.shards.stored import encode_batch, loaded, read_batches
from kshim.upstream.shards.takeover import Batch
from kshim.upstream.shards.tenure import Outgoing
from kshim.upstream.shards.terms import FIRST_TERM
from schemas.internal_topics.shard_claim import KEY, ShardClaim, encode_claim
from schemas.records.batch import Compression, Record, decode_header, encode, patch

CLAIM = ShardClaim(claim_id=UUID(int=1), host="here", port=9092, lease_ms=500)
NOW_MS = 1_700_000_000_000


def claim_at(offset: int) -> bytes:
    return patch(encode_batch(Outgoing(FIRST_TERM, 0, ((KEY, encode_claim(CLAIM)),)), NOW_MS), offset, 0)


def commits_at(offset: int) -> bytes:
    entries = ((b"a", b"1"), (b"b", None))
    return patch(encode_batch(Outgoing(FIRST_TERM, 7, entries), NOW_MS), offset, 0)


def test_a_batch_names_its_term_and_sequence() -> None:
    header = decode_header(commits_at(3))
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (*FIRST_TERM, 7)
    assert (header.next_offset, header.is_transactional, header.max_timestamp) == (5, False, NOW_MS)


def test_what_a_takeover_is_told() -> None:
    data = claim_at(0) + commits_at(1)
    first, second = Batch(1, FIRST_TERM, CLAIM), Batch(3, FIRST_TERM, None)
    assert list(read_batches(data, 0)) == [first, second]
    assert list(read_batches(data, 2)) == [second], "a fetch begins with the batch that holds the offset"
    assert list(read_batches(data[:-1], 0)) == [first], "the rest was cut off"


def test_what_is_loaded() -> None:
    (batch,) = loaded([claim_at(0) + commits_at(1), commits_at(3)])
    assert list(batch.records) == [(b"a", b"1"), (b"b", None)] * 2


def test_what_others_have_written_does_not_count() -> None:
    theirs = encode([Record(0, NOW_MS, b"a", b"0")], producer_id=4711, producer_epoch=9, base_sequence=0)
    assert list(read_batches(theirs, 0)) == [Batch(1, None, None)]
    assert list(loaded([theirs])) == []


def test_an_upstream_may_compress() -> None:
    entries = [Record(0, NOW_MS, b"a", b"1")]
    ids = {"producer_id": FIRST_TERM.producer_id, "producer_epoch": 0, "base_sequence": 0}
    data = encode(entries, compression=Compression.GZIP, **ids)
    (batch,) = loaded([data])
    assert list(batch.records) == [(b"a", b"1")]


@pytest.mark.parametrize("value", [b"", b"\0\0\1"])
def test_a_claim_that_cannot_be_read(value: bytes) -> None:
    data = encode_batch(Outgoing(FIRST_TERM, 0, ((KEY, value),)), NOW_MS)
    with pytest.raises(StorageDamaged, match="the claim at offset 0 cannot be read"):
        list(read_batches(data, 0))
