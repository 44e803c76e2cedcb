"""Differences in which records are deleted or compacted, and when."""

from __future__ import annotations

from functools import partial
from typing import Any

from integration.differential.differences.guest import Guest
from integration.differential.differences.partitions import offset, one, record_count
from integration.differential.differences.scenario import difference
from integration.differential.stories.talk import AT_MS
from integration.support.awaiting import wait_until
from schemas.records.batch import NO_TIMESTAMP, Record, encode

PATIENCE_S = 20


@difference("D-compaction", apache_kafka="all but the active segment", kshim="many dirty records")
def what_is_compacted_first(guest: Guest) -> str:
    """Is it the few records in closed segments, or the many in an active one?"""
    compacted: dict[str, Any] = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01"}
    guest.create("few", segment_ms="1", **compacted)
    guest.create("many", **compacted)
    for number in range(3):
        guest.produce_batch("few", 0, one(key=b"k", at_ms=AT_MS + 1000 * number))
    for _ in range(6):
        records = [Record(index, AT_MS, b"k", b"x" * 50) for index in range(1000)]
        guest.produce_batch("many", 0, encode(records))
    produced = {"few": 3, "many": 6000}

    def compacted_now() -> list[str]:
        return [name for name, count in produced.items() if record_count(guest, name) < count]

    first = wait_until(compacted_now, PATIENCE_S, "something is compacted")
    return {"few": "all but the active segment", "many": "many dirty records"}[first[0]]


@difference("D-retention-of-chunks", apache_kafka="kept", kshim="let go")
def one_segment_of_more_than_retention_bytes(guest: Guest) -> str:
    guest.create("large", retention_bytes="200000")
    for _ in range(6):
        guest.produce("large", size=60_000)
    _let_all_be_looked_at(guest)
    return "let go" if offset(guest, "large") else "kept"


@difference("D-records-without-timestamp", apache_kafka="let go alone", kshim="let go with the next")
def records_without_a_timestamp(guest: Guest) -> str:
    guest.create("t", retention_ms="500")
    guest.produce_batch("t", 0, one(at_ms=NO_TIMESTAMP))
    for _ in range(4):
        _let_all_be_looked_at(guest)
    if offset(guest, "t"):
        return "let go alone"
    guest.produce("t")
    wait_until(lambda: offset(guest, "t") == 2, PATIENCE_S, "both records go")
    return "let go with the next"


def _let_all_be_looked_at(guest: Guest) -> None:
    """Wait until the server has checked all partitions once: it must have deleted two expired records."""
    if "old" not in guest.topic_ids:
        guest.create("old", retention_ms="1")
    for number in range(2):
        end = offset(guest, "old") + 1
        guest.produce("old")
        wait_until(partial(_is_gone, guest, end), PATIENCE_S, f"old record {number} goes")


def _is_gone(guest: Guest, before: int) -> bool:
    return offset(guest, "old") == before
