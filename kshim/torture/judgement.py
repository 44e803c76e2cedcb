"""Finds the anomalies in the traces of a run. Pure: no server, no clock.

A line that a program prints is seen a little after it was printed, and a record of its output gets its time
from the broker. So two times are only compared if they are TOLERANCE_MS apart, and more while the machine was
too busy to read lines. What needs no times, such as a
record that was never processed, is exact.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kshim.torture.evidence import Commit, Evidence, Input, Partition, Processed
from kshim.torture.promises import Anomaly, Judged, Output

TOLERANCE_MS: Final = 400


class Finding(NamedTuple):
    """One anomaly: the records it is about, by number, or the partition, and what gives it away."""

    anomaly: Anomaly
    text: str
    at_ms: float
    number: int | None = None
    partition: Partition | None = None


def judge(evidence: Evidence, judged: Judged) -> list[Finding]:
    """All anomalies, whether they break the promise or not, the earliest first."""
    facts = _Facts(evidence)
    found = [finding for look in _LOOKS[judged.output] for finding in look(facts)]
    return sorted(found, key=lambda finding: (finding.at_ms, finding.number or 0))


def breaking(findings: Sequence[Finding], judged: Judged) -> list[Finding]:
    """The findings that break the promise."""
    return [finding for finding in findings if finding.anomaly in judged.breaking]


def is_drained(evidence: Evidence) -> bool:
    """True if the group has committed all records, or all are processed and it commits nothing."""
    facts = _Facts(evidence)
    if facts.last and all(evidence.committed.get(p, 0) > last for p, last in facts.last.items()):
        return True
    return (
        not evidence.committed
        and bool(facts.times)
        and all(each.number in facts.times for each in facts.wanted)
    )


class _Facts:
    """The traces, arranged for the questions below."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.inputs = {each.number: each for each in evidence.inputs}
        unheard = evidence.unheard
        self.wanted = [
            each for each in evidence.inputs if not each.is_aborted and each.place[:2] not in unheard
        ]
        """The records that the program has to process."""
        self.last: dict[Partition, int] = {}
        """The offset of each partition's last wanted record."""
        for each in self.wanted:
            at = each.place[:2]
            self.last[at] = max(self.last.get(at, -1), each.place.offset)
        self.times: dict[int, list[Processed]] = defaultdict(list)
        """Each record's signs of being processed, in order."""
        for sign in evidence.processed or ():
            self.times[sign.number].append(sign)
        self.processed_to: dict[Partition, int] = defaultdict(lambda: -1)
        """The offset of each partition's last record that was processed."""
        for number in self.times.keys() & self.inputs.keys():
            place = self.inputs[number].place
            self.processed_to[place[:2]] = max(self.processed_to[place[:2]], place.offset)
        accepted = sorted((c for c in evidence.commits if not c.error), key=lambda c: c.at_ms)
        self.accepted: dict[Partition, list[Commit]] = defaultdict(list)
        """The accepted commits of each partition, in order."""
        for commit in accepted:
            self.accepted[commit.partition].append(commit)

    def first_commit_past(self, record: Input, *, with_transactions: bool = True) -> Commit | None:
        """The first accepted commit of an offset behind the record."""
        for commit in self.accepted[record.place[:2]]:
            if commit.offset > record.place.offset and (with_transactions or not commit.transaction):
                return commit
        return None


# ---- the records


def _lost_or_stuck(facts: _Facts) -> Iterator[Finding]:
    """Records that were never processed: lost if the group has committed past them, else stuck."""
    evidence = facts.evidence
    for record in facts.wanted:
        if record.number in facts.times:
            continue
        committed = evidence.committed.get(record.place[:2], 0)
        if committed > record.place.offset:
            commit = facts.first_commit_past(record)
            by = f" by {commit.by}" if commit and commit.by else ""
            text = f"never processed, though offset {committed} is committed{by}"
            yield Finding(Anomaly.LOST, text, commit.at_ms if commit else evidence.ended_ms, record.number)
        elif not facts.accepted and facts.processed_to[record.place[:2]] > record.place.offset:
            text = "never processed, though later records of its partition were"
            yield Finding(Anomaly.LOST, text, evidence.ended_ms, record.number)
        else:
            text = f"never processed; the group's offset stays at {committed}"
            yield Finding(Anomaly.STUCK, text, evidence.ended_ms, record.number)


def _not_committed(facts: _Facts) -> Iterator[Finding]:
    """Partitions whose records are processed, and whose last commit stays behind them."""
    evidence = facts.evidence
    if not facts.accepted:
        return  # the program keeps its position elsewhere
    for partition, last in sorted(facts.last.items()):
        committed = evidence.committed.get(partition, 0)
        if committed <= last and _number_at(facts, partition, last) in facts.times:
            text = (
                f"processed to the end, but offset {committed} stays committed, {last + 1 - committed} short"
            )
            yield Finding(Anomaly.STUCK, text, evidence.ended_ms, partition=partition)


def _number_at(facts: _Facts, partition: Partition, offset: int) -> int | None:
    return next(
        (each.number for each in facts.wanted if each.place[:2] == partition and each.place.offset == offset),
        None,
    )


def _duplicated(facts: _Facts) -> Iterator[Finding]:
    for number, signs in facts.times.items():
        if len(signs) > 1:
            by = " and ".join(dict.fromkeys(each.by for each in signs if each.by))
            text = f"processed {len(signs)} times{f', by {by}' if by else ''}"
            yield Finding(Anomaly.DUPLICATED, text, signs[1].at_ms, number)


def _aborted(facts: _Facts) -> Iterator[Finding]:
    for number, signs in facts.times.items():
        if facts.inputs[number].is_aborted:
            text = "processed, though its transaction was aborted"
            yield Finding(Anomaly.ABORTED, text, signs[0].at_ms, number)


def _unexpected(facts: _Facts) -> Iterator[Finding]:
    for text in facts.evidence.unknown:
        yield Finding(Anomaly.UNEXPECTED, text, facts.evidence.ended_ms)


def _early(facts: _Facts) -> Iterator[Finding]:
    """Records that were committed before they were processed. What a transaction commits counts with it."""
    for record in facts.wanted:
        signs = facts.times.get(record.number)
        commit = facts.first_commit_past(record, with_transactions=False) if signs else None
        if signs and commit and (after_ms := signs[0].earliest_ms - commit.at_ms) > TOLERANCE_MS:
            after = seconds(after_ms)
            text = f"offset {commit.offset} was committed {after} before the record was processed"
            yield Finding(Anomaly.EARLY, text, commit.at_ms, record.number)


def _late(facts: _Facts) -> Iterator[Finding]:
    """Records that were processed before a commit: for programs that promise to process at most once."""
    for record in facts.wanted:
        signs = facts.times.get(record.number)
        if not signs:
            continue
        commit = facts.first_commit_past(record)
        if commit is None or commit.at_ms - signs[0].at_ms > TOLERANCE_MS:
            when = f"{seconds(commit.at_ms - signs[0].at_ms)} later" if commit else "never"
            yield Finding(Anomaly.LATE, f"processed, and committed {when}", signs[0].at_ms, record.number)


def _out_of_order(facts: _Facts) -> Iterator[Finding]:
    """Records that were first processed after a later one of their key."""
    by_key: dict[str, list[Processed]] = defaultdict(list)
    for signs in facts.times.values():
        by_key[facts.inputs[signs[0].number].key].append(signs[0])
    for key, firsts in by_key.items():
        highest: Processed | None = None
        for sign in sorted(firsts, key=_order):
            if highest is not None and sign.number < highest.number and _is_after(sign, highest):
                text = f"processed after number {highest.number}, a later record of key {key}"
                yield Finding(Anomaly.OUT_OF_ORDER, text, sign.at_ms, sign.number)
            if highest is None or sign.number > highest.number:
                highest = sign


def _order(sign: Processed) -> tuple[float, tuple[int, int]]:
    return sign.at_ms, sign.where or (0, 0)


def _is_after(sign: Processed, other: Processed) -> bool:
    """True if a sign certainly came after another one."""
    if sign.where and other.where and sign.where[0] == other.where[0]:
        return sign.where > other.where
    return sign.by == other.by != "" or sign.earliest_ms - other.at_ms > TOLERANCE_MS


def _two_owners(facts: _Facts) -> Iterator[Finding]:
    """Records that an instance processed when its partition was another's, which processed them, too."""
    owners = _owners(facts.evidence)
    for number, signs in facts.times.items():
        partition = facts.inputs[number].place[:2]
        known = owners.get(partition)
        if len({sign.by for sign in signs}) < 2 or known is None:
            continue
        times, names = known
        for sign in signs:
            at = bisect_right(times, sign.earliest_ms - TOLERANCE_MS) - 1
            if at >= 0 and sign.by and sign.by not in names[at : bisect_right(times, sign.at_ms)]:
                text = f"processed by {sign.by}, when {names[at]} had its partition"
                yield Finding(Anomaly.TWO_OWNERS, text, sign.at_ms, number)
                break


def _owners(evidence: Evidence) -> Mapping[Partition, tuple[list[float], list[str]]]:
    """When each partition was given to whom, in order."""
    owners: dict[Partition, tuple[list[float], list[str]]] = defaultdict(lambda: ([], []))
    for each in sorted(evidence.assigned, key=lambda each: each.at_ms):
        for partition in each.partitions:
            owners[partition][0].append(each.at_ms)
            owners[partition][1].append(each.by)
    return owners


# ---- the commits


def _went_back(facts: _Facts) -> Iterator[Finding]:
    for partition, commits in facts.accepted.items():
        highest = 0
        for commit in commits:
            if commit.offset < highest:
                text = f"offset {commit.offset} committed by {commit.by or 'somebody'}, after {highest}"
                yield Finding(Anomaly.WENT_BACK, text, commit.at_ms, partition=partition)
            highest = max(highest, commit.offset)


def _never_fetched(facts: _Facts) -> Iterator[Finding]:
    """Records that the group has committed, and that no instance was ever sent, or was sent only later."""
    evidence = facts.evidence
    for record in facts.wanted:
        at, offset = record.place[:2], record.place.offset
        commit = facts.first_commit_past(record)
        if commit is None:
            continue
        sent = [f.at_ms for f in evidence.fetched if f.partition == at and f.first <= offset <= f.last]
        if not sent:
            text = f"offset {commit.offset} is committed, and no instance ever fetched the record"
            yield Finding(Anomaly.LOST, text, commit.at_ms, record.number)
        elif commit.at_ms < min(sent):
            text = f"offset {commit.offset} was committed before any instance had fetched the record"
            yield Finding(Anomaly.EARLY, text, commit.at_ms, record.number)


def _behind(facts: _Facts) -> Iterator[Finding]:
    """Partitions whose committed offset stays short of the end."""
    evidence = facts.evidence
    for partition, last in sorted(facts.last.items()):
        committed = evidence.committed.get(partition, 0)
        if committed <= last:
            text = f"the committed offset stays at {committed}, {last + 1 - committed} short of the end"
            yield Finding(Anomaly.STUCK, text, evidence.ended_ms, partition=partition)


_PROCESSING: Final = (
    *(_lost_or_stuck, _not_committed, _duplicated, _aborted, _unexpected),
    *(_early, _late, _out_of_order, _two_owners, _went_back),
)
_LOOKS: Final = {
    Output.REPORT: _PROCESSING,
    Output.TOPIC: _PROCESSING,
    Output.OFFSETS: (_never_fetched, _behind, _went_back),
}


def seconds(ms: float) -> str:
    """A duration such as "0.412 s"."""
    return f"{ms / 1000:.3f} s"
