"""kshim's records of rebalances explain why; the coordinator's log has the rest."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from integration.support.clients import Admin, new_producer
from integration.support.server import Server
from kshim.spark import flapping
from kshim.spark.generations import CLIENTS
from kshim.spark.reasons import REASON, REBALANCES_TOPIC, decode_reasons, read_reasons, with_reasons

T = 1_700_000_000_000
MEMBER = {"member_id": "till-1-uuid", "client_id": "till-1", "host": "/10.0.0.1", "instance_id": None}
WHOLE: dict[str, Any] = {
    "version": 1,
    "group": "billing",
    "generation": 3,
    "cause": "a member joined",
    "member": MEMBER,
    "reason": "rebalance enforced",
    "began_ms": T,
    "joined_ms": T + 100,
    "assigned_ms": T + 300,
    "completed_ms": T + 412,
    "protocol_type": "consumer",
    "protocol": "range",
    "leader": "till-1-uuid",
    "votes": {"range": 2},
    "members": [{**MEMBER, "notified_ms": None, "before": ["orders-0"]}],
    "moved": [
        {"topic": "orders", "partition": 0, "from": "a", "to": "b", "unowned_ms": 90},
        {"topic": "orders", "partition": 1, "from": None, "to": "b", "unowned_ms": None},
    ],
    "story": ["till-1 joined.", "It took 412 ms."],
}
REASONS = ("a member joined", "till-1@10.0.0.1", "rebalance enforced", 412, 2, 90, WHOLE["story"])


def log(spark: SparkSession, *values: object) -> DataFrame:
    """The records as Spark's Kafka source gives them."""
    written = [value if isinstance(value, str) else json.dumps(value) for value in values]
    rows = [(b"billing", text.encode(), 0, number) for number, text in enumerate(written)]
    return spark.createDataFrame(rows, "key binary, value binary, partition int, offset long")


def found(spark: SparkSession, *values: object) -> list[tuple[Any, ...]]:
    """The columns of REASON of each record that was read."""
    return [tuple(row[name] for name in REASON) for row in decode_reasons(log(spark, *values)).collect()]


def without(*names: str, **fields: object) -> dict[str, Any]:
    return {name: value for name, value in {**WHOLE, **fields}.items() if name not in names}


def test_a_record(spark: SparkSession) -> None:
    assert found(spark, WHOLE) == [REASONS]


def test_later_versions_have_more_fields(spark: SparkSession) -> None:
    assert found(spark, {**WHOLE, "version": 2, "weather": {"rain": [1]}}) == [REASONS]


@pytest.mark.parametrize(
    ("value", "changed"),
    [
        (without("member"), {1: None}),
        (without(member=None, reason=""), {1: None, 2: None}),
        (without("moved", "story"), {4: None, 5: None, 6: None}),
        (without(moved=[]), {4: 0, 5: None}),
        (without(completed_ms=None), {3: None}),
    ],
)
def test_what_is_missing_is_null(spark: SparkSession, value: object, changed: dict[int, Any]) -> None:
    assert found(spark, value) == [tuple(changed.get(index, part) for index, part in enumerate(REASONS))]


def test_what_is_no_such_record_is_left_out(spark: SparkSession) -> None:
    assert found(spark, "{", "", "[1]", '"text"', {"group": "billing"}, without("generation"), WHOLE) == [
        REASONS
    ]


def generations(spark: SparkSession, *rows: tuple[str, int, int]) -> DataFrame:
    """Rows as of `rebalances`, for (group, generation, ms after T)."""
    came = [("till-1-uuid", None, "till-1", "/10.0.0.1")]
    made = [
        (group, number, datetime.fromtimestamp((T + ms) / 1000, UTC), came, []) for group, number, ms in rows
    ]
    schema = f"`group` string, generation int, began timestamp, joined {CLIENTS}, `left` {CLIENTS}"
    return spark.createDataFrame(made, schema)


def test_a_reason_belongs_to_its_generation(spark: SparkSession) -> None:
    rows = generations(spark, ("billing", 3, 300), ("billing", 4, 9000), ("other", 3, 300))
    joined = with_reasons(rows, decode_reasons(log(spark, WHOLE))).orderBy("group", "generation").collect()
    assert [row.cause for row in joined] == ["a member joined", None, None]
    assert tuple(joined[0][name] for name in REASON) == REASONS


def test_a_group_that_begins_again_has_other_reasons(spark: SparkSession) -> None:
    """A deleted group counts from 1 again; then the times identify the rebalance."""
    hour = 3_600_000
    later = {
        **WHOLE,
        "cause": "a member left",
        "began_ms": T + hour,
        "assigned_ms": None,
        "completed_ms": None,
    }
    rows = generations(spark, ("billing", 3, 300), ("billing", 3, hour))
    joined = with_reasons(rows, decode_reasons(log(spark, WHOLE, later))).orderBy("began").collect()
    assert [row.cause for row in joined] == ["a member joined", "a member left"]


def test_a_record_that_was_written_twice_counts_once(spark: SparkSession) -> None:
    first = without(completed_ms=None)
    joined = with_reasons(generations(spark, ("billing", 3, 300)), decode_reasons(log(spark, first, WHOLE)))
    assert [row.took_ms for row in joined.collect()] == [412]


def test_without_the_topic(spark: SparkSession) -> None:
    (row,) = with_reasons(generations(spark, ("billing", 3, 300)), None).collect()
    assert [row[name] for name in REASON] == [None] * len(REASON)


def test_a_flapping_group_has_its_most_frequent_cause(spark: SparkSession) -> None:
    rows = generations(spark, *(("billing", number, number * 1000) for number in range(5)))
    causes = ("a member joined", "a member left", "a member left", "a member joined", "a member left")
    records = [
        {**WHOLE, "generation": number, "cause": cause, "began_ms": T + number * 1000, "assigned_ms": None,
         "completed_ms": None}
        for number, cause in enumerate(causes)
    ]  # fmt: skip
    why = with_reasons(rows, decode_reasons(log(spark, *records)))
    (row,) = flapping(why, "10 minutes", 5).collect()
    assert (row.rebalances, row.client_id, row.cause) == (5, "till-1", "a member left")


def test_reading_the_topic(spark: SparkSession, own_server: Server) -> None:
    admin = Admin(own_server.bootstrap)
    if REBALANCES_TOPIC not in admin.list_topics():
        assert read_reasons(spark, own_server.bootstrap) is None
        admin.create_topic(REBALANCES_TOPIC, 2)
    admin.close()
    producer = new_producer(own_server.bootstrap)
    producer.send(REBALANCES_TOPIC, json.dumps({**WHOLE, "group": "invented"}).encode()).get(timeout=20)
    producer.close()
    reasons = read_reasons(spark, own_server.bootstrap)
    assert reasons is not None
    assert [row.cause for row in reasons.where("`group` = 'invented'").collect()] == ["a member joined"]
