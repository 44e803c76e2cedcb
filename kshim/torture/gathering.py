"""Makes evidence of what was gathered in a run: the server's notes, lines, records of the output. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kshim.torture.evidence import Assigned, Begun, Commit, Fetched, Input, Place, Processed, Rebalanced
from kshim.torture.outputs import instance_in, number_in
from kshim.torture.stage import Incoming, Note

MOST_UNKNOWN = 20
"""Most outputs that are described, though they belong to no input."""


def instance_of(listener: str) -> str:
    """The instance whose clients come by a listener: "c1" for "C1", "" for any other."""
    return listener.lower() if listener[:1] == "C" and listener[1:].isdecimal() else ""


def listener_of(instance: str) -> str:
    """The listener of an instance."""
    return instance.upper()


def fetched_in(notes: Iterable[Note], topic: str) -> Iterator[Fetched]:
    """What instances were sent of a topic."""
    for note in notes:
        if note["what"] == "fetched" and note["topic"] == topic and (by := instance_of(note["listener"])):
            yield Fetched((topic, note["partition"]), note["first"], note["last"], note["at_ms"], by)


def commits_in(notes: Sequence[Note], group: str, topic: str) -> Iterator[Commit]:
    """What instances committed for a topic. A commit in a transaction counts from the end of that one, and
    not at all if it is aborted.
    """
    ends = _ends(notes)
    for number, note in enumerate(notes):
        if note["what"] != "committed" or note["group"] != group or note["topic"] != topic:
            continue
        at_ms, error = note["at_ms"], note["error"]
        if note["transaction"] and not error:
            of_it = ends.get(note["transaction"], [])
            after = bisect_left(of_it, number, key=lambda end: end[0])
            ended = of_it[after] if after < len(of_it) else None
            at_ms = ended[1] if ended else at_ms
            error = "" if ended and ended[2] else "aborted"
        by = instance_of(note["listener"])
        yield Commit((topic, note["partition"]), note["offset"], at_ms, by, error, note["transaction"])


def _ends(notes: Iterable[Note]) -> Mapping[str, list[tuple[int, float, bool]]]:
    """The ends of each transactional id's transactions: the number of the note, the time, True if committed.

    A new producer aborts what the old one left.
    """
    ends: dict[str, list[tuple[int, float, bool]]] = {}
    for number, note in enumerate(notes):
        if note["what"] in ("ended", "producer") and not note["error"]:
            is_commit = note["what"] == "ended" and note["is_commit"]
            ends.setdefault(note["transaction"], []).append((number, note["at_ms"], is_commit))
    return ends


def assigned_in(notes: Iterable[Note], group: str, topic: str) -> Iterator[Assigned]:
    """What instances were given of a topic."""
    for note in notes:
        if note["what"] == "assigned" and note["group"] == group and not note["error"]:
            partitions = tuple((topic, p) for name, p in note["partitions"] if name == topic)
            yield Assigned(partitions, note["at_ms"], instance_of(note["listener"]))


def begun_in(notes: Iterable[Note], group: str, topic: str) -> Iterator[Begun]:
    """Where instances were told to begin."""
    for note in notes:
        if (
            note["what"] == "begins"
            and note["group"] == group
            and note["topic"] == topic
            and not note["error"]
        ):
            by = instance_of(note["listener"])
            if by:
                yield Begun((topic, note["partition"]), note["offset"], note["at_ms"], by)


def members_in(notes: Iterable[Note], group: str, instance: str, since_ms: float = 0.0) -> list[str]:
    """The member ids with which an instance has joined since, the latest last."""
    joined = (
        note["member"]
        for note in notes
        if note["what"] == "joined"
        and note["group"] == group
        and note["at_ms"] >= since_ms
        and instance_of(note["listener"]) == instance
    )
    return list(dict.fromkeys(member for member in joined if member))


def abandoned_in(notes: Iterable[Note], group: str) -> list[str]:
    """The member ids that nobody uses any more, as the same connection has joined with another one since.

    Clients have a connection to the coordinator for each consumer.
    """
    addresses: dict[str, str] = {}
    members: dict[str, str] = {}
    for note in notes:
        if note["what"] == "joined" and note["group"] == group and not note["error"]:
            address, member = note["address"], note["member"]
            addresses[member] = address
            members[address] = member
    return [member for member, address in addresses.items() if members[address] != member]


def static_id_in(notes: Iterable[Note], group: str, instance: str) -> str:
    """The group.instance.id of an instance's last member, also of one that still joins; "" if it has none."""
    found = ""
    for note in notes:
        if note["what"] not in ("joins", "joined") or note["group"] != group:
            continue
        if instance_of(note["listener"]) == instance:
            found = note["instance"] or ""
    return found


def transaction_in(notes: Iterable[Note], instance: str) -> str:
    """The transactional id that an instance used last; "" if it has none."""
    found = ""
    for note in notes:
        if note["what"] == "producer" and instance_of(note["listener"]) == instance:
            found = note["transaction"]
    return found


def rebalances_in(shown: Iterable[Mapping[str, Any]], notes: Iterable[Note]) -> Iterator[Rebalanced]:
    """Rebalances, with instances in place of members. shown: those of the recorder, as JSON."""
    instances = {note["member"]: instance_of(note["listener"]) for note in notes if note["what"] == "joined"}
    for each in shown:
        moved = {
            (m["topic"], m["partition"]): (instances.get(m["from"] or "", ""), instances.get(m["to"], ""))
            for m in each["moved"]
        }
        by = dict.fromkeys(filter(None, (instances.get(member) for member in each["members_at_cause"])))
        yield Rebalanced(each["began_ms"], each["generation"], each["cause"], tuple(by), moved)


def from_reports(
    reports: Iterable[tuple[str, float, tuple[str, int, int]]],
    inputs: Iterable[Input],
    late_ms: Callable[[float], float] = lambda _: 0.0,
) -> tuple[list[Processed], list[str]]:
    """The signs in lines, as (instance, ms, (topic, partition, offset)); and lines that fit no input.

    late_ms: by how much a line that was read at some time may have been printed earlier.
    """
    by_place = {each.place: each.number for each in inputs}
    signs: list[Processed] = []
    unknown: list[str] = []
    for by, at_ms, place in reports:
        number = by_place.get(Place(*place))
        if number is not None:
            signs.append(Processed(number, at_ms, by, late_ms=late_ms(at_ms)))
        elif len(unknown) < MOST_UNKNOWN:
            unknown.append(f"{by} reported {Place(*place)}, where no record was produced")
    return signs, unknown


def from_outputs(
    outputs: Iterable[Incoming], inputs: Iterable[Input], pointer: str
) -> tuple[list[Processed], list[str]]:
    """The signs in an output topic; and outputs that belong to no input."""
    known: Mapping[int, Input] = {each.number: each for each in inputs}
    signs: list[Processed] = []
    unknown: list[str] = []
    for each in sorted(outputs, key=lambda each: (each.at_ms, each.partition, each.offset)):
        number = number_in(each.headers, each.value, pointer)
        if number in known and number is not None:
            where = each.partition, each.offset
            signs.append(Processed(number, each.at_ms, instance_in(each.headers), where))
        elif len(unknown) < MOST_UNKNOWN:
            at = f"record {each.partition}@{each.offset} of the output"
            has = "has no number" if number is None else f"has the number {number}, which was not produced"
            unknown.append(f"{at} {has}")
    return signs, unknown
