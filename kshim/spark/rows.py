"""The coordinator's log as typed rows: `decode` returns one for each record of `__consumer_offsets`.

The layouts repeat those of `schemas.internal_topics` as column expressions; tests check that both are equal.
`consumer_rows` has those of consumer groups. The row of a record of another kind, of an unknown version or
with damaged bytes has the record's bytes, and `error` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from kshim.spark.binary import int16, int32, int64, let, raw, text, uuid_text, uvarint
from kshim.spark.consumer_rows import BEGINNINGS, CURRENT, EPOCH, KINDS, MEMBER
from kshim.spark.flexible import after_tags, beginning_of, up_to

OFFSET, GROUP, OTHER = "offset", "group", "other"

HISTORY = GROUP, EPOCH, MEMBER
"""The kinds that show when groups rebalanced, and which members they had."""
MEMBERS = MEMBER, CURRENT
"""The kinds that show which partitions the members of consumer groups have."""

_OF_A_VALUE = {OFFSET: "offset", GROUP: "generation", **{name: name for name in BEGINNINGS}}
"""For each kind, a column that is never null if the value was decoded."""

LAST_VERSION = 4  # of offsets and classic groups
FLEXIBLE = 4

Layout: TypeAlias = tuple[tuple[str, int, int], ...]


def decode(log: DataFrame, *only: str) -> DataFrame:
    """Typed rows from the columns of Spark's Kafka source: key, value, partition, offset, timestamp.

    only: kinds, for only their rows and columns, without error, key and value. Spark plans such a query
    seconds faster. Without any, the values of "offset", "group", "epoch" and "member" are decoded.

    kind: "offset" (a commit), "group" (a classic group's state after a rebalance), one of those of consumer
    groups, or "other". The kinds of consumer groups are, by the number in the key: 3 "epoch", 4 "topics",
    5 "member", 6 "target_epoch", 7 "target", 8 "current", 16 "regex". Of the values of "epoch", "member" and
    "current" the beginning is decoded, up to the last field that is in the struct of the kind's name; of the
    values of the other four, nothing. member_id is from the keys of 5, 7 and 8, expression from that of 16.
    tombstone: true if the value is null: what the key names was deleted.
    error: why the record could not be decoded. If it was, or was not to be, `error`, `key` and `value` are
    null.
    log_partition, log_offset, log_time: the record's position in the log, and its timestamp. A group's
    history is ordered by (log_partition, log_offset), not by any timestamp.
    """
    kinds = only or (OFFSET, *HISTORY)
    rows = log.select(
        "key",
        "value",
        fn.col("partition").alias("log_partition"),
        fn.col("offset").alias("log_offset"),
        fn.col("timestamp").alias("log_time"),
        int16(fn.col("key"), 0).alias("key_kind"),
        int16(fn.col("value"), 0).alias("version"),
    ).transform(_keys)
    if only:
        rows = rows.where(fn.col("kind").isin(*only))
    if OFFSET in kinds:
        rows = rows.transform(_offsets)
    if GROUP in kinds:
        rows = rows.transform(_groups)
    rows = rows.withColumns({name: _consumer_value(name) for name in BEGINNINGS if name in kinds})
    return _flat(rows, kinds, has_errors=not only)


def sound(rows: DataFrame, *kinds: str) -> DataFrame:
    """The decoded rows of these kinds that have no error.

    Spark pushes a filter down to the source together with the expressions of its columns, and computes these
    expressions a second time later. For the filter by `kind` that is cheap, and saves decoding other records.
    The other filter must not be pushed down, so it refers to `held`, a nondeterministic column.
    """
    held = rows.where(fn.col("kind").isin(*kinds)).withColumn("held", fn.spark_partition_id())
    has_value = reduce(or_, [fn.col(_OF_A_VALUE[kind]).isNotNull() for kind in kinds])
    return held.where((fn.col("tombstone") | has_value) & (fn.col("held") >= 0)).drop("held")


def _keys(rows: DataFrame) -> DataFrame:
    """Add kind, group, topic, partition, member_id and expression. Each step is a projection that later steps
    share.
    """
    key, key_kind, group_size = fn.col("key"), fn.col("key_kind"), fn.col("group_size")
    is_offset = key_kind.isin(0, 1)
    has_second = is_offset | key_kind.isin([kind.number for kind in KINDS.values() if kind.second])
    second_size, end = fn.col("second_size"), fn.col("key_end")
    sized = rows.withColumn("group_size", int16(key, 2))
    sized = sized.withColumn("second_size", fn.when(has_second, int16(key, group_size + 4)))
    behind = group_size + 4 + fn.when(has_second, second_size + 2).otherwise(0)
    ended = sized.withColumn("key_end", behind + fn.when(is_offset, 4).otherwise(0))
    is_whole = (
        (group_size >= 0) & (~has_second | (second_size >= 0)) & (fn.octet_length(key) == fn.col("key_end"))
    )
    names = fn.when(is_offset, OFFSET).when(key_kind == 2, GROUP)
    for name, kind in KINDS.items():
        names = names.when(key_kind == kind.number, name)
    named = ended.withColumn("kind", fn.coalesce(fn.when(is_whole, names), fn.lit(OTHER)))
    second = text(key, group_size + 6, second_size)

    def of(column: str) -> Column:
        return fn.col("kind").isin([name for name, kind in KINDS.items() if kind.second == column])

    return named.withColumns(
        {
            "group": fn.when(fn.col("kind") != OTHER, text(key, 4, group_size)),
            "topic": fn.when(fn.col("kind") == OFFSET, second),
            "partition": fn.when(fn.col("kind") == OFFSET, int32(key, end - 4)),
            "member_id": fn.when(of("member_id"), second),
            "expression": fn.when(of("expression"), second),
        }
    )


def _offsets(rows: DataFrame) -> DataFrame:
    """Add is_commit, true if the value is a whole commit, and the commit's columns, which are null otherwise.

    In versions that lack them, leader_epoch is -1, and expire_time and topic_id are null. topic_id is in
    Kafka's text form.
    """
    value, version = fn.col("value"), fn.col("version")
    flexible, expires = version == FLEXIBLE, version == 1
    compact_size, size_bytes = uvarint(value, 14)
    size_at = fn.when(version >= 3, 14).otherwise(10)
    size, text_at, after, tagged = (fn.col(name) for name in ("size", "text_at", "after", "tagged"))
    rows = rows.withColumns(
        {
            "size": fn.when(flexible, compact_size - 1).otherwise(int16(value, size_at)),
            "text_at": size_at + fn.when(flexible, size_bytes).otherwise(2),
        }
    ).withColumn("after", text_at + size)
    end = after + fn.when(expires, 16).otherwise(8)
    rows = rows.withColumn("tagged", fn.when(size >= 0, raw(value, end, fn.octet_length(value) - end)))
    whole = fn.when(flexible, _is_tagged(tagged)).otherwise(fn.octet_length(value) == end)
    is_commit = (fn.col("kind") == OFFSET) & version.between(0, LAST_VERSION) & (size >= 0) & whole
    read = {
        "offset": int64(value, 2),
        "leader_epoch": fn.when(version >= 3, int32(value, 10)).otherwise(-1),
        "metadata": text(value, text_at, size),
        "commit_time": fn.timestamp_millis(int64(value, after)),
        "expire_time": fn.timestamp_millis(fn.when(expires, int64(value, after + 8))),
        "topic_id": fn.when(flexible, _topic_id(tagged)),
    }
    # One column each, so that Spark computes only those that a query selects.
    return rows.withColumn("is_commit", fn.coalesce(is_commit, fn.lit(False))).withColumns(
        {name: fn.when(fn.col("is_commit"), column) for name, column in read.items()}
    )


def _groups(rows: DataFrame) -> DataFrame:
    """Add state: the decoded value of a group's record, null for other records."""
    state = fn.when(fn.col("kind") == GROUP, group_value(fn.col("value"), fn.col("version")))
    return rows.withColumn("state", state)


def _consumer_value(kind: str) -> Column:
    """The decoded value of a record of consumer groups, null for records of other kinds."""
    decoded = beginning_of(BEGINNINGS[kind], fn.col("value"))
    return fn.when((fn.col("kind") == kind) & (fn.col("version") == 0), decoded)


_OF_OFFSETS = ("topic", "partition", "offset", "leader_epoch", "metadata", "commit_time")
_RARELY = ("topic_id", "expire_time")
_OF_GROUPS = ("protocol_type", "generation", "protocol", "leader", "members")
_PLACE = ("log_partition", "log_offset", "log_time")


def _flat(rows: DataFrame, kinds: Sequence[str], *, has_errors: bool) -> DataFrame:
    tombstone = fn.col("value").isNull()
    columns: list[Column | str] = ["kind", "group"]
    if OFFSET in kinds:
        columns += _OF_OFFSETS + (_RARELY if has_errors else ())
    if GROUP in kinds:
        columns += [f"state.{name}" for name in _OF_GROUPS]
        columns.append(fn.timestamp_millis("state.state_time_ms").alias("state_time"))
    of_consumers = [name for name in BEGINNINGS if name in kinds]
    named = KINDS if has_errors else of_consumers
    columns += dict.fromkeys(KINDS[name].second for name in named if KINDS[name].second)
    columns += [*of_consumers, tombstone.alias("tombstone"), *_PLACE]
    if not has_errors:
        return rows.select(*columns)
    has_value = reduce(or_, [fn.col(name).isNotNull() for name in of_consumers])
    unread = ~tombstone & ~fn.col("is_commit") & fn.col("state").isNull() & ~has_value
    unread &= fn.col("kind").isin(*kinds)
    error = fn.when(fn.col("kind") == OTHER, _why_no_key()).when(unread, _why_no_value())
    kept = (fn.when(fn.col("error").isNotNull(), fn.col(name)).alias(name) for name in ("key", "value"))
    return rows.withColumn("error", error).select(*columns, "error", *kept)


def _why_no_key() -> Column:
    key, kind = fn.col("key"), fn.col("key_kind")
    return (
        fn.when(key.isNull() | (fn.octet_length(key) < 2), "no key")
        .when(kind.isin(0, 1, 2, *(it.number for it in KINDS.values())), "a damaged key")
        .otherwise(fn.format_string("a key of kind %d", kind))
    )


def _why_no_value() -> Column:
    version = fn.col("version")
    last = fn.when(fn.col("kind").isin(OFFSET, GROUP), LAST_VERSION).otherwise(0)
    is_unknown = (fn.octet_length("value") >= 2) & ~version.between(0, last)
    return fn.when(is_unknown, fn.format_string("a value of version %d", version)).otherwise(
        "a damaged value"
    )


# ---- tagged fields

_NO_TAGS = bytearray([0])
_TOPIC_ID = bytearray([1, 0, 16])  # one tagged field: number 0, 16 bytes


def _is_tagged(data: Column) -> Column:
    """True if these bytes are tagged fields and nothing else. Usually there are none, or only a topic id."""
    usual = (fn.octet_length(data) == 1) & (data == fn.lit(_NO_TAGS))
    known = (fn.octet_length(data) == 19) & (raw(data, 0, fn.lit(3)) == fn.lit(_TOPIC_ID))
    return fn.when(usual | known, True).otherwise(
        let(data, lambda it: fn.octet_length(it) == after_tags(it, fn.lit(0)))
    )


def _topic_id(data: Column) -> Column:
    is_first = raw(data, 1, fn.lit(2)) == fn.lit(_TOPIC_ID[1:])
    coded = uuid_text(data, 3)
    return fn.when(is_first & (coded != fn.lit("A" * 22)), coded)


# ---- the value of a group

# The encodings of a field. Before a text stands its size as an int16, before bytes their size as an int32. In
# flexible versions both begin with a uvarint of the size plus one.
_TEXT, _NULLABLE_TEXT, _BYTES, _INT32, _INT64, _TAGS, _ABSENT = range(7)

_GROUP = (  # name, encoding, first version that has the field
    ("protocol_type", _TEXT, 0),
    ("generation", _INT32, 0),
    ("protocol", _NULLABLE_TEXT, 0),
    ("leader", _NULLABLE_TEXT, 0),
    ("state_time_ms", _INT64, 2),
)
_MEMBER = (
    ("member_id", _TEXT, 0),
    ("group_instance_id", _NULLABLE_TEXT, 3),
    ("client_id", _TEXT, 0),
    ("client_host", _TEXT, 0),
    ("rebalance_timeout_ms", _INT32, 1),
    ("session_timeout_ms", _INT32, 0),
    ("subscription", _BYTES, 0),
    ("assignment", _BYTES, 0),
    ("tags", _TAGS, FLEXIBLE),
)
_CLASSIC_MEMBER = (
    "struct<member_id:string,group_instance_id:string,client_id:string,client_host:string,"
    "rebalance_timeout_ms:int,session_timeout_ms:int,subscription:binary,assignment:binary>"
)
_LEAST_MEMBER_BYTES = 14  # of a member with empty texts, in any version

_READ: dict[int, Callable[[Column], Column]] = {
    _TEXT: lambda data: data.cast("string"),
    _NULLABLE_TEXT: lambda data: data.cast("string"),
    _BYTES: lambda data: data,
    _INT32: lambda data: int32(data, 0),
    _INT64: lambda data: int64(data, 0),
}


def group_value(value: Column, version: Column) -> Column:
    """A group's state after a rebalance; null if the bytes are not a valid value.

    struct<protocol_type, generation, protocol, leader, state_time_ms, members: an array>; fields that
    the version lacks are null.
    """

    def state(head: Column) -> Column:
        return let(_members(value, head["at"], version), lambda members: whole(head, members))

    def whole(head: Column, members: Column) -> Column:
        fields = *_values(head["fields"], _GROUP), members["read"].alias("members")
        end = fn.when(version >= FLEXIBLE, after_tags(value, members["at"])).otherwise(members["at"])
        return fn.when(end == fn.octet_length(value), fn.struct(*fields))

    head = _fields(value, fn.lit(2), version, _GROUP)
    return fn.when(version.between(0, LAST_VERSION), let(head, state))


def _members(data: Column, at: Column, version: Column) -> Column:
    """struct<at, read: array>: the position after the members, and the members.

    at: the position of the number of members.
    """
    compact, compact_bytes = uvarint(data, at)
    flexible = version >= FLEXIBLE
    count = fn.when(flexible, compact - 1).otherwise(int32(data, at))
    start = at + fn.when(flexible, compact_bytes).otherwise(4)
    fitting = fn.when(count * _LEAST_MEMBER_BYTES <= fn.octet_length(data) - start, count)
    none = fn.struct(
        start.cast("int").alias("at"), fn.array().cast(f"array<{_CLASSIC_MEMBER}>").alias("read")
    )

    def add(so_far: Column, _: Column) -> Column:
        return let(_fields(data, so_far["at"], version, _MEMBER), lambda it: with_member(so_far, it))

    def with_member(so_far: Column, member: Column) -> Column:
        one = fn.struct(*_values(member["fields"], _MEMBER)).cast(_CLASSIC_MEMBER)
        return fn.struct(member["at"], fn.concat(so_far["read"], fn.array(one)).alias("read"))

    return fn.aggregate(up_to(fitting), none, add)


def _values(fields: Column, layout: Layout) -> list[Column]:
    """Columns with the values of the fields, from their bytes."""
    return [
        _READ[kind](fn.element_at(fields, number)).alias(name)
        for number, (name, kind, _) in enumerate(layout, 1)
        if kind in _READ
    ]


def _fields(data: Column, at: Column, version: Column, layout: Layout) -> Column:
    """struct<at, fields: array<binary>>: the position after the fields, null if damaged, and their bytes."""
    kinds = [fn.when(version >= since, kind).otherwise(_ABSENT) for _, kind, since in layout]
    none = fn.struct(at.cast("int").alias("at"), fn.array().cast("array<binary>").alias("fields"))

    def add(so_far: Column, kind: Column) -> Column:
        return let(_field(data, so_far["at"], version, kind), lambda it: with_field(so_far, it))

    def with_field(so_far: Column, field: Column) -> Column:
        found = fn.when(field["size"] >= 0, raw(data, field["start"], field["size"]))
        following = field["start"] + fn.greatest(field["size"], fn.lit(0))
        return fn.struct(
            following.cast("int").alias("at"), fn.concat(so_far["fields"], fn.array(found)).alias("fields")
        )

    return fn.aggregate(fn.array(*kinds), none, add)


def _field(data: Column, at: Column, version: Column, kind: Column) -> Column:
    """struct<start, size>: where a field's bytes are. A size of -1 means null; a null start means damage."""
    flexible, sized = version >= FLEXIBLE, kind <= _BYTES
    compact, compact_bytes = uvarint(data, at)
    plain = fn.when(kind == _BYTES, int32(data, at)).otherwise(int16(data, at))
    size = (
        fn.when(kind == _INT32, 4)
        .when(kind == _INT64, 8)
        .when(sized, fn.when(flexible, compact - 1).otherwise(plain))
        .otherwise(-1)
    )
    behind_size = at + fn.when(flexible, compact_bytes).when(kind == _BYTES, 4).otherwise(2)
    start = (
        fn.when(kind == _TAGS, after_tags(data, at))
        .when(~sized, at)
        .when((size >= 0) | (size == -1) & (kind == _NULLABLE_TEXT), behind_size)
    )
    return fn.struct(start.alias("start"), size.alias("size"))
