"""Compares what is in the topics at the end with what was acknowledged."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka import TopicPartition

from integration.crash.workloads import EAGER, PARTITIONS, Copying, Producing, Transacting
from integration.support.clients import Admin, new_consumer


class Stored(NamedTuple):
    partition: int
    offset: int
    value: str


@dataclass
class Verdict:
    """A client's acknowledged work, and what was found of it."""

    topic: str
    acknowledged: int
    """Records, or transactions."""
    lost: int
    doubled: int
    """A producer that is not idempotent may double records."""
    faults: list[str] = field(default_factory=list)


def read_topic(bootstrap: str, topic: str, isolation_level: str = "read_uncommitted") -> list[Stored]:
    """All records, in the order of partition and offset."""
    consumer = new_consumer(bootstrap, isolation_level=isolation_level, **EAGER)
    partitions = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    consumer.assign(partitions)
    ends = consumer.end_offsets(partitions)
    consumer.seek_to_beginning(*partitions)
    found: list[Stored] = []
    while any(consumer.position(tp) < ends[tp] for tp in partitions):
        for records in consumer.poll(timeout_ms=1000, max_records=5000).values():
            found += [Stored(record.partition, record.offset, record.value.decode()) for record in records]
    consumer.close()
    return sorted(found)


def judge_producing(bootstrap: str, producing: Producing, *, idempotent: bool) -> Verdict:
    found = read_topic(bootstrap, producing.topic)
    values = {(stored.partition, stored.offset): stored.value for stored in found}
    lost = sum(
        values.get(place) != f"{producing.topic}-{number}" for place, number in producing.acknowledged.items()
    )
    doubled = sum(count - 1 for count in Counter(values.values()).values())
    verdict = Verdict(producing.topic, len(producing.acknowledged), lost, doubled)
    if lost:
        verdict.faults.append(f"{lost} acknowledged records are lost")
    if idempotent and doubled:
        verdict.faults.append(f"{doubled} records are doubled")
    for partition in range(PARTITIONS):
        offsets = [stored.offset for stored in found if stored.partition == partition]
        if offsets != list(range(len(offsets))):
            verdict.faults.append(f"partition {partition} has a hole")
        if idempotent:
            numbers = [
                int(stored.value.rpartition("-")[2]) for stored in found if stored.partition == partition
            ]
            if numbers != sorted(numbers):
                verdict.faults.append(f"partition {partition} is not in the order in which it was sent")
    return verdict


def judge_transactions(bootstrap: str, transacting: Transacting) -> Verdict:
    """A committed transaction must be read whole, once; an aborted one not at all; an unknown one whole or
    not at all."""
    parts: dict[int, Counter[int]] = defaultdict(Counter)
    for stored in read_topic(bootstrap, transacting.topic, "read_committed"):
        number, part = map(int, stored.value.split("-"))
        parts[number][part] += 1
    committed = [number for number, outcome in transacting.outcome.items() if outcome == "committed"]
    verdict = Verdict(
        transacting.topic,
        len(committed),
        lost=sum(number not in parts for number in committed),
        doubled=sum(count - 1 for found in parts.values() for count in found.values()),
    )
    if verdict.lost:
        verdict.faults.append(f"{verdict.lost} committed transactions are lost")
    if verdict.doubled:
        verdict.faults.append(f"{verdict.doubled} records are doubled")
    for number, found in parts.items():
        if transacting.outcome[number] == "aborted":
            verdict.faults.append(f"transaction {number} was aborted, and is read")
        elif sorted(found) != list(range(transacting.sizes[number])):
            verdict.faults.append(f"transaction {number} is read in part: {sorted(found)}")
    return verdict


def judge_copying(bootstrap: str, copying: Copying) -> Verdict:
    """Up to the job's committed offsets the copy must equal its source, and it must end there."""
    admin = Admin(bootstrap)
    committed = {partition: o for (_, partition), o in admin.group_offsets(copying.group_id).items()}
    admin.close()
    source, copied = (
        {p: [stored for stored in found if stored.partition == p] for p in range(PARTITIONS)}
        for found in (
            read_topic(bootstrap, copying.source, "read_committed"),
            read_topic(bootstrap, copying.topic, "read_committed"),
        )
    )
    verdict = Verdict(copying.topic, sum(map(len, copied.values())), lost=0, doubled=0)
    for partition in range(PARTITIONS):
        wanted = [s.value for s in source[partition] if s.offset < committed.get(partition, 0)]
        found = [stored.value for stored in copied[partition]]
        verdict.lost += len(set(wanted) - set(found))
        verdict.doubled += len(found) - len(set(found))
        if found != wanted:
            verdict.faults.append(
                f"partition {partition}: {len(found)} records are copied, {len(wanted)} committed as copied"
            )
    return verdict
