"""The limit of batches, and how a batch is measured."""

from __future__ import annotations

import pytest

from kshim.upstream.shards.batch_limit import DEFAULT_BYTES, MOST_BYTES, BatchLimit
from kshim.upstream.shards.stored import encode_batch
from kshim.upstream.shards.tenure import Entry, Outgoing
from kshim.upstream.shards.terms import FIRST_TERM
from schemas.internal_topics.pending_offset import PendingKey, PendingValue
from schemas.internal_topics.pending_offset import encode_pending_key as key_of
from schemas.internal_topics.pending_offset import encode_pending_value as value_of


def test_by_default_it_is_kafkas() -> None:
    limit = BatchLimit()
    assert limit.batch_bytes == MOST_BYTES
    assert DEFAULT_BYTES - 1000 < limit.record_bytes < DEFAULT_BYTES


@pytest.mark.parametrize("max_message_bytes", [5_000, 100_000, DEFAULT_BYTES, 10_000_000])
def test_what_is_not_above_it_fits(max_message_bytes: int) -> None:
    limit = BatchLimit(max_message_bytes)
    key = b"k" * 100
    offset = value_of(PendingValue(32_767, 2**62, bytes(limit.record_bytes - len(key))))
    one: list[Entry] = [(key_of(PendingKey(2**62, 2**62, key)), offset)]
    many: list[Entry] = [(b"k" * 20, None)] * (limit.batch_bytes // 20)
    for entries in one, many:
        assert len(encode_batch(Outgoing(FIRST_TERM, 0, entries), 2**41)) <= max_message_bytes


def test_it_shrinks_with_each_batch_that_is_refused() -> None:
    limit = BatchLimit(DEFAULT_BYTES)
    for _ in range(20):
        limit.refused(limit.batch_bytes)
    assert 0 < limit.batch_bytes < 1024
