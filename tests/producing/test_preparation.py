"""Checks that are made at once, checks that are made aside, and limits of decompression."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kshim.cluster.topic_configs import LogConfig
from kshim.producing import preparation
from kshim.producing.preparation import Prepared, Ready, most_expanded_bytes
from kshim.producing.record_checks import MOST_ERRORS, RecordFault
from kshim.turns import Turn
from schemas.error_code import ErrorCode
from schemas.records.batch import Compression, Record, decode_header, encode
from tests.api.harness import NOW_MS, AtOnce, context, create, new_broker, result

MIB = 1024 * 1024
CODECS = [codec for codec in Compression if codec is not Compression.NONE]
FAR_REACHING = [codec for codec in CODECS if codec is not Compression.SNAPPY]
"""Snappy expands to 22 times its size."""


def log_config(**configs: str) -> LogConfig:
    broker = new_broker()
    return broker.cluster.log_config(create(broker, "t", **configs), broker.node_id)


def batch(
    records: int, value_bytes: int = 0, codec: Compression = Compression.NONE, **more: Any
) -> memoryview:
    found = (Record(offset, NOW_MS, None, bytes(value_bytes)) for offset in range(records))
    return memoryview(encode(found, compression=codec))


def prepare(sent: memoryview, batches: int = 1, **configs: str) -> tuple[Prepared, AtOnce, Turn]:
    aside, caller = AtOnce(), context(9)
    broker = replace(new_broker(), aside=aside)
    topic = create(broker, "t", **configs)
    prepared = preparation.prepare(broker, caller, topic, topic.partitions[0], sent, batches)
    return result(prepared), aside, caller.turn


@pytest.mark.parametrize("codec", Compression)
def test_a_small_batch_is_prepared_at_once(codec: Compression) -> None:
    sent = batch(100, 100, codec)
    prepared, aside, turn = prepare(sent)
    assert prepared == Ready(decode_header(sent), sent, NOW_MS, False)
    assert (aside.count, turn.is_alone) == (0, False)


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_expands_to_much_is_prepared_aside(codec: Compression) -> None:
    sent = batch(1, 2 * MIB, codec)
    prepared, aside, turn = prepare(sent)
    assert prepared == Ready(decode_header(sent), sent, NOW_MS, False)
    assert (aside.count, turn.is_alone) == (1, True)


def test_a_batch_of_many_records_is_prepared_aside() -> None:
    sent = batch(preparation.LIGHT_RECORDS + 1)
    prepared, aside, turn = prepare(sent)
    assert prepared == Ready(decode_header(sent), sent, NOW_MS, False)
    assert (aside.count, turn.is_alone) == (1, True)


def test_the_batches_of_a_request_share_what_is_done_at_once() -> None:
    sent = batch(preparation.LIGHT_RECORDS // 10 + 1)
    assert prepare(sent, batches=1)[1].count == 0
    assert prepare(sent, batches=10)[1].count == 1


@pytest.mark.parametrize("codec", FAR_REACHING)
def test_a_batch_that_expands_too_far_is_too_large(codec: Compression) -> None:
    sent = batch(1, 17 * MIB, codec)
    prepared, _, _ = prepare(sent, max_message_bytes=str(MIB))
    assert isinstance(prepared, RecordFault)
    assert prepared.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert prepared.message == f"{codec.name.lower()}: more than {16 * MIB} bytes"


@pytest.mark.parametrize(
    ("batch_bytes", "max_message_bytes", "limit"),
    [
        (1000, MIB, 16 * MIB),
        (500_000, MIB, 50_000_000),
        (MIB, MIB, 64 * MIB),
        (1000, 10 * MIB, 160 * MIB),
        (1000, 100 * MIB, 256 * MIB),
    ],
)
def test_how_far_a_batch_may_expand(batch_bytes: int, max_message_bytes: int, limit: int) -> None:
    header = decode_header(batch(1))._replace(batch_length=batch_bytes - 12)
    assert most_expanded_bytes(header, log_config(max_message_bytes=str(max_message_bytes))) == limit


@pytest.mark.parametrize("codec", FAR_REACHING)
def test_a_batch_that_is_recompressed_may_not_expand_further_either(codec: Compression) -> None:
    other = "gzip" if codec is not Compression.GZIP else "zstd"
    prepared, _, _ = prepare(batch(1, 17 * MIB, codec), compression_type=other)
    assert isinstance(prepared, RecordFault)
    assert prepared.error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_so_many_errors_of_records_are_told() -> None:
    prepared, _, _ = prepare(batch(MOST_ERRORS + 1), cleanup_policy="compact")
    assert isinstance(prepared, RecordFault)
    assert prepared.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in prepared.record_errors] == list(range(MOST_ERRORS))
