"""The records of a partition, for people: from an offset or a time on, as text, JSON or hex, within bounds.

They are asked for with Kafka's own requests, as an unauthenticated client from the asker's host would. So
ACLs are obeyed, and of transactions only those that are committed are shown.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypedDict

from kshim.cluster.topics import Partition, Topic
from kshim.http.answers import Answer, Asked, HttpError, json_answer
from kshim.http.facts import Facts
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.fetch import AbortedTransaction, FetchPartition, FetchRequest, FetchTopic
from schemas.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from schemas.records.batch import CorruptRecordBatch, RecordBatchHeader, batches, decode_header, records
from schemas.records.end_txn_marker import decode_marker
from schemas.records.record import Record

FETCH_VERSION, LIST_OFFSETS_VERSION = 11, 7
READ_COMMITTED = 1
MOST_RECORDS = 100
FEW_RECORDS = 20
MOST_BYTES = 256 * 1024
"""Most bytes of batches that are read at a time; one batch is read even if it is larger."""
MOST_EXPANDED_BYTES = 16 * 1024 * 1024
MOST_CHARACTERS = 2_000
"""Most characters of a key, a value or a header."""
MOST_HEADERS = 20
new_decoder = codecs.getincrementaldecoder("utf-8")
FORMS: Final = ("auto", "text", "json", "hex")
UNKNOWN_OFFSET = -1
RECORDS_QUERY = ("partition", "offset", "time", "count", "as")


class ShownRecord(TypedDict):
    """A record; long texts are cut."""

    partition: int
    offset: int
    timestamp_ms: int
    key: str | None
    value: str | None
    headers: list[tuple[str, str | None]]
    bytes: int
    """The size of key and value."""


class ShownRecords(TypedDict):
    """Some records of a partition."""

    topic: str
    partition: int
    start: int
    end: int
    offset: int
    """Where the records were asked for."""
    next_offset: int
    """Where the next ones begin."""
    records: Sequence[ShownRecord]
    note: str
    """Why there are no more, if that is a fault; empty if not."""


class Wanted(NamedTuple):
    """The question."""

    topic: Topic
    partition: Partition
    offset: int | None
    """None for the last ones."""
    time_ms: int | None
    most: int
    form: str


async def topic_records(facts: Facts, asked: Asked) -> Answer:
    """GET /topics/{topic}/records"""
    return json_answer(await read(facts, asked, wanted(facts, asked)))


def topic_named(facts: Facts, name: str) -> Topic:
    """The topic with a name. Raises HttpError."""
    topic = facts.cluster.topics.get(name)
    if topic is None:
        raise HttpError(404, f"no topic {name[:250]!r}; GET /topics lists them all")
    return topic


def wanted(facts: Facts, asked: Asked) -> Wanted:
    """The question of a query. Raises HttpError."""
    topic = topic_named(facts, asked.names[0])
    index = asked.number("partition", 0, 0, 2**31 - 1)
    found = topic.partition(index)
    if found is None:
        raise HttpError(
            404, f"{topic.name} has the partitions 0 to {len(topic.partitions) - 1}, and no {index}"
        )
    form = asked.query.get("as") or FORMS[0]
    if form not in FORMS:
        raise HttpError(400, f"as={form[:50]}: expected one of {', '.join(FORMS)}")
    most = 2**63 - 1
    offset = asked.number("offset", 0, 0, most) if asked.query.get("offset") else None
    time_ms = asked.number("time", 0, 0, most) if asked.query.get("time") else None
    return Wanted(topic, found, offset, time_ms, asked.number("count", FEW_RECORDS, 1, MOST_RECORDS), form)


async def read(facts: Facts, asked: Asked, it: Wanted) -> ShownRecords:
    """Read records. Raises HttpError: 403 if the asker may not read the topic."""
    if facts.ask is None:
        raise HttpError(404, "the records are at the upstream, and not shown here")
    ends = facts.ends.offsets(it.partition.partition_no)
    start, end = ends.log_start_offset, ends.last_stable_offset
    offset = max(end - it.most, start) if it.offset is None else it.offset
    if it.time_ms is not None:
        offset = await _offset_at(facts, asked, it, it.time_ms)
        offset = end if offset == UNKNOWN_OFFSET else offset
    offset = min(max(offset, start), end)
    data, aborted = await _fetched(facts, asked, it, offset)
    rows, after, note = await facts.aside.run_long(
        partial(decoded, data, aborted, it.partition.index, offset, it.most, it.form)
    )
    return {
        "topic": it.topic.name,
        "partition": it.partition.index,
        "start": start,
        "end": end,
        "offset": offset,
        "next_offset": min(after, end),
        "records": rows,
        "note": note,
    }


async def _fetched(
    facts: Facts, asked: Asked, it: Wanted, offset: int
) -> tuple[bytes, Sequence[AbortedTransaction]]:
    fetch = FetchPartition(partition=it.partition.index, fetch_offset=offset, partition_max_bytes=MOST_BYTES)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=MOST_BYTES,
        isolation_level=READ_COMMITTED,
        session_id=0,
        topics=(FetchTopic(topic=it.topic.name, partitions=(fetch,)),),
        rack_id="",
    )
    response = await _asked(facts, asked, it, ApiKey.FETCH, FETCH_VERSION, request)
    (answered,) = response.responses[0].partitions
    _check(it, answered.error_code)
    return bytes(answered.records or b""), answered.aborted_transactions or ()


async def _offset_at(facts: Facts, asked: Asked, it: Wanted, time_ms: int) -> int:
    named = ListOffsetsPartition(partition_index=it.partition.index, timestamp=time_ms)
    request = ListOffsetsRequest(
        replica_id=-1, topics=(ListOffsetsTopic(name=it.topic.name, partitions=(named,)),)
    )
    response = await _asked(facts, asked, it, ApiKey.LIST_OFFSETS, LIST_OFFSETS_VERSION, request)
    (answered,) = response.topics[0].partitions
    _check(it, answered.error_code)
    return int(answered.offset)


async def _asked(
    facts: Facts, asked: Asked, it: Wanted, api_key: ApiKey, version: int, request: object
) -> Any:
    assert facts.ask is not None
    return await facts.ask(api_key, version, request, asked.host, it.partition.leader)


def _check(it: Wanted, error_code: int) -> None:
    """Raise HttpError for an error of a partition."""
    if error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        raise HttpError(
            403, f"User:ANONYMOUS may not read the topic {it.topic.name}: ACLs deny it, or none allows it"
        )
    if error_code != ErrorCode.NONE:
        raise HttpError(503, f"{it.topic.name}-{it.partition.index}: {ErrorCode(error_code).name}")


# ---- decoding, aside


def decoded(
    data: bytes, aborted: Sequence[AbortedTransaction], index: int, offset: int, count: int, form: str
) -> tuple[list[ShownRecord], int, str]:
    """The first records from `offset` on, the offset after them, and a fault; "" for none."""
    shown: list[ShownRecord] = []
    after = offset
    try:
        for header, found in _committed(data, aborted):
            for record in found:
                if record.offset < offset:
                    continue
                if len(shown) == count:
                    return shown, after, ""
                shown.append(shown_record(record, index, form))
                after = record.offset + 1
            after = max(after, header.next_offset)
    except CorruptRecordBatch as error:
        return shown, after, f"the records from {after} on cannot be shown: {error}"
    return shown, after, ""


def _committed(
    data: bytes, aborted: Sequence[AbortedTransaction]
) -> Iterator[tuple[RecordBatchHeader, Iterable[Record]]]:
    """Each batch with its records; without those of aborted transactions, as consumers leave them out."""
    waiting = sorted(aborted, key=lambda each: each.first_offset)
    under_way: set[int] = set()
    for batch in batches(data):
        header = decode_header(batch)
        while waiting and waiting[0].first_offset <= header.next_offset - 1:
            under_way.add(waiting.pop(0).producer_id)
        if header.is_control:
            marker = decode_marker(batch)
            if marker is not None and not marker.committed:
                under_way.discard(header.producer_id)
            yield header, ()
        elif header.is_transactional and header.producer_id in under_way:
            yield header, ()
        else:
            yield header, records(batch, max_bytes=MOST_EXPANDED_BYTES)


def shown_record(record: Record, index: int, form: str) -> ShownRecord:
    """A record with its key, value and headers as texts."""
    return {
        "partition": index,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": as_text(record.key, form),
        "value": as_text(record.value, form),
        "headers": [
            (name[:MOST_CHARACTERS], as_text(value, form)) for name, value in record.headers[:MOST_HEADERS]
        ],
        "bytes": len(record.key or b"") + len(record.value or b""),
    }


def as_text(data: bytes | None, form: str) -> str | None:
    """Bytes as people read them: indented JSON, else text, else hex; or in the form that is asked for."""
    if data is None:
        return None
    if form == "hex":
        return _cut(data[: MOST_CHARACTERS // 2 + 1].hex())
    head = data[: 4 * MOST_CHARACTERS + 4]
    if form in ("json", "auto") and len(data) <= len(head) and data[:1] in (b"{", b"["):
        try:
            return _cut(json.dumps(json.loads(data), ensure_ascii=False, indent=2))
        except (ValueError, RecursionError):
            pass
    try:
        text = new_decoder().decode(head, final=len(data) <= len(head))  # a cut character is left out
    except UnicodeDecodeError:
        text = _hex(data) if form == "auto" else head.decode(errors="replace")
    if form == "auto" and _has_controls(text):
        text = _hex(data)
    return _cut(text)


def _hex(data: bytes) -> str:
    return data[: MOST_CHARACTERS // 2 + 1].hex()


def _has_controls(text: str) -> bool:
    return any(each < " " and each not in "\t\n\r" for each in text[:MOST_CHARACTERS])


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
