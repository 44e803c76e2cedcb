"""The parts of a group's story: member processes, a feed of records, a watch over committed offsets."""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from kafka.errors import KafkaError

from integration.support.awaiting import wait_until
from integration.support.clients import Admin, new_producer, until_served
from integration.support.process import Process

KAFKA_PYTHON = (sys.executable, "-m", "integration.support.member")
LIBRDKAFKA = (sys.executable, "-m", "integration.support.librdkafka_member")
KAFKA_PYTHON_COPIER = (sys.executable, "-m", "integration.support.copier")
LIBRDKAFKA_COPIER = (sys.executable, "-m", "integration.support.librdkafka_copier")
"""The commands that run as member processes; see also `integration.support.java_member`."""
ROOT = Path(__file__).resolve().parents[2]
FEED_INTERVAL_S = 0.005


class Member(Process):
    """One member process: keeps the events it has printed so far, and sends signals to end it."""

    def __init__(
        self, name: str, options: dict[str, Any], log_path: Path, program: Sequence[str] = KAFKA_PYTHON
    ) -> None:
        self.name = name
        self.owned: set[int] = set()
        self.generations: dict[int, frozenset[int]] = {}
        self.consumed: list[tuple[int, int, str]] = []
        self.committed: dict[int, int] = {}
        self.commits_s: list[float] = []
        """The times at which commits were acknowledged."""
        self.failed_commits: list[str] = []
        self.said: set[str] = set()
        self.close_s = -1.0
        self.arrivals: list[tuple[float, int]] = []
        arguments = json.dumps({**options, "client_id": name})
        super().__init__([*program, arguments], log_path, cwd=ROOT)

    def _hear(self, line: str) -> None:
        fact = json.loads(line)
        getattr(self, f"_on_{fact['event']}", lambda fact: None)(fact)
        self.said.add(fact["event"])

    def _on_revoked(self, fact: dict[str, Any]) -> None:
        self.owned -= set(fact["partitions"])

    def _on_assigned(self, fact: dict[str, Any]) -> None:
        self.owned |= set(fact["partitions"])
        self.generations[fact["generation_id"]] = frozenset(self.owned)

    def _on_records(self, fact: dict[str, Any]) -> None:
        self.consumed.extend(tuple(record) for record in fact["records"])
        now_s = time.monotonic()
        self.arrivals.extend((now_s, partition) for partition in {record[0] for record in fact["records"]})

    def _on_committed(self, fact: dict[str, Any]) -> None:
        self.committed.update({int(partition): offset for partition, offset in fact["offsets"].items()})
        self.commits_s.append(time.monotonic())

    def _on_commit_failed(self, fact: dict[str, Any]) -> None:
        self.failed_commits.append(fact["error"])

    def _on_closed(self, fact: dict[str, Any]) -> None:
        self.close_s = fact["seconds"]

    def wait_said(self, event: str, timeout_s: float = 20) -> None:
        wait_until(
            lambda: event in self.said, timeout_s, lambda: f"{self.name} says {event}\n{self.report()}"
        )

    def interrupt(self) -> None:
        """Interrupt poll() at any point, as Ctrl-C does. The member then closes."""
        self._process.send_signal(signal.SIGINT)

    def leave(self) -> None:
        """Make the member close cleanly, and wait until it has."""
        self.stop()
        assert "closed" in self.said, self.report()

    def report(self) -> str:
        title = f"-- {self.name}: owns {sorted(self.owned)}, said {sorted(self.said)}, log:"
        return "\n".join([title, *self._log_lines(25)])


class Feed:
    """A producer that keeps sending numbered records, and remembers the positions of acknowledged ones."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        interval_s: float = FEED_INTERVAL_S,
        **options: Any,
    ) -> None:
        """interval_s: between two records."""
        self.acknowledged: dict[tuple[int, int], str] = {}
        self.errors: list[BaseException] = []
        self.sent = 0
        self._topic, self._partitions, self._interval_s = topic, partitions, interval_s
        self._stopping = threading.Event()
        self._producer = new_producer(bootstrap, **options)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for number in itertools.count():
            if self._stopping.wait(self._interval_s):
                return
            value, partition = f"{self._topic}-{number}", number % self._partitions
            future = self._producer.send(self._topic, value.encode(), partition=partition)
            future.add_callback(self._on_ack, value)
            future.add_errback(self.errors.append)
            self.sent = number + 1

    def _on_ack(self, value: str, metadata: Any) -> None:
        self.acknowledged[metadata.partition, metadata.offset] = value

    def widen(self, partitions: int, timeout_s: float = 20) -> None:
        """Send to more partitions. Waits until the producer knows them."""
        wait_until(
            lambda: len(self._producer.partitions_for(self._topic)) == partitions,
            timeout_s,
            f"the producer knows {partitions} partitions",
        )
        self._partitions = partitions

    def wait_more(self, count: int, timeout_s: float = 20) -> None:
        """Wait until `count` more records are acknowledged."""
        target = len(self.acknowledged) + count
        wait_until(
            lambda: len(self.acknowledged) >= target,
            timeout_s,
            lambda: (
                f"{target} acknowledged of {self.sent} sent, have {len(self.acknowledged)}\n{self.errors[:3]}"
            ),
        )

    def stop(self, timeout_s: float = 30) -> dict[tuple[int, int], str]:
        """Stop the feed, and wait until each record is acknowledged or has failed.

        Return {(partition, offset): value}.
        """
        self._stopping.set()
        self._thread.join(timeout_s)
        self._producer.flush(timeout=timeout_s)
        return self.acknowledged

    def end(self) -> None:
        self._stopping.set()
        self._producer.close(timeout=1)


class OffsetWatch:
    """Asks the server all the time for a group's committed offsets.

    An offset must never go back, nor be below one whose commit was acknowledged to a member.
    """

    def __init__(self, bootstrap: str, group_id: str, topic: str, members: list[Member]) -> None:
        self.offsets: dict[int, int] = {}
        self.faults: list[str] = []
        self.looks = 0
        self._last_error: BaseException | None = None
        self._bootstrap, self._group_id, self._topic, self._members = bootstrap, group_id, topic, members
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        admin: Admin | None = None
        while not self._stopping.wait(0.1):
            try:
                admin = admin or Admin(self._bootstrap)
                self._look(admin)
            except (KafkaError, OSError, AssertionError) as error:  # the server is down or just coming back
                self._last_error = error
                if admin is not None:
                    _close_quietly(admin)
                admin = None
        if admin is not None:
            _close_quietly(admin)

    def _look(self, admin: Admin) -> None:
        acknowledged = self.acknowledged()
        found = admin.group_offsets(self._group_id)
        now = {partition: offset for (topic, partition), offset in found.items() if topic == self._topic}
        for partition, floor in {**self.offsets, **acknowledged}.items():
            floor = max(floor, self.offsets.get(partition, 0))
            if now.get(partition, -1) < floor:
                self.faults.append(f"partition {partition}: committed {floor}, then {now.get(partition)}")
        self.offsets.update(now)
        self.looks += 1

    def acknowledged(self) -> dict[int, int]:
        """For each partition, the highest offset whose commit was acknowledged to a member."""
        offsets: dict[int, int] = {}
        for member in self._members:
            for partition, offset in dict(member.committed).items():
                offsets[partition] = max(offset, offsets.get(partition, 0))
        return offsets

    def wait_look(self, timeout_s: float = 20) -> None:
        """Wait until the server has answered a question that was asked after this call."""
        looks = self.looks
        wait_until(
            lambda: self.looks > looks + 1,
            timeout_s,
            lambda: f"two answers to OffsetFetch, have {self.looks - looks}; last error {self._last_error!r}",
        )

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(20)


def _close_quietly(admin: Admin) -> None:
    with contextlib.suppress(Exception):
        admin.close()


class Story:
    """One group on one topic: starts members, and waits until they share all partitions."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int,
        assignor: str,
        tmp_path: Path,
        replication_factor: int = 1,
        metadata_max_age_ms: int = 300_000,
        session_timeout_ms: int = 6_000,
        protocol: str = "classic",
    ) -> None:
        """assignor, session_timeout_ms: for the classic protocol alone."""
        self.bootstrap, self.topic, self.assignor = bootstrap, topic, assignor
        self.protocol = protocol
        self._metadata_max_age_ms, self._session_timeout_ms = metadata_max_age_ms, session_timeout_ms
        self.partitions = frozenset(range(partitions))
        self.group_id = f"group-of-{topic}"
        self.members: list[Member] = []
        self._tmp_path = tmp_path
        self.admin = Admin(bootstrap)
        self.admin.create_topic(topic, partitions, replication_factor=replication_factor)
        wait_until(lambda: len(self.admin.partitions(topic)) == partitions, 10, f"the leaders of {topic}")
        self.feed = Feed(bootstrap, topic, partitions, metadata_max_age_ms=metadata_max_age_ms)
        self.watch = OffsetWatch(bootstrap, self.group_id, topic, self.members)

    def reconnect(self) -> None:
        """Make a new admin client. Call it after the server was killed; see `Admin`."""
        _close_quietly(self.admin)
        self.admin = until_served(lambda: Admin(self.bootstrap))

    def join(self, name: str, program: Sequence[str] = KAFKA_PYTHON, protocol: str | None = None) -> Member:
        """Start a member. protocol: None stands for the story's."""
        options = {
            "bootstrap": self.bootstrap,
            "topic": self.topic,
            "group_id": self.group_id,
            "assignor": self.assignor,
            "metadata_max_age_ms": self._metadata_max_age_ms,
            "session_timeout_ms": self._session_timeout_ms,
            "protocol": protocol or self.protocol,
        }
        member = Member(name, options, self._tmp_path / f"{self.topic}-{name}.log", program)
        self.members.append(member)
        return member

    def wait_shared(self, *members: Member, timeout_s: float = 20) -> None:
        """Wait until exactly these members share all partitions evenly, each partition owned by one.

        Both the members and the server must report this. (It must be evenly, because cooperative-sticky moves
        partitions in two rebalances, and the group is Stable between them.)
        """
        wait_until(
            lambda: self._shared_by(members) and self._described_as(members),
            timeout_s,
            lambda: f"{[m.name for m in members]} share {self.topic}\n{self.report()}",
        )

    def _shared_by(self, members: Iterable[Member]) -> bool:
        owned = [partition for member in members for partition in member.owned]
        sizes = [len(member.owned) for member in members]
        return sorted(owned) == sorted(self.partitions) and max(sizes) - min(sizes) <= 1

    def _described_as(self, members: tuple[Member, ...]) -> bool:
        return self._described() == {m.name: m.owned for m in members}

    def _described(self) -> dict[str, set[int]]:
        """Each member's partitions, as the server describes them; empty unless the group is stable."""
        if self.protocol == "consumer":
            # kafka-python does not know them, and some tests of it run without confluent-kafka.
            from integration.support.consumer_groups import described

            return described(self.bootstrap, self.group_id)
        group = until_served(lambda: self.admin.describe_group(self.group_id))
        if group.state != "Stable":
            return {}
        return {m.client_id: {p for _, p in m.assignment} for m in group.members}

    def wait_consumed(self, timeout_s: float = 20) -> None:
        """Wait until the members, including dead ones, have consumed and committed all records that were
        acknowledged before this call. The feed may go on in its thread meanwhile.
        """
        acknowledged = self.feed.acknowledged.copy()
        wait_until(
            lambda: acknowledged.items() <= self.consumed().items(),
            timeout_s,
            lambda: (
                f"{len(acknowledged)} records consumed, missing: "
                f"{sorted(acknowledged.keys() - self.consumed().keys())[:20]}\n{self.report()}"
            ),
        )
        ends = {p: max(o for q, o in acknowledged if q == p) + 1 for p in self.partitions}
        wait_until(
            lambda: all(self.watch.offsets.get(p, -1) >= end for p, end in ends.items()),
            timeout_s,
            lambda: f"committed offsets {ends}, have {self.watch.offsets}\n{self.report()}",
        )

    def consumed(self) -> dict[tuple[int, int], str]:
        return {(p, offset): value for member in self.members for p, offset, value in list(member.consumed)}

    def add_partitions(self, total: int) -> None:
        """Grow the topic to `total` partitions, and wait until each has a record."""
        self.admin.add_partitions(self.topic, total)
        wait_until(lambda: len(self.admin.partitions(self.topic)) == total, 10, f"{total} leaders")
        self.partitions = frozenset(range(total))
        self.feed.widen(total)
        acknowledged = self.feed.acknowledged
        wait_until(lambda: {p for p, _ in list(acknowledged)} == self.partitions, 20, "a record in each")

    def longest_pause_s(self, since_s: float) -> float:
        """The longest time after `since_s` in which the members got no record from one of the partitions."""
        arrivals = sorted(arrival for member in self.members for arrival in list(member.arrivals))
        pauses = []
        for partition in self.partitions:
            times = [since_s, *(at for at, p in arrivals if p == partition and at >= since_s)]
            pauses += [later - earlier for earlier, later in pairwise([*times, time.monotonic()])]
        return max(pauses)

    def finish(self, timeout_s: float = 20) -> None:
        """Stop the feed and check what must hold at the end of every story."""
        acknowledged = self.feed.stop()
        assert not self.feed.errors, self.feed.errors[:3]
        assert len(acknowledged) >= self.feed.sent > 0
        self.wait_consumed(timeout_s)
        self.watch.wait_look()
        assert self.watch.faults == []
        for generation, owners in self.generations().items():
            owned = [partition for partitions in owners.values() for partition in partitions]
            assert len(owned) == len(set(owned)), f"generation {generation}: {owners}"

    def generations(self) -> dict[int, dict[str, frozenset[int]]]:
        """generation_id -> member -> the partitions that the member owned in that generation."""
        found: dict[int, dict[str, frozenset[int]]] = {}
        for member in self.members:
            for generation, owned in dict(member.generations).items():
                found.setdefault(generation, {})[member.name] = owned
        return found

    def end(self) -> None:
        for member in self.members:
            member.end()
        self.watch.stop()
        self.feed.end()
        _close_quietly(self.admin)

    def report(self) -> str:
        try:
            group: Any = self.admin.describe_group(self.group_id)
        except Exception as error:
            group = repr(error)
        return "\n".join([f"-- group: {group}", *(member.report() for member in self.members)])


@contextlib.contextmanager
def telling(
    bootstrap: str, topic: str, partitions: int, assignor: str, tmp_path: Path, **options: Any
) -> Iterator[Story]:
    story = Story(bootstrap, topic, partitions, assignor, tmp_path, **options)
    try:
        yield story
        story.finish()
    finally:
        story.end()
