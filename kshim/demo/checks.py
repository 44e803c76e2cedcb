"""Checks, from all events of a run, what must hold at its end."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kshim.demo.events import Acknowledged, Assigned, Committed, Counted, Event, GroupSeen, Received

SHOWN = 3
"""Most examples that a failed check shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A promise, whether it holds, and the figures."""

    promise: str
    holds: bool
    detail: str


def broken(history: Sequence[Event]) -> tuple[Check, ...]:
    """The failed checks among those that must hold at any moment, for a run that failed half-way."""
    return tuple(
        check for check in (unchanged(history), offsets_kept(history), one_owner(history)) if not check.holds
    )


def checks(history: Sequence[Event]) -> tuple[Check, ...]:
    """All checks. The check of Spark's count is included only if Spark has counted."""
    counted = [event for event in history if isinstance(event, Counted)]
    return (
        all_received(history),
        unchanged(history),
        offsets_kept(history),
        read_to_the_end(history),
        one_owner(history),
        *(spark_agrees(history, count) for count in counted),
    )


def _sent(history: Iterable[Event]) -> set[tuple[int, int, str]]:
    return {record for event in history if isinstance(event, Acknowledged) for record in event.records}


def _received(history: Iterable[Event]) -> list[tuple[int, int, str]]:
    return [record for event in history if isinstance(event, Received) for record in event.records]


def _some(items: Iterable[object]) -> str:
    chosen = sorted(map(str, items))
    return ", ".join(chosen[:SHOWN]) + (", …" if len(chosen) > SHOWN else "")


def all_received(history: Sequence[Event]) -> Check:
    """Every acknowledged record reached a member, with the producer's partition, offset and value."""
    sent, received = _sent(history), _received(history)
    missing = sent - set(received)
    again = len(received) - len(set(received))
    detail = f"{len(sent)} acknowledged, {len(sent - missing)} of them received, {again} more than once"
    if missing:
        detail += f"; missing: {_some(f'{value} (partition {p}, offset {o})' for p, o, value in missing)}"
    return Check(
        promise="every acknowledged record was received", holds=bool(sent) and not missing, detail=detail
    )


def unchanged(history: Sequence[Event]) -> Check:
    """An offset always holds the same record, and a record is at one offset only, in spite of retries."""
    by_place: dict[tuple[int, int], set[str]] = defaultdict(set)
    by_value: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for partition, offset, value in [*_sent(history), *_received(history)]:
        by_place[partition, offset].add(value)
        by_value[value].add((partition, offset))
    changed = {place for place, values in by_place.items() if len(values) > 1}
    twice = {value for value, places in by_value.items() if len(places) > 1}
    detail = f"{len(by_place)} offsets"
    if changed:
        detail += f"; two records at (partition, offset) {_some(changed)}"
    if twice:
        detail += f"; written twice: {_some(twice)}"
    return Check(promise="every record is in the log once", holds=not changed and not twice, detail=detail)


def offsets_kept(history: Sequence[Event]) -> Check:
    """Each time the server was asked, it gave the offsets confirmed until then, never lower than before.

    A restart makes no difference. (The members' events may arrive late, so their order is not checked.)
    """
    commits = [event for event in history if isinstance(event, Committed)]
    looks = [event for event in history if isinstance(event, GroupSeen)]
    floor: dict[int, int] = {}
    back: list[str] = []
    for look in looks:
        for commit in [commit for commit in commits if commit.at_ms <= look.asked_ms]:
            floor |= {partition: max(offset, floor.get(partition, 0)) for partition, offset in commit.offsets}
        told = dict.fromkeys(floor, 0) | dict(look.committed)
        back += [f"partition {p}: {told[p]} after {least}" for p, least in floor.items() if told[p] < least]
        floor |= told
    detail = f"{len(commits)} commits confirmed, the server asked {len(looks)} times"
    return Check(
        promise="committed offsets never went back",
        holds=not back,
        detail="; ".join([detail, *back[:SHOWN]]),
    )


def read_to_the_end(history: Sequence[Event]) -> Check:
    """At the end, each partition's committed offset is the end of its log."""
    last = next((event for event in reversed(history) if isinstance(event, GroupSeen)), None)
    promise = "the group read to the end of every partition"
    if last is None:
        return Check(promise=promise, holds=False, detail="the group was never seen")
    committed = dict(last.committed)
    short = {p: f"{committed.get(p, 0)} of {end}" for p, end in last.ends if committed.get(p, 0) != end}
    detail = f"{sum(end for _, end in last.ends)} records in {len(last.ends)} partitions"
    if short:
        detail += f"; partition {', '.join(f'{p}: {text}' for p, text in short.items())}"
    return Check(promise=promise, holds=not short, detail=detail)


def one_owner(history: Sequence[Event]) -> Check:
    """No partition has two owners in one generation."""
    owners: dict[tuple[int, int], set[str]] = defaultdict(set)
    for event in history:
        if isinstance(event, Assigned):
            for partition in event.partitions:
                owners[event.generation, partition].add(event.name)
    shared = {place: names for place, names in owners.items() if len(names) > 1}
    detail = f"{len({generation for generation, _ in owners})} generations"
    for (generation, partition), names in list(shared.items())[:SHOWN]:
        detail += f"; generation {generation}, partition {partition}: {' and '.join(sorted(names))}"
    return Check(
        promise="no partition had two owners in a generation",
        holds=not shared,
        detail=detail,
    )


def spark_agrees(history: Sequence[Event], counted: Counted) -> Check:
    """Spark's Kafka source reads exactly as many records as the members received, each of them once."""
    places = {(partition, offset) for partition, offset, _ in _received(history)}
    return Check(
        promise="PySpark counts the same records",
        holds=counted.records == counted.values == len(places),
        detail=f"{counted.records} records, {counted.values} different; received by the group: {len(places)}",
    )
