"""Groups under load, of which a fault must take nothing: bare commits, and real consumers.

Each knows its *series*, the times at which somebody's commits were acknowledged, one after the other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from integration.support.awaiting import wait_until
from integration.support.server import Server
from integration.support.story import KAFKA_PYTHON, LIBRDKAFKA, Story
from integration.upstream.committer import Committer

BREATH_S = 0.02
"""Between two commits of a group."""
WITHIN_S = 120.0
MEMBERS = 2
PARTITIONS = 6
SESSION_TIMEOUT_MS = 20_000
"""Of real consumers. Their default is 45 s; it has to be longer than what they wait for another kshim."""
PROGRAMS = {
    "kafka-python": (KAFKA_PYTHON, "classic"),
    "librdkafka": (LIBRDKAFKA, "classic"),
    "librdkafka-consumer": (LIBRDKAFKA, "consumer"),
}
"""Programs, and the group protocol that they use."""


class Loaded(Protocol):
    """A group that commits all the time."""

    kind: str
    """Who commits."""

    def leader(self) -> Server | None:
        """The kshim that coordinates the group."""

    def series(self) -> list[list[float]]: ...
    def finish(self) -> list[str]:
        """Commit nothing more, and return what was lost, went back, or was owned twice."""

    def end(self) -> None: ...
    def report(self) -> str: ...


def gap_s(group: Loaded, since_s: float) -> float:
    """The longest time without an acknowledged commit, of anybody in the group, that has ended since then."""
    gaps = (
        later - earlier for times in group.series() for earlier, later in pairwise(times) if later > since_s
    )
    return max(gaps, default=0.0)


def have_committed(groups: Sequence[Loaded], since_s: float) -> bool:
    return all(times and times[-1] > since_s for group in groups for times in group.series())


def wait_committed(groups: Sequence[Loaded], servers: Sequence[Server]) -> None:
    """Wait until everybody in these groups has committed once more. Report these servers if that fails."""
    since_s = time.monotonic()
    wait_until(
        lambda: have_committed(groups, since_s),
        WITHIN_S,
        lambda: "\n".join(["commits of all", *(each.report() for each in (*servers, *groups))]),
    )


class Bare(threading.Thread):
    """Commits and reads offsets of one group as fast as it is answered, without being a member."""

    kind = "bare commits"

    def __init__(self, servers: list[Server], name: str, topic: str) -> None:
        super().__init__(daemon=True)
        self.committer = Committer(servers, name, topic)
        self._acknowledged_s: list[float] = []
        self._is_over = False
        self.start()

    def run(self) -> None:
        offset = 0
        while not self._is_over:
            offset += 1
            if self.committer.commit(offset):
                self._acknowledged_s.append(time.monotonic())
            self.committer.read()
            time.sleep(BREATH_S)

    def leader(self) -> Server | None:
        return self.committer.leader()

    def series(self) -> list[list[float]]:
        return [list(self._acknowledged_s)]

    def finish(self) -> list[str]:
        self.end()
        wait_until(lambda: self.committer.read() is not None, WITHIN_S, "a last read")
        return self.committer.faults

    def end(self) -> None:
        self._is_over = True
        self.join(WITHIN_S)

    def report(self) -> str:
        return f"-- group {self.committer.group_id}: {len(self._acknowledged_s)} commits"


class Consumers:
    """Real consumers in processes of their own, which read what a producer sends all the time, and commit."""

    def __init__(self, servers: list[Server], kind: str, topic: str, directory: Path, replicas: int) -> None:
        """kind: one of `PROGRAMS`. topic: does not exist yet."""
        self.kind = kind
        program, protocol = PROGRAMS[kind]
        bootstrap = ",".join(server.bootstrap for server in servers)
        self.story = Story(
            bootstrap,
            topic,
            PARTITIONS,
            "range",
            directory,
            replication_factor=replicas,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            protocol=protocol,
        )
        self._committer = Committer(servers, self.story.group_id, self.story.topic)
        self.members = [self.story.join(f"member-{number}", program) for number in range(1, MEMBERS + 1)]
        self.story.wait_shared(*self.members, timeout_s=WITHIN_S)

    def leader(self) -> Server | None:
        return self._committer.leader()

    def series(self) -> list[list[float]]:
        return [list(member.commits_s) for member in self.members]

    def finish(self) -> list[str]:
        try:
            self.story.finish(timeout_s=WITHIN_S)
        except AssertionError as error:
            return [f"{self.kind}: {error}"]
        return []

    def end(self) -> None:
        self.story.end()

    def report(self) -> str:
        return self.story.report()

    def rebalances(self) -> int:
        return len(self.story.generations()) - 1
