"""The table of what is measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Literal

from benchmarks.raw import SOFTWARE
from benchmarks.servers import APACHE_KAFKA, KSHIM, MEMORY, Settings

Servers = Literal["shared", "new", "own", "alone"]
"""`shared`: every side's server runs as long as the case; `new`: one for each round; `own`: the case starts
what it needs itself; `alone`: so does a module of `alone/`, for all sides, and prints what it finds."""

BOTH = ("commit", "os")
"""kshim syncs before it acknowledges, or leaves that to the system, as Apache Kafka does."""
ALL = (*BOTH, MEMORY)
ROUND_TRIPS = {
    "1 x 1": {"connections": 1, "depth": 1},
    "8 x 16": {"connections": 8, "depth": 16},
}
BATCHES = {
    "1 of 100 B": {"records": 1, "value_bytes": 100, "idempotent": False},
    "1 of 100 B, idempotent": {"records": 1, "value_bytes": 100, "idempotent": True},
    "16 of 1 KB": {"records": 16, "value_bytes": 1000, "idempotent": False},
    "16 of 1 KB, idempotent": {"records": 16, "value_bytes": 1000, "idempotent": True},
    "10 of 100 KB": {"records": 10, "value_bytes": 100_000, "idempotent": False},
    "160 of 90 B, idempotent": {"records": 160, "value_bytes": 90, "idempotent": True},
}
SIZES = {"100 B": (100, 1_000_000), "1 KB": (1_000, 250_000), "100 KB": (100_000, 2_500)}
"""The bytes of a record, and how many there are to consume."""
RECORDS = {
    f"{size}, {partitions} partition{'s' * (partitions > 1)}": {
        "value_bytes": value_bytes,
        "records": records,
        "partitions": partitions,
        "disk": size == "1 KB",
    }
    for size, (value_bytes, records) in SIZES.items()
    for partitions in (1, 16)
}
ANSWERS = {"16 KB": 16_000, "1 MB": 1_000_000}
REBALANCES = {
    f"{client}, {assignor}": {"client": client, "assignor": assignor, "cycles": 5}
    for client, assignor in (
        ("confluent-kafka", "range"),
        ("confluent-kafka", "cooperative-sticky"),
        ("aiokafka", "range"),
        ("kafka-python", "range"),
        ("kafka-clients-4.2", "range"),
        ("kafka-clients-4.2", "cooperative-sticky"),
    )
}
CONSUMER_SESSION_MS = 6_000
CONSUMER_REBALANCES = {
    client: {"client": f"{client}-consumer", "session_ms": CONSUMER_SESSION_MS, "groups": 10, "rounds": 2}
    for client in ("kafka-clients-4.4", "confluent-kafka", "franz-go")
}
SHORT_SESSIONS: Settings = {
    kind: {
        "group.consumer.min.session.timeout.ms": str(CONSUMER_SESSION_MS),
        "group.consumer.session.timeout.ms": str(CONSUMER_SESSION_MS),
    }
    for kind in (KSHIM, APACHE_KAFKA)
}
ASSIGNS_AT_ONCE: Settings = {
    APACHE_KAFKA: {
        "group.consumer.assignment.interval.ms": "0",
        "group.consumer.assignor.offload.enable": "false",
    }
}
PATIENT = "apache-kafka-java"
"""Clients whose heartbeats kshim parks until a rebalance begins."""
NO_COMPACTION: Settings = {
    KSHIM: {"log.cleaner.min.cleanable.ratio": "1"},
    APACHE_KAFKA: {"log.cleaner.enable": "false"},
}


@dataclass(frozen=True)
class Case:
    """One thing that is measured, under one or more loads."""

    summary: str
    function: str
    """`module:function`."""
    loads: dict[str, dict[str, Any]] = field(default_factory=lambda: {"": {}})
    servers: Servers = "shared"
    flush: Sequence[str] = ("commit",)
    """With which flush.policy kshim runs; BOTH where records are written."""
    warm_up: bool = True
    """Whether the load first runs without being counted. Who waits for seconds need not."""
    needs: Sequence[str] = ()
    """Modules that kshim itself does not need."""
    settings: Settings = field(default_factory=dict)


CASES = {
    "start": Case(
        "from the start of the process until clients can connect, and memory when idle",
        "loads.starting:start",
        servers="own",
    ),
    "first-record": Case(
        "from starting a server in a test to the first record that a consumer gets",
        "loads.first_record:first_record",
        {name: {"client": name} for name in ("confluent-kafka", "kafka-python")},
        servers="own",
        flush=("os",),
        needs=("confluent_kafka", "kafka"),
    ),
    "api-versions": Case("ApiVersions requests a second", "loads.requests:api_versions", ROUND_TRIPS),
    "heartbeat": Case("Heartbeats a second", "loads.requests:heartbeat", ROUND_TRIPS),
    "consumer-heartbeat": Case(
        "ConsumerGroupHeartbeats a second", "loads.consumer_members:heartbeat", ROUND_TRIPS
    ),
    "consumer-change": Case(
        "how often a second a member of one large consumer group can leave or join",
        "loads.consumer_members:change",
        {f"{members:,} members": {"members": members} for members in (100, 1_000)},
        flush=BOTH,
        settings=ASSIGNS_AT_ONCE,
    ),
    "offset-commit": Case(
        "OffsetCommits of one partition a second", "loads.requests:offset_commit", ROUND_TRIPS, flush=BOTH
    ),
    "offset-fetch": Case(
        "OffsetFetches of one partition a second", "loads.requests:offset_fetch", ROUND_TRIPS
    ),
    "join-sync": Case(
        "rebalances a second of one group of raw members",
        "loads.joining:join_sync",
        {f"{members:,} member{'s' * (members > 1)}": {"members": members} for members in (1, 10, 100, 1_000)},
        flush=BOTH,
    ),
    "batches": Case(
        "raw Produce requests a second, 8 connections x 5 in flight",
        "loads.batches:batches",
        BATCHES,
        flush=BOTH,
    ),
    "fetch": Case(
        "bytes a second in answers to raw Fetches, 4 connections",
        "loads.fetching:fetch",
        {size: {"answer_bytes": answer_bytes} for size, answer_bytes in ANSWERS.items()},
        needs=("confluent_kafka",),
    ),
    "produce": Case(
        "records a second that librdkafka produces with acks=all",
        "loads.records:produce",
        RECORDS,
        flush=BOTH,
        needs=("confluent_kafka",),
    ),
    "consume": Case(
        "records a second that librdkafka consumes",
        "loads.records:consume",
        RECORDS,
        flush=BOTH,
        needs=("confluent_kafka",),
    ),
    "produce-sync": Case(
        "how long librdkafka takes for one record at a time",
        "loads.latency:produce_sync",
        flush=BOTH,
        needs=("confluent_kafka",),
    ),
    "tail": Case(
        "how long a record takes from a producer to a consumer that waits for it",
        "loads.latency:tail",
        flush=BOTH,
        needs=("confluent_kafka",),
    ),
    "disk": Case(
        "a plain append to a file, and fdatasync, on the disk of each server in its turn",
        "loads.disk:disk",
        {"300 B": {"append_bytes": 300}, "64 KB": {"append_bytes": 65_536}},
        servers="own",
    ),
    "groups": Case(
        "what groups of ten members cost that send a Heartbeat every 3 s",
        "loads.groups:groups",
        {
            f"{groups:,} group{'s' * (groups > 1)}{', parked' * (software != SOFTWARE)}": {
                "groups": groups,
                "software": software,
            }
            for software in (SOFTWARE, PATIENT)
            for groups in (1, 10, 100, 1_000)
        },
        warm_up=False,
    ),
    "connections": Case(
        "memory of an idle connection, and how long a Heartbeat beside them takes",
        "loads.connections:connections",
        {f"{count:,} idle": {"connections": count} for count in (1_000, 10_000)},
        servers="new",
    ),
    "halves": Case(
        "memory of a connection that has sent half of a Produce request of 8 MB",
        "loads.halves:halves",
        {"100 connections": {"connections": 100}},
        servers="new",
        warm_up=False,
    ),
    "rebalance": Case(
        "how long a rebalance takes when a real consumer joins, leaves or crashes",
        "loads.rebalancing:rebalance",
        REBALANCES,
        warm_up=False,
        needs=("aiokafka", "confluent_kafka", "kafka"),
    ),
    "consumer-rebalance": Case(
        "how long a rebalance takes with group.protocol=consumer: a member joins, leaves or is killed, "
        "a topic grows, an expression finds a topic",
        "loads.consumer_rebalancing:rebalance",
        CONSUMER_REBALANCES,
        warm_up=False,
        needs=("confluent_kafka",),
        settings=SHORT_SESSIONS,
    ),
    "load": Case(
        "how soon a server is back that has a million commits in its log",
        "loads.replaying:load",
        {"1,000,000 commits": {"commits": 1_000_000}},
        servers="own",
        settings=NO_COMPACTION,
    ),
    "codec": Case("kshim's codecs compared with code written by hand", "alone.codec:run", servers="alone"),
    "storage": Case("kshim's store compared with plain files", "alone.storage:run", servers="alone"),
    "big-topic": Case(
        "how long clients of kshim wait while gigabytes are written, compacted, deleted",
        "alone.big_topic:run",
        servers="alone",
    ),
    "big-store": Case(
        "how long kshim takes to start with gigabytes in 1,000 partitions, and clients wait while half goes",
        "alone.big_store:run",
        servers="alone",
    ),
    "spark-tail": Case(
        "Spark on the broker: a record through a running query, bulk reads and writes",
        "alone.spark_tail:run",
        servers="alone",
        needs=("kafka", "pyspark"),
    ),
    "spark-pipeline": Case(
        "`kshim pipeline` over millions of commits",
        "alone.pipeline:run",
        servers="alone",
        needs=("kafka", "pyspark"),
        settings=NO_COMPACTION,
    ),
}

COMPARED = tuple(name for name, case in CASES.items() if case.servers != "alone")
"""What runs when no case is named."""
OWN_SERVERS = frozenset(name for name, case in CASES.items() if case.servers in ("own", "alone"))
"""They do not measure a server that runs already."""
PASSED = ("batches", "fetch", "produce", "consume", "produce-sync", "tail", "connections", "halves")
"""What runs by default against the upstream: what passes through."""


def problems(names: Iterable[str], load: str = "") -> list[str]:
    """The reasons why these cases cannot run, a line each."""
    found = []
    for name in names:
        if name not in CASES:
            found.append(f"there is no case {name!r}; there are {', '.join(CASES)}")
            continue
        loads = CASES[name].loads
        if not any(load in each for each in loads):
            found.append(
                f"{name} has no load {load!r}; there are {' | '.join(filter(None, loads)) or 'none'}"
            )
        missing = [module for module in CASES[name].needs if find_spec(module) is None]
        if missing:
            extra = "spark,benchmarks" if "pyspark" in missing else "benchmarks"
            found.append(f"{name} needs {', '.join(missing)}: pip install '.[{extra}]'")
    return found
