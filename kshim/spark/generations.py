"""Generations of groups of both protocols: one fold over a group's records, in the order of the log.

A group's records become one array, and a lambda carries a state from record to record. That is one step of
Spark's plan; window functions would need ten. The array holds a group's part of a compacted log.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from kshim.spark.binary import let
from kshim.spark.consumer_rows import EPOCH, MEMBER
from kshim.spark.rows import GROUP, sound

CLASSIC, CONSUMER = "classic", "consumer"

_CLIENT = "member_id:string,group_instance_id:string,client_id:string,client_host:string"
CLIENTS = f"array<struct<{_CLIENT}>>"
_GENERATION = (
    "struct<type:string,generation:int,began:timestamp,ended:timestamp,protocol:string,leader:string,"
    f"members:int,joined:{CLIENTS},left:{CLIENTS}>"
)
_STATE = f"struct<now:string,present:{CLIENTS},were:{CLIENTS},latest:{_GENERATION},done:array<{_GENERATION}>>"
"""now: the group's type. present: its members now. were: its members in the generation `latest`.

A consumer group's members come and go in front of the epoch that they set off, so these differ.
"""

_OF_STATE = "now", "present", "were", "latest", "done"
_PLACE, _OF_RECORD = ("log_offset", "kind", "tombstone"), ("generation", "at", "protocol", "leader")
_RECORD = *_PLACE, *_OF_RECORD, "clients", "member_id", "again"
_AGAIN = "again"
"""The kind of a record that brings back the state at which an earlier part of the log ended."""


def generations(rows: DataFrame, known: DataFrame | None = None) -> DataFrame:
    """One row for each generation, from the rows of `decode`.

    Columns: group and those of _GENERATION; for the last of a group also now, present and were, with which to
    continue. A generation of a consumer group is its group epoch. A generation begins with its first record.
    Another record of the same generation is no rebalance: a static member has come back (KIP-345). Nor is it
    a rebalance when a group is converted to the other protocol, whose first record repeats the number.

    known: this function's result for the part of the log before `rows`. Its ended generations stay unchanged;
    a generation that has not ended may end.
    """
    records = _records(rows)
    if known is None:
        return _folded(records)
    lasting = known.where(fn.col("ended").isNull())
    return _folded(records.unionByName(_known(lasting))).unionByName(known.where(fn.col("ended").isNotNull()))


def _records(rows: DataFrame) -> DataFrame:
    member = fn.col(MEMBER)
    client = fn.struct(
        "member_id", *(member[name] for name in ("group_instance_id", "client_id", "client_host"))
    )
    names = ("member_id", "group_instance_id", "client_id", "client_host")
    clients = fn.transform("members", lambda it: fn.struct(*(it[name].alias(name) for name in names)))
    is_there = (fn.col("kind") == MEMBER) & ~fn.col("tombstone")
    state_time = fn.when(fn.col("kind") == GROUP, fn.col("state_time"))
    return sound(rows, GROUP, EPOCH, MEMBER).select(
        "group",
        "log_offset",
        "kind",
        "tombstone",
        fn.coalesce("generation", f"{EPOCH}.epoch").alias("generation"),
        fn.coalesce(state_time, "log_time").alias("at"),
        "protocol",
        "leader",
        fn.when(is_there, fn.array(client))
        .otherwise(fn.coalesce(clients, fn.array()))
        .cast(CLIENTS)
        .alias("clients"),
        "member_id",
        fn.lit(None).cast(_STATE).alias("again"),
    )


def _known(lasting: DataFrame) -> DataFrame:
    """The last rows of an earlier part, as records in front of all others."""
    latest = fn.struct(
        "type", "generation", "began", "ended", "protocol", "leader", "members", "joined", "left"
    )
    again = fn.struct("now", "present", "were", latest.alias("latest"), fn.array().alias("done")).cast(_STATE)
    given = {
        "log_offset": fn.lit(-1).cast("long"),
        "kind": fn.lit(_AGAIN),
        "tombstone": fn.lit(False),
        "again": again,
    }
    unknown = {"at": "timestamp", "clients": CLIENTS, "member_id": "string"}
    nulls = {name: fn.lit(None).cast(kind) for name, kind in unknown.items()}
    return lasting.withColumns(given | nulls).select("group", *_RECORD)


def _folded(records: DataFrame) -> DataFrame:
    in_order = fn.sort_array(fn.collect_list(fn.struct(*_RECORD)))
    starts = {"present": fn.array(), "were": fn.array(), "done": fn.array()}
    none = fn.struct(*(starts.get(name, fn.lit(None)).alias(name) for name in _OF_STATE)).cast(_STATE)
    whole = records.groupBy("group").agg(in_order.alias("records"))
    state = whole.select("group", fn.aggregate("records", none, _after).alias("state"))
    all_of_it = fn.concat("state.done", fn.array("state.latest"))
    each = state.where(fn.col("state.latest").isNotNull()).select(
        "group", "state", fn.posexplode(all_of_it).alias("place", "it")
    )
    is_last = fn.col("place") == fn.size("state.done")
    carried = (fn.when(is_last, fn.col(f"state.{name}")).alias(name) for name in ("now", "present", "were"))
    return each.select("group", "it.*", *carried)


def _after(state: Column, record: Column) -> Column:
    """The state after a record."""
    kind = record["kind"]
    now = fn.when(kind == GROUP, CLASSIC).when(kind == EPOCH, CONSUMER)
    return (
        fn.when(kind == _AGAIN, record["again"])
        .when(kind == MEMBER, _with(state, present=_present(state, record)))
        .when(~record["tombstone"], let(now, lambda it: _with_generation(state, record, it)))
        .when(state["now"] == now, _deleted(state, record["at"]))
        .otherwise(state)
    )


def _with(state: Column, **changed: Column) -> Column:
    return fn.struct(*(changed.get(name, state[name]).alias(name) for name in _OF_STATE)).cast(_STATE)


def _present(state: Column, record: Column) -> Column:
    """The members after a record of one: it comes, changes, or goes. A static member replaces itself."""
    others = fn.filter(state["present"], lambda it: it["member_id"] != record["member_id"])
    return let(others, lambda left: fn.concat(_without(left, record["clients"], CONSUMER), record["clients"]))


def _deleted(state: Column, at: Column) -> Column:
    latest = _with_ended(state["latest"], fn.coalesce(state["latest"]["ended"], at))
    return _with(state, present=fn.array(), latest=latest)


def _with_ended(generation: Column, ended: Column) -> Column:
    return fn.when(generation.isNotNull(), generation.withField("ended", ended))


def _with_generation(state: Column, record: Column, now: Column) -> Column:
    latest = state["latest"]
    has_ended = latest["ended"].isNotNull()
    is_same = latest["generation"] == record["generation"]
    goes_on = is_same & (state["now"] == now) & ~has_ended
    converts = is_same & (state["now"] != now) & has_ended & (fn.size(state["were"]) > 0)
    present = fn.when(now == CLASSIC, record["clients"]).otherwise(state["present"])

    def followed(present: Column) -> Column:
        same = latest.withField("members", fn.size(present)).withField("ended", fn.lit(None))
        described = same.withField("protocol", record["protocol"]).withField("leader", record["leader"])
        were = fn.when(converts, state["were"]).otherwise(present)
        going_on = _with(state, now=now, present=present, were=were, latest=described)
        were = fn.when(has_ended, fn.array()).otherwise(state["were"])
        begun = let(were.cast(CLIENTS), lambda it: _begun(state, record, now, present, it))
        return fn.when(fn.coalesce(goes_on | converts, fn.lit(False)), going_on).otherwise(begun)

    return let(present, followed)


def _begun(state: Column, record: Column, now: Column, present: Column, were: Column) -> Column:
    """The state with a new generation."""
    at = record["at"]
    ended = _with_ended(state["latest"], fn.coalesce(state["latest"]["ended"], at))
    latest = fn.struct(
        now.alias("type"),
        record["generation"].alias("generation"),
        at.alias("began"),
        fn.lit(None).alias("ended"),
        record["protocol"].alias("protocol"),
        record["leader"].alias("leader"),
        fn.size(present).alias("members"),
        _without(present, were, now).alias("joined"),
        _without(were, present, now).alias("left"),
    ).cast(_GENERATION)
    before = fn.when(state["latest"].isNull(), fn.array()).otherwise(fn.array(ended))
    done = fn.concat(state["done"], before.cast(f"array<{_GENERATION}>"))
    return _with(state, now=now, present=present, were=present, latest=latest, done=done)


def _without(these: Column, those: Column, now: Column | str) -> Column:
    """These clients without those. In a consumer group, a static member under another id is the same."""

    def identity(client: Column) -> Column:
        instance = fn.when(fn.lit(now) == CONSUMER, client["group_instance_id"])
        return fn.coalesce(instance, client["member_id"])

    return let(
        fn.transform(those, identity),
        lambda ids: fn.filter(these, lambda it: ~fn.array_contains(ids, identity(it))),
    )
