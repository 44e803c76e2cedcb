"""Column expressions decode rows as the schemas do, for every version and for damaged bytes."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession

from kshim.spark.consumer_rows import BEGINNINGS, CURRENT, KINDS
from kshim.spark.rows import decode
from schemas import compiled
from schemas.internal_topics import consumer_group_log as log
from schemas.internal_topics.group_metadata_log import (
    VERSIONS,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    UnknownKey,
    decode_key,
    decode_value,
    encode_key,
)
from schemas.message import MalformedMessage

LOG = "key binary, value binary, partition int, offset long, timestamp timestamp"
Entry = tuple["bytes | None", "bytes | None"]

names = st.text(max_size=30).filter(lambda it: len(it.encode("utf-8", "replace")) == len(it.encode("utf-8")))
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
int32s = st.integers(-(2**31), 2**31 - 1)
times_ms = st.integers(-1, 2**43)
tags = st.dictionaries(st.integers(1, 300), st.binary(max_size=150), max_size=3).map(
    lambda it: tuple(sorted(it.items()))
)

offset_keys = st.builds(OffsetCommitKey, group=text, topic=text, partition=int32s)
group_keys = st.builds(GroupMetadataKey, group=text)


@st.composite
def offset_values(draw: st.DrawFn) -> bytes:
    version = draw(st.sampled_from(VERSIONS))
    value = OffsetCommitValue(
        offset=draw(st.integers(-(2**63), 2**63 - 1)),
        leader_epoch=draw(int32s) if version >= 3 else -1,
        metadata=draw(text),
        commit_timestamp=draw(times_ms),
        expire_timestamp=draw(times_ms) if version == 1 else -1,
        topic_id=draw(st.uuids()) if version == 4 and draw(st.booleans()) else UUID(int=0),
        unknown_tags=draw(tags) if version == 4 else (),
    )
    return encode(value, version)


@st.composite
def group_values(draw: st.DrawFn) -> bytes:
    version = draw(st.sampled_from(VERSIONS))
    unknown = tags if version == 4 else st.just(())
    members = st.builds(
        MemberMetadata,
        member_id=text,
        group_instance_id=st.none() | text if version >= 3 else st.none(),
        client_id=text,
        client_host=text,
        rebalance_timeout=int32s if version >= 1 else st.just(-1),
        session_timeout=int32s,
        subscription=st.binary(max_size=200),
        assignment=st.binary(max_size=200),
        unknown_tags=unknown,
    )
    value = GroupMetadataValue(
        protocol_type=draw(text),
        generation=draw(int32s),
        protocol=draw(st.none() | text),
        leader=draw(st.none() | text),
        current_state_timestamp=draw(times_ms) if version >= 2 else -1,
        members=tuple(draw(st.lists(members, max_size=4))),
        unknown_tags=draw(unknown),
    )
    return encode(value, version)


def encode(value: Any, version: int) -> bytes:
    encoded: bytes = compiled.encoder(type(value), version)(value, version.to_bytes(2))
    return encoded


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    data = draw(whole)
    cut = draw(st.integers(0, len(data)))
    return draw(st.sampled_from([data, data[:cut], data + b"\0", data[:cut] + draw(st.binary(max_size=3))]))


int32_lists = st.lists(int32s, max_size=5).map(tuple)
int64s = st.integers(-(2**63), 2**63 - 1)
maybe_text = st.none() | text
texts = st.lists(text, max_size=4).map(tuple)


def few(element: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(element, max_size=3).map(tuple)


held = few(
    st.builds(
        log.TopicPartitions,
        topic_id=st.uuids(),
        partitions=int32_lists,
        assignment_epochs=st.none() | int32_lists,
        unknown_tags=tags,
    )
)
classic = st.builds(
    log.ClassicMemberMetadata, session_timeout_ms=int32s, supported_protocols=st.just(()), unknown_tags=tags
)
CONSUMER_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "epoch": st.builds(log.ConsumerGroupMetadataValue, epoch=int32s, metadata_hash=int64s, unknown_tags=tags),
    "member": st.builds(
        log.ConsumerGroupMemberMetadataValue,
        instance_id=maybe_text,
        rack_id=maybe_text,
        client_id=text,
        client_host=text,
        subscribed_topic_names=texts,
        subscribed_topic_regex=maybe_text,
        rebalance_timeout_ms=int32s,
        server_assignor=maybe_text,
        classic_member_metadata=st.none() | classic,
        unknown_tags=tags,
    ),
    "current": st.builds(
        log.ConsumerGroupCurrentMemberAssignmentValue,
        member_epoch=int32s,
        previous_member_epoch=int32s,
        state=st.integers(-128, 127),
        assigned_partitions=held,
        partitions_pending_revocation=held,
        unknown_tags=tags,
    ),
}
"""Draws values of each kind whose beginning `decode` reads, by the kind's name."""
KEYS = {name: log.KINDS[kind.number][0] for name, kind in KINDS.items()}
NAMES = {key: name for name, key in KEYS.items()}
SECOND = {"member_id": "member_id", "expression": "regular_expression", "": ""}


@st.composite
def consumer_keys(draw: st.DrawFn, name: str) -> bytes:
    second = SECOND[KINDS[name].second]
    return encode_key(KEYS[name](group=draw(text), **({second: draw(text)} if second else {})))


def consumer_values(name: str) -> st.SearchStrategy[bytes]:
    """Values of a kind; any bytes if they are not read."""
    if name not in CONSUMER_VALUES:
        return st.binary(max_size=20)
    return CONSUMER_VALUES[name].map(lambda value: encode(value, 0))


entries = st.one_of(
    st.tuples(offset_keys.map(encode_key), st.none() | offset_values()),
    st.tuples(group_keys.map(encode_key), st.none() | group_values()),
    *(st.tuples(consumer_keys(name), st.none() | consumer_values(name)) for name in KINDS),
)
bad_entries = st.one_of(
    st.tuples(offset_keys.map(encode_key), damaged(offset_values())),
    st.tuples(group_keys.map(encode_key), damaged(group_values())),
    st.tuples(damaged(offset_keys.map(encode_key)), offset_values()),
    st.tuples(st.none() | st.binary(max_size=40), st.none() | st.binary(max_size=60)),
    st.tuples(group_keys.map(encode_key), st.binary(max_size=60)),
    *(st.tuples(consumer_keys(name), damaged(consumer_values(name))) for name in BEGINNINGS),
    *(st.tuples(damaged(consumer_keys(name)), consumer_values(name)) for name in KINDS),
)


def drawn(entry: st.SearchStrategy[Entry]) -> list[Entry]:
    """Some hundred entries. Spark decodes them all at once: a plan takes it seconds, a record no time."""
    found: list[Entry] = []

    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(st.lists(entry, min_size=40, max_size=80))
    def draw(some: list[Entry]) -> None:
        found.extend(some)

    draw()
    return found


def log_of(spark: SparkSession, entries: list[Entry]) -> DataFrame:
    rows = [
        (
            None if key is None else bytearray(key),
            None if value is None else bytearray(value),
            3,
            offset,
            None,
        )
        for offset, (key, value) in enumerate(entries)
    ]
    return spark.createDataFrame(rows, LOG)


def decoded(spark: SparkSession, entries: list[Entry]) -> list[Row]:
    frame = decode(log_of(spark, entries)).selectExpr(
        "*", "unix_millis(commit_time) c", "unix_millis(expire_time) e", "unix_millis(state_time) s"
    )
    return sorted(
        frame.drop("commit_time", "expire_time", "state_time").collect(), key=lambda it: it.log_offset
    )


def test_every_version(spark: SparkSession) -> None:
    records = drawn(entries)
    for row, (key, value) in zip(decoded(spark, records), records, strict=True):
        assert row.error is None
        assert row.key is None
        assert row.value is None
        assert expected(key, value) == found(row)


def test_damaged_records_are_kept_as_they_are(spark: SparkSession) -> None:
    records = drawn(bad_entries)
    for row, (key, value) in zip(decoded(spark, records), records, strict=True):
        try:
            wanted = expected(key, value)
        except MalformedMessage:
            wanted = None
        if wanted is None and row.kind in READ and row[row.kind] is not None:
            assert row.error is None  # the damage is behind what is read
        elif wanted is None:
            assert row.error
            assert (row.key, row.value) == (key, value)
            assert row.offset is row.generation is row.epoch is row.member is None
        else:
            assert (row.error, found(row)) == (None, wanted)


def test_the_partitions_of_members(spark: SparkSession) -> None:
    whole = consumer_values(CURRENT)
    records = drawn(st.tuples(consumer_keys(CURRENT), st.none() | whole | damaged(whole)))
    rows = decode(log_of(spark, records), CURRENT).orderBy("log_offset").collect()
    for row, (key, value) in zip(rows, records, strict=True):
        read_key = decode_key(key or b"")
        assert (row.kind, row.group, row.member_id) == (CURRENT, read_key.group, read_key.member_id)
        try:
            read = decode_value(read_key, value)
        except MalformedMessage:
            continue  # what stands before the damage may be read
        assert (None if row.current is None else row.current.asDict(recursive=True)) == (
            None if read is None else _current(read)
        )


def expected(key: bytes | None, value: bytes | None) -> tuple[Any, ...] | None:
    """The record as the schemas decode it; None for records of another kind. Raises MalformedMessage."""
    read_key = decode_key(key or b"")
    if isinstance(read_key, UnknownKey):
        return None
    kind = NAMES.get(type(read_key))
    if kind is not None:
        second = getattr(read_key, SECOND[KINDS[kind].second], None)
        read = decode_value(read_key, value) if kind in READ else None
        return kind, read_key.group, second, None if read is None else READ[kind](read)
    read = decode_value(read_key, value)
    if isinstance(read_key, OffsetCommitKey):
        name = ("offset", read_key.group, read_key.topic, read_key.partition)
        return name if read is None else (*name, *_commit(read))
    name = ("group", read_key.group)
    return name if read is None else (*name, *_state(read))


def _id(topic_id: UUID) -> str:
    return base64.urlsafe_b64encode(topic_id.bytes).decode()[:22]


def _held(parts: Any) -> list[dict[str, Any]]:
    return [{"topic_id": _id(it.topic_id), "partitions": list(it.partitions)} for it in parts]


def _current(value: Any) -> dict[str, Any]:
    return {
        "epoch": value.member_epoch,
        "previous_epoch": value.previous_member_epoch,
        "state": value.state,
        "assigned": _held(value.assigned_partitions),
        "revoking": _held(value.partitions_pending_revocation),
    }


READ: dict[str, Callable[[Any], dict[str, Any]]] = {
    "epoch": lambda it: {"epoch": it.epoch},
    "member": lambda it: {
        "group_instance_id": it.instance_id,
        "client_id": it.client_id,
        "client_host": it.client_host,
        "rebalance_timeout_ms": it.rebalance_timeout_ms,
    },
}
"""The kinds of consumer groups that `decode` reads by itself, and what it reads."""


def _commit(value: OffsetCommitValue) -> tuple[Any, ...]:
    topic_id = base64.urlsafe_b64encode(value.topic_id.bytes).decode()[:22] if value.topic_id.int else None
    expire = value.expire_timestamp
    return value.offset, value.leader_epoch, value.metadata, value.commit_timestamp, expire, topic_id


def _state(value: GroupMetadataValue) -> tuple[Any, ...]:
    members = [
        (
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout,
            member.session_timeout,
            member.subscription,
            member.assignment,
        )
        for member in value.members
    ]
    time = value.current_state_timestamp
    return value.protocol_type, value.generation, value.protocol, value.leader, time, members


def found(row: Row) -> tuple[Any, ...]:
    """The row in the shape of `expected`: -1 for a field that its version does not have."""
    if row.kind == "offset":
        name = (row.kind, row.group, row.topic, row.partition)
        expire = -1 if row.e is None else row.e
        values = (row.offset, row.leader_epoch, row.metadata, row.c, expire, row.topic_id)
        return name if row.tombstone else (*name, *values)
    if row.kind in KINDS:
        second = KINDS[row.kind].second
        value = row[row.kind] if row.kind in READ else None
        return row.kind, row.group, row[second] if second else None, value and value.asDict()
    if row.tombstone:
        return row.kind, row.group
    members = [
        (m[0], m[1], m[2], m[3], -1 if m[4] is None else m[4], m[5], bytes(m[6]), bytes(m[7]))
        for m in row.members
    ]
    time = -1 if row.s is None else row.s
    return row.kind, row.group, row.protocol_type, row.generation, row.protocol, row.leader, time, members
