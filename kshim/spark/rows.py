"""The coordinator's log as typed rows: `decode` returns one for each record of `__consumer_offsets`.

The layouts repeat those of `schemas.internal_topics.group_metadata_log` as column expressions; tests check
that both are equal. The row of a record of another kind, of an unknown version or with damaged bytes has the
record's bytes, and `error` says why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from kshim.spark.binary import int16, int32, int64, let, raw, text, uvarint

OFFSET, GROUP, OTHER = "offset", "group", "other"

_OF_A_VALUE = {OFFSET: "offset", GROUP: "generation"}
"""For each kind, a column that is never null if the value was decoded."""

LAST_VERSION = 4  # of both values
FLEXIBLE = 4

Layout: TypeAlias = tuple[tuple[str, int, int], ...]


def decode(log: DataFrame, only: str | None = None) -> DataFrame:
    """Typed rows from the columns of Spark's Kafka source: key, value, partition, offset, timestamp.

    only: OFFSET or GROUP, for only the rows of this kind and their columns, without error, key and value.
    Spark plans such a query seconds faster.

    kind: "offset" (a commit), "group" (a group's state after a rebalance), or "other".
    tombstone: true if the value is null: the commit or group that the key names was deleted.
    error: why the record was not decoded. If it was decoded, `error`, `key` and `value` are null.
    log_partition, log_offset, log_time: the record's position in the log, and its timestamp. A group's
    history is ordered by (log_partition, log_offset), not by any timestamp.
    """
    rows = log.select(
        "key",
        "value",
        fn.col("partition").alias("log_partition"),
        fn.col("offset").alias("log_offset"),
        fn.col("timestamp").alias("log_time"),
        int16(fn.col("key"), 0).alias("key_kind"),
        int16(fn.col("value"), 0).alias("version"),
    ).transform(_keys)
    if only is not None:
        rows = rows.where(fn.col("kind") == only)
    if only != GROUP:
        rows = rows.transform(_offsets)
    if only != OFFSET:
        rows = rows.transform(_groups)
    return _flat(rows, only)


def sound(rows: DataFrame, kind: str) -> DataFrame:
    """The decoded rows of one kind that have no error.

    Spark pushes a filter down to the source together with the expressions of its columns, and computes these
    expressions a second time later. For the filter by `kind` that is cheap, and saves decoding other records.
    The other filter must not be pushed down, so it refers to `held`, a nondeterministic column.
    """
    held = rows.where(fn.col("kind") == kind).withColumn("held", fn.spark_partition_id())
    is_sound = fn.col("tombstone") | fn.col(_OF_A_VALUE[kind]).isNotNull()
    return held.where(is_sound & (fn.col("held") >= 0)).drop("held")


def _keys(rows: DataFrame) -> DataFrame:
    """Add kind, group, topic and partition. Each step is a projection that later steps share."""
    key, group_size = fn.col("key"), fn.col("group_size")
    is_offset = fn.col("key_kind").isin(0, 1)
    topic_size, end = fn.col("topic_size"), fn.col("key_end")
    sized = rows.withColumn("group_size", int16(key, 2))
    ended = sized.withColumn("topic_size", fn.when(is_offset, int16(key, group_size + 4))).withColumn(
        "key_end", fn.when(is_offset, group_size + topic_size + 10).otherwise(group_size + 4)
    )
    whole = (group_size >= 0) & (fn.octet_length(key) == end)
    kind = fn.when(is_offset & (topic_size >= 0) & whole, OFFSET).when(
        (fn.col("key_kind") == 2) & whole, GROUP
    )
    is_known = fn.col("kind") != OTHER
    return ended.withColumn("kind", fn.coalesce(kind, fn.lit(OTHER))).withColumns(
        {
            "group": fn.when(is_known, text(key, 4, group_size)),
            "topic": fn.when(fn.col("kind") == OFFSET, text(key, group_size + 6, topic_size)),
            "partition": fn.when(fn.col("kind") == OFFSET, int32(key, end - 4)),
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


_OF_OFFSETS = ("topic", "partition", "offset", "leader_epoch", "metadata", "commit_time")
_RARELY = ("topic_id", "expire_time")
_OF_GROUPS = ("protocol_type", "generation", "protocol", "leader", "members")
_PLACE = ("log_partition", "log_offset", "log_time")


def _flat(rows: DataFrame, only: str | None) -> DataFrame:
    tombstone = fn.col("value").isNull()
    of_group = (
        *(f"state.{name}" for name in _OF_GROUPS),
        fn.timestamp_millis("state.state_time_ms").alias("state_time"),
    )
    common = tombstone.alias("tombstone"), *_PLACE
    if only == OFFSET:
        return rows.select("kind", "group", *_OF_OFFSETS, *common)
    if only == GROUP:
        return rows.select("kind", "group", *of_group, *common)
    unread = ~tombstone & ~fn.col("is_commit") & fn.col("state").isNull()
    error = fn.when(fn.col("kind") == OTHER, _why_no_key()).when(unread, _why_no_value())
    kept = (fn.when(fn.col("error").isNotNull(), fn.col(name)).alias(name) for name in ("key", "value"))
    checked = rows.withColumn("error", error)
    return checked.select("kind", "group", *_OF_OFFSETS, *_RARELY, *of_group, *common, "error", *kept)


def _why_no_key() -> Column:
    key, kind = fn.col("key"), fn.col("key_kind")
    return (
        fn.when(key.isNull() | (fn.octet_length(key) < 2), "no key")
        .when(kind.isin(0, 1, 2), "a damaged key")
        .otherwise(fn.format_string("a key of kind %d", kind))
    )


def _why_no_value() -> Column:
    version = fn.col("version")
    is_unknown = (fn.octet_length("value") >= 2) & ~version.between(0, LAST_VERSION)
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
    coded = fn.translate(fn.base64(raw(data, 3, fn.lit(16))), "+/", "-_")
    return fn.when(is_first & (coded != fn.lit("A" * 22 + "==")), coded.substr(1, 22))


def after_tags(data: Column, at: Column) -> Column:
    """The position after the tagged fields at `at`; null if the bytes there are not tagged fields."""

    def skip(position: Column) -> Column:
        _, tag_bytes = uvarint(data, position)
        return let(position + tag_bytes, behind)

    def behind(position: Column) -> Column:
        size, size_bytes = uvarint(data, position)
        return (position + size_bytes + size).cast("int")

    count, count_bytes = uvarint(data, at)
    first = (at + count_bytes).cast("int")
    tags = fn.when(count * 2 <= fn.octet_length(data) - first, count)  # a field takes at least two bytes
    return fn.when(count == 0, first).otherwise(
        fn.aggregate(_up_to(tags), first, lambda position, _: skip(position))
    )


def _up_to(count: Column) -> Column:
    """[1, …, count]; [] for 0, null for null."""
    return fn.when(count == 0, fn.array().cast("array<int>")).when(count > 0, fn.sequence(fn.lit(1), count))


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
MEMBER = (
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

    struct<protocol_type, generation, protocol, leader, state_time_ms, members: array<MEMBER>>; fields that
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
    """struct<at, read: array<MEMBER>>: the position after the members, and the members.

    at: the position of the number of members.
    """
    compact, compact_bytes = uvarint(data, at)
    flexible = version >= FLEXIBLE
    count = fn.when(flexible, compact - 1).otherwise(int32(data, at))
    start = at + fn.when(flexible, compact_bytes).otherwise(4)
    fitting = fn.when(count * _LEAST_MEMBER_BYTES <= fn.octet_length(data) - start, count)
    none = fn.struct(start.cast("int").alias("at"), fn.array().cast(f"array<{MEMBER}>").alias("read"))

    def add(so_far: Column, _: Column) -> Column:
        return let(_fields(data, so_far["at"], version, _MEMBER), lambda it: with_member(so_far, it))

    def with_member(so_far: Column, member: Column) -> Column:
        one = fn.struct(*_values(member["fields"], _MEMBER)).cast(MEMBER)
        return fn.struct(member["at"], fn.concat(so_far["read"], fn.array(one)).alias("read"))

    return fn.aggregate(_up_to(fitting), none, add)


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
