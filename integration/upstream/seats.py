"""Groups with two seats each. In a seat sits one member process after the other, of one client.

A group either reads, or copies exactly once, in transactions. The first seat of a group is a static member,
whose process is killed to be replaced; that of the other one leaves the group in order.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from integration.support.server import Server
from integration.support.story import (
    KAFKA_PYTHON,
    KAFKA_PYTHON_COPIER,
    LIBRDKAFKA,
    LIBRDKAFKA_COPIER,
    Member,
)
from integration.upstream.committer import Committer
from integration.upstream.load import SESSION_TIMEOUT_MS
from integration.upstream.offsets_seen import OffsetsSeen

SEATS = 2
DIES_S = 10.0
WRITES_S = 1.0


class Kind(NamedTuple):
    """The members of a group."""

    client: str
    copies: bool

    def __str__(self) -> str:
        return f"{self.client}, in transactions" if self.copies else self.client


PROGRAMS: Mapping[Kind, Sequence[str]] = {
    Kind("kafka-python", False): KAFKA_PYTHON,
    Kind("kafka-python", True): KAFKA_PYTHON_COPIER,
    Kind("librdkafka", False): LIBRDKAFKA,
    Kind("librdkafka", True): LIBRDKAFKA_COPIER,
}


class Seat:
    """A place in a group."""

    def __init__(self, name: str, kind: Kind, options: Mapping[str, object], log_dir: Path) -> None:
        self.name, self.kind = name, kind
        self.is_static = "instance_id" in options
        self.members: list[Member] = []
        """The last one sits here."""
        self.sat_s = 0.0
        self._options, self._log_dir = dict(options), log_dir
        self.sit()

    @property
    def member(self) -> Member:
        return self.members[-1]

    def sit(self) -> None:
        """Start a member process."""
        log_path = self._log_dir / f"{self.name}-{len(self.members)}.log"
        self.members.append(Member(self.name, self._options, log_path, PROGRAMS[self.kind]))
        self.sat_s = time.monotonic()

    def replace(self) -> str:
        """Kill a static member, or make another one leave, and start the next at once; say how it ended."""
        if self.is_static:
            self.member.kill()
        else:
            self.member.terminate()
        self.sit()
        return "killed" if self.is_static else "leaves"

    def replace_stuck(self) -> str:
        """Kill a member that does not go on, and start the next; return its last words."""
        stuck = self.member
        if stuck.running:
            with contextlib.suppress(OSError):
                stuck.send_signal(signal.SIGUSR1)  # prints where it stands, if it is a copier
                time.sleep(WRITES_S)
            stuck.kill()
        self.sit()
        return stuck.report()

    def commits_s(self) -> list[float]:
        return list(chain.from_iterable(list(each.commits_s) for each in self.members))

    def acknowledged(self) -> dict[int, int]:
        """The highest offset whose commit was acknowledged, by partition."""
        found: dict[int, int] = {}
        for member in self.members:
            for partition, offset in dict(member.committed).items():
                found[partition] = max(offset, found.get(partition, 0))
        return found

    def owned(self) -> dict[int, frozenset[int]]:
        """The partitions that it had, by generation. A static member's successor has the same ones."""
        found: dict[int, frozenset[int]] = {}
        for member in self.members:
            found |= dict(member.generations)
        return found

    def end(self) -> None:
        for member in self.members:
            member.end()


class SeatedGroup:
    """A group under load: `load.Loaded`, and more to judge."""

    def __init__(self, servers: list[Server], kind: Kind, topic: str, partitions: int, log_dir: Path) -> None:
        """topic: what all groups read; copies go to `copies_to`."""
        self.kind = str(kind)
        self.name = f"{'copied' if kind.copies else 'read'}-by-{kind.client}"
        self.copies_to = f"{topic}-{self.name}" if kind.copies else ""
        self.seen = OffsetsSeen(self.name)
        """What was processed: read and committed, or copied in transactions that were committed."""
        self.values: dict[tuple[int, int], str] = {}
        """What was read, by partition and offset; only of a group that does not copy."""
        self.faults: list[str] = []
        self._partitions = range(partitions)
        self._offsets: dict[int, int] = {}
        self._read_of: dict[Member, int] = {}
        """How many of a member's records were looked at."""
        self._committer = Committer(servers, self.name, topic)
        bootstrap = ",".join(each.bootstrap for each in servers)
        self.seats = [
            Seat(f"{self.name}-{number}", kind, self._options(bootstrap, topic, number), log_dir)
            for number in range(1, SEATS + 1)
        ]

    def _options(self, bootstrap: str, topic: str, number: int) -> dict[str, object]:
        name = f"{self.name}-{number}"
        options: dict[str, object] = {
            "bootstrap": bootstrap,
            "topic": topic,
            "group_id": self.name,
            "assignor": "range",
            "metadata_max_age_ms": 300_000,
            "session_timeout_ms": SESSION_TIMEOUT_MS,
            "protocol": "classic",
        }
        if number == 1:
            options["instance_id"] = name
        if self.copies_to:
            options |= {"copies_to": self.copies_to, "transactional_id": name}
        return options

    def leader(self) -> Server | None:
        return self._committer.leader()

    def series(self) -> list[list[float]]:
        return [seat.commits_s() for seat in self.seats]

    # ---- what is wrong

    def look(self) -> None:
        """Take what members have read since the last look, and ask for the group's offsets."""
        self._take_records()
        floors = dict(self._offsets)
        for seat in self.seats:
            for partition, offset in seat.acknowledged().items():
                floors[partition] = max(offset, floors.get(partition, 0))
        now = self._committer.stable_offsets(self._partitions)
        for partition, offset in now.items():
            if offset < floors.get(partition, -1):
                self.faults.append(
                    f"{self.name}, partition {partition}: {floors[partition]} was committed, then {offset}"
                )
            elif offset >= 0:
                self._offsets[partition] = offset

    def _take_records(self) -> None:
        for member in [member for seat in self.seats for member in seat.members]:
            known = self._read_of.get(member, 0)
            for partition, offset, value in member.consumed[known:]:
                self.seen.note(partition, offset)
                self.values[partition, offset] = value
                known += 1
            self._read_of[member] = known

    def owned_twice(self) -> list[str]:
        """The partitions that two seats had in one generation."""
        first, second = (seat.owned() for seat in self.seats)
        return [
            f"{self.name}, generation {generation}: both seats have {sorted(both)}"
            for generation, owned in first.items()
            if (both := owned & second.get(generation, frozenset()))
        ]

    def has_gone_on(self, since_s: float, ends: Mapping[int, int]) -> bool:
        """True if both members have committed since then, and all records before `ends` were processed."""
        return all(times and times[-1] > since_s for times in self.series()) and self.seen.covers(ends)

    def bury(self) -> list[str]:
        """Kill former members that have not ended by themselves; return their names."""
        late = [each for seat in self.seats for each in seat.members[:-1] if each.running]
        for member in late:
            member.kill()
        return [member.name for member in late]

    def end(self) -> None:
        for seat in self.seats:
            seat.end()

    def report(self) -> str:
        members = "\n".join(seat.member.report() for seat in self.seats)
        return f"-- group {self.name}, committed {self._offsets}, {self.seen.report()}\n{members}"
