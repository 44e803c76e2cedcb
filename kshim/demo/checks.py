"""Checks, from all that was reported and seen in a run, what must hold at its end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kshim.demo.scene import Event, Scene
    from kshim.demo.workers import Record

SHOWN = 3
"""Most examples that a failed check shows."""


class Check(NamedTuple):
    """A promise, whether it holds, and the figures."""

    promise: str
    holds: bool
    detail: str


def broken(scene: Scene) -> list[Check]:
    """The failed checks among those that must hold at any moment, for a run that failed half-way."""
    return [check for check in (unchanged(scene), offsets_kept(scene), one_owner(scene)) if not check.holds]


def checks(scene: Scene) -> list[Check]:
    """All checks. The check of Spark's count is included only if Spark has counted."""
    return [
        all_received(scene),
        unchanged(scene),
        offsets_kept(scene),
        read_to_the_end(scene),
        one_owner(scene),
        *(spark_agrees(scene, counted) for counted in _events(scene, "counted")),
    ]


def _events(scene: Scene, kind: str) -> Iterator[Event]:
    return (event for event in scene.history if event["event"] == kind)


def _records(scene: Scene, kind: str) -> list[Record]:
    """The records that were "acknowledged" or "received"."""
    return [
        (partition, offset, value)
        for event in _events(scene, kind)
        for partition, offset, value in event["records"]
    ]


def _some(items: Iterable[object]) -> str:
    chosen = sorted(map(str, items))
    return ", ".join(chosen[:SHOWN]) + (", …" if len(chosen) > SHOWN else "")


def all_received(scene: Scene) -> Check:
    """Every acknowledged record reached a member, with the producer's partition, offset and value."""
    sent, received = set(_records(scene, "acknowledged")), _records(scene, "received")
    missing = sent - set(received)
    again = len(received) - len(set(received))
    detail = f"{len(sent)} acknowledged, {len(sent - missing)} of them received, {again} more than once"
    if missing:
        detail += f"; missing: {_some(f'{value} (partition {p}, offset {o})' for p, o, value in missing)}"
    return Check("every acknowledged record was received", bool(sent) and not missing, detail)


def unchanged(scene: Scene) -> Check:
    """An offset always holds the same record, and a record is at one offset only, in spite of retries."""
    by_place: dict[tuple[int, int], set[str]] = defaultdict(set)
    by_value: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for partition, offset, value in [*_records(scene, "acknowledged"), *_records(scene, "received")]:
        by_place[partition, offset].add(value)
        by_value[value].add((partition, offset))
    changed = {place for place, values in by_place.items() if len(values) > 1}
    twice = {value for value, places in by_value.items() if len(places) > 1}
    detail = f"{len(by_place)} offsets"
    if changed:
        detail += f"; two records at (partition, offset) {_some(changed)}"
    if twice:
        detail += f"; written twice: {_some(twice)}"
    return Check("every record is in the log once", not changed and not twice, detail)


def offsets_kept(scene: Scene) -> Check:
    """Each time the server was asked, it gave the offsets confirmed until then, never lower than before.

    A restart makes no difference. (The members' events may arrive late, so their order is not checked.)
    """
    commits = sorted(_events(scene, "committed"), key=lambda event: event["at_ms"])
    floor: dict[int, int] = {}
    back: list[str] = []
    taken = 0
    for look in scene.looks:
        while taken < len(commits) and commits[taken]["at_ms"] <= look.asked_ms:
            for partition, offset in commits[taken]["offsets"]:
                floor[partition] = max(offset, floor.get(partition, 0))
            taken += 1
        answered = dict.fromkeys(floor, 0) | dict(look.committed)
        back += [f"partition {p}: {answered[p]} after {low}" for p, low in floor.items() if answered[p] < low]
        floor |= answered
    detail = f"{len(commits)} commits confirmed, the server asked {len(scene.looks)} times"
    return Check("committed offsets never went back", not back, "; ".join([detail, *back[:SHOWN]]))


def read_to_the_end(scene: Scene) -> Check:
    """At the end, each partition's committed offset is the end of its log."""
    promise = "the group read to the end of every partition"
    if not scene.looks:
        return Check(promise, False, "the group was never seen")
    look = scene.looks[-1]
    short = [f"{p}: {look.committed.get(p, 0)} of {end}" for p, end in look.ends.items() if look.lag([p])]
    detail = f"{sum(look.ends.values())} records in {len(look.ends)} partitions"
    return Check(promise, not short, f"{detail}; partition {', '.join(short)}" if short else detail)


def one_owner(scene: Scene) -> Check:
    """No partition has two owners in one generation."""
    owners: dict[tuple[int, int], set[str]] = defaultdict(set)
    for event in _events(scene, "assigned"):
        for partition in event["partitions"]:
            owners[event["generation"], partition].add(event["name"])
    shared = {place: names for place, names in owners.items() if len(names) > 1}
    detail = f"{len({generation for generation, _ in owners})} generations"
    for (generation, partition), names in list(shared.items())[:SHOWN]:
        detail += f"; generation {generation}, partition {partition}: {' and '.join(sorted(names))}"
    return Check("no partition had two owners in a generation", not shared, detail)


def spark_agrees(scene: Scene, counted: Event) -> Check:
    """Spark's Kafka source reads exactly as many records as the members received, each of them once."""
    records, different = counted["count"], counted["values"]
    places = {(partition, offset) for partition, offset, _ in _records(scene, "received")}
    detail = f"{records} records, {different} different; received by the group: {len(places)}"
    return Check("PySpark counts the same records", records == different == len(places), detail)
