"""The pipeline over the records of consumer groups: their epochs, and the members that give nothing up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as fn

from integration.spark.command import kshim
from integration.spark.consumer_log import (
    GROUP,
    NO_CLASSIC,
    NO_EPOCH,
    UNREVOKED,
    Record,
    T,
    classic,
    current,
    epoch,
    gone,
    log_of,
    member,
)
from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server
from kshim.spark import decode, flapping, read_offsets_log, rebalances
from kshim.spark.generations import generations
from kshim.spark.holding import holding, unrevoked
from kshim.spark.rebalancing import shown
from kshim.spark.rows import HISTORY, MEMBERS

JOINS: list[Record] = [
    member("a"),
    epoch(1),
    member("s1", "till"),
    epoch(2),
    member("a"),  # it subscribes anew, and nothing else
]
COMES_BACK: list[Record] = [*gone("s1"), member("s2", "till")]
LEAVES: list[Record] = [*gone("a"), member("b"), epoch(3), *gone("s2"), epoch(4)]
DELETED: list[Record] = [*gone("b"), NO_EPOCH, member("d"), epoch(1)]
CONVERTED: list[Record] = [
    classic(4, "a"),
    classic(5, "a", "b"),
    NO_CLASSIC,
    member("a"),
    member("b"),
    epoch(5),
    member("c"),
    epoch(6),
    *gone("c"),
    *gone("a"),
    *gone("b"),
    NO_EPOCH,
    classic(6, "a", "b"),
    classic(7, "a", "b", "e"),
]

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAABw"
NAMES = {TOPIC_ID: "orders"}
OTHER = "invoice"
"""Another group, which is converted."""

Shape = tuple[str, int, int, list[str], list[str], bool]


def shape(row: Row) -> Shape:
    joined, left = ([client.member_id for client in clients] for clients in (row.joined, row.left))
    return row.type, row.generation, row.members, sorted(joined), sorted(left), row.ended is None


def found(rows: DataFrame, group: str) -> list[Shape]:
    of_group = rows.where(fn.col("group") == group)
    return [shape(row) for row in of_group.orderBy("began", "generation").collect()]


def kept(spark: SparkSession, rows: DataFrame, path: Path) -> DataFrame:
    """The rows, computed once. Spark plans what follows as it does for a stream, and sooner."""
    rows.write.parquet(path.as_uri())
    return spark.read.parquet(path.as_uri())


EPOCHS: list[Shape] = [
    ("consumer", 1, 1, ["a"], [], False),
    ("consumer", 2, 2, ["s1"], [], False),
    ("consumer", 3, 2, ["b"], ["a"], False),
    ("consumer", 4, 1, [], ["s2"], False),
    ("consumer", 1, 1, ["d"], [], True),
]
BOTH: list[Shape] = [
    ("classic", 4, 1, ["a"], [], False),
    ("classic", 5, 2, ["b"], [], False),
    ("consumer", 6, 2, ["c"], [], False),
    ("classic", 7, 3, ["e"], ["c"], True),
]


CUT = 7
"""The first part of the log ends here: before a static member's successor, in the middle of an epoch."""


def test_each_epoch(spark: SparkSession, tmp_path: Path) -> None:
    """The whole log, and the log in two parts, of which the first has become a table."""
    log = log_of(spark, [*JOINS, *COMES_BACK, *LEAVES, *DELETED]).union(log_of(spark, CONVERTED, OTHER))
    rows = kept(spark, decode(log, *HISTORY), tmp_path / "rows")
    whole = kept(spark, rebalances(rows), tmp_path / "whole")
    assert (found(whole, GROUP), found(whole, OTHER)) == (EPOCHS, BOTH)
    assert {(row.group, row.rebalances) for row in flapping(whole, "1 day", 4).collect()} == {
        (GROUP, 4),
        (OTHER, 4),
    }
    known = kept(spark, generations(rows.where(fn.col("log_offset") < CUT)), tmp_path / "known")
    later = shown(generations(rows.where(fn.col("log_offset") >= CUT), known))
    in_parts = kept(spark, later, tmp_path / "later")
    assert (found(in_parts, GROUP), found(in_parts, OTHER)) == (EPOCHS, BOTH)


def test_a_member_gives_nothing_up(spark: SparkSession, tmp_path: Path) -> None:
    records = [
        member("a"),
        current("a", 1, has=[0, 1, 2]),
        member("b"),
        current("a", 1, state=UNREVOKED, has=[0], gives_up=[1, 2]),  # the fourth second
        current("b", 2, state=2),
        current("a", 1, state=UNREVOKED, has=[0], gives_up=[1, 2]),
        member("c"),
        current("c", 1, state=UNREVOKED, gives_up=[3]),
        *gone("c"),
    ]
    rows = kept(spark, decode(log_of(spark, records), *MEMBERS), tmp_path / "rows")
    whole = kept(spark, holding(rows), tmp_path / "whole")
    known = kept(spark, holding(rows.where(fn.col("log_offset") < 5)), tmp_path / "known")
    for members in (whole, holding(rows.where(fn.col("log_offset") >= 5), known)):
        (row,) = unrevoked(members, 20, NAMES, fn.timestamp_seconds(fn.lit(T + 3 + 20))).collect()
        assert (row.member_id, row.client_id, row.epoch, row.waiting_seconds) == ("a", "client-a", 1, 20.0)
        assert row.revoking == ["orders-1", "orders-2"]
    before = fn.timestamp_seconds(fn.lit(T + 3 + 19))
    assert unrevoked(whole, 20, NAMES, before).count() == 0
    half = fn.timestamp_seconds(fn.lit(T + 3 + 30))
    (row,) = unrevoked(whole, 300, None, half).collect()  # half of the rebalance timeout is over
    assert row.revoking == [f"{TOPIC_ID}-1", f"{TOPIC_ID}-2"]


@contextmanager
def consumer(bootstrap: str, client_id: str) -> Iterator[Consumer]:
    """A member with group.protocol=consumer. It gives partitions up only while it is polled."""
    made = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "group.protocol": "consumer",
            "client.id": client_id,
            "auto.offset.reset": "earliest",
        }
    )
    made.subscribe(["orders"])
    try:
        yield made
    finally:
        made.close()


def has(consumer: Consumer, partitions: int) -> bool:
    """Poll a consumer, and return true if it has so many partitions."""
    consumer.poll(0.1)
    return len(consumer.assignment()) == partitions


def test_a_member_that_does_not_poll_on_the_command_line(spark: SparkSession, own_server: Server) -> None:
    bootstrap = own_server.bootstrap
    admin = Admin(bootstrap)
    admin.create_topic("orders", 2)
    admin.close()
    with consumer(bootstrap, "slow") as slow:
        wait_until(lambda: has(slow, 2), 60, "both partitions")
        with consumer(bootstrap, "waiting") as waiting:

            def is_waited_for() -> bool:
                waiting.poll(0.1)
                return bool(own_server.why(GROUP)["now"]["revoking"])

            wait_until(is_waited_for, 60, "the revocation")
            done = kshim("unrevoked", "--for", "0", "--bootstrap", bootstrap)
            assert (done.returncode, done.stderr) == (0, "")
            titles, row = done.stdout.splitlines()
            assert titles.split()[-2:] == ["waiting_seconds", "revoking"]
            assert row.split()[0] == GROUP
            assert " slow " in row
            assert row.split()[-1] in ("orders-0", "orders-1")
            wait_until(lambda: has(slow, 1) and has(waiting, 1), 60, "one each")
    rows = decode(read_offsets_log(spark, bootstrap), *HISTORY)
    last = found(rebalances(rows), GROUP)
    assert [(kind, members) for kind, _, members, *_ in last] == [
        ("consumer", 1), ("consumer", 2), ("consumer", 1), ("consumer", 0)
    ]  # fmt: skip
