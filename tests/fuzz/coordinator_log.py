"""Keys and values of __consumer_offsets and __transaction_state.

An input is a byte with the length of the key, the key, and the value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

from schemas import compiled
from schemas.internal_topics import group_metadata_log, transaction_log
from schemas.internal_topics.group_metadata_log import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    UnknownKey,
)
from schemas.internal_topics.transaction_log import TransactionLogValue
from schemas.message import MalformedMessage, Value
from tests.fuzz.instances import instance
from tests.fuzz.target import Target
from tests.fuzz.wire import has_long_string, plain, read_by_construct


def _key_and_value(data: bytes) -> tuple[bytes, bytes | None]:
    """The value is null if nothing is behind the key."""
    end = 1 + (data[0] if data else 0)
    return data[1:end], data[end:] or None


def _joined(key: bytes, value: bytes) -> bytes:
    return bytes([len(key)]) + key + value


def _without_tags(value: Any) -> Any:
    """The value as it is written: in a version that keeps no tags that are unknown."""
    if isinstance(value, Value):
        fields = dataclasses.fields(value)
        given = {
            it.name: _without_tags(getattr(value, it.name)) for it in fields if it.name != "unknown_tags"
        }
        return type(value)(**given)
    return tuple(map(_without_tags, value)) if isinstance(value, tuple) else value


def _agree(cls: Any, data: bytes, found: Any) -> None:
    version = int.from_bytes(data[:2])
    expected = read_by_construct(cls, version, data, 2)
    assert expected is not None
    assert (plain(expected[0]), expected[1]) == (plain(found), len(data))


# ---- __consumer_offsets


def _read_group(data: bytes) -> tuple[Any, Any]:
    key, value = _key_and_value(data)
    decoded = group_metadata_log.decode_key(key)
    return decoded, group_metadata_log.decode_value(decoded, value)


def _check_group(data: bytes, found: tuple[Any, Any] | None) -> None:
    if found is None:
        return
    key, value = found
    if not has_long_string(key):
        assert group_metadata_log.decode_key(group_metadata_log.encode_key(key)) == key
    if value is None:
        return
    assert not isinstance(key, UnknownKey)
    _agree(type(value), _key_and_value(data)[1] or b"", value)
    if has_long_string(value):
        return
    written = group_metadata_log.encode_value(value)
    again = group_metadata_log.decode_value(key, written)
    assert group_metadata_log.encode_value(again) == written
    expected = _without_tags(value)
    if isinstance(value, OffsetCommitValue) and value.expire_timestamp != -1:
        expected = dataclasses.replace(expected, leader_epoch=-1)
    assert plain(_without_tags(again)) == plain(expected)


def _group_seeds(chance: Random) -> Iterator[bytes]:
    kinds: Iterable[tuple[int, Any, Any]] = (
        (0, OffsetCommitKey, OffsetCommitValue),
        (1, OffsetCommitKey, OffsetCommitValue),
        (2, GroupMetadataKey, GroupMetadataValue),
    )
    for number, key, value in kinds:
        names = {"group": "g", "topic": "t", "partition": 3} if key is OffsetCommitKey else {"group": "g"}
        written = compiled.encoder(key, 0)(key(**names), number.to_bytes(2))
        yield _joined(written, b"")
        for version in group_metadata_log.VERSIONS:
            for _ in range(3):
                it = instance(value, version, chance)
                yield _joined(written, compiled.encoder(value, version)(it, version.to_bytes(2)))
    yield _joined(b"\0\3unknown", b"\0\0whatever")


GROUP_LOG = Target("group-log", _read_group, (MalformedMessage,), _check_group, _group_seeds)


# ---- __transaction_state


def _read_transaction(data: bytes) -> tuple[str | None, TransactionLogValue | None]:
    key, value = _key_and_value(data)
    return transaction_log.decode_key(key), transaction_log.decode_value(value)


def _check_transaction(data: bytes, found: tuple[str | None, TransactionLogValue | None] | None) -> None:
    if found is None:
        return
    key, value = found
    if key is not None and not has_long_string(key):
        assert transaction_log.decode_key(transaction_log.encode_key(key)) == key
    if value is None:
        return
    _agree(TransactionLogValue, _key_and_value(data)[1] or b"", value)
    if not has_long_string(value):
        written = transaction_log.encode_value(value)
        again = transaction_log.decode_value(written)
        assert again is not None
        assert plain(again) == plain(value)
        assert transaction_log.encode_value(again) == written


def _transaction_seeds(chance: Random) -> Iterator[bytes]:
    key = transaction_log.encode_key("transaction")
    yield _joined(key, b"")
    for version in transaction_log.VERSIONS:
        encode = compiled.encoder(TransactionLogValue, version)
        for _ in range(6):
            yield _joined(key, encode(instance(TransactionLogValue, version, chance), version.to_bytes(2)))


TRANSACTION_LOG = Target(
    "transaction-log", _read_transaction, (MalformedMessage,), _check_transaction, _transaction_seeds
)
