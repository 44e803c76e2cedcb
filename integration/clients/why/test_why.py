"""`kshim why`'s story of a group of three clients agrees with the steps of the test and the members' events.

One group of kafka-python, librdkafka and Java members goes through every cause of a rebalance.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.clients.conftest import OPTIONS
from integration.clients.matrix.clients import CLIENTS
from integration.clients.matrix.driver import Driver
from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server
from integration.support.toolchain import or_skip

confluent_kafka = pytest.importorskip("confluent_kafka")

GROUP, TOPIC, OTHER = "readers", "orders", "returns"
PARTITIONS = 6
SESSION_MS = 6_000
SETTLED_S = 40
STALL_MS = 4_000
PYTHON, LIBRDKAFKA, JAVA = "kafka-python", "confluent-kafka", "kafka-clients-4.2"
JOINED, LEFT, EXPIRED = "a member joined", "a member left", "a member's session expired"
CHANGED = "a member joined again with another subscription"
GROWN = "a topic changed, and the leader joined again"
SEEN_WITHIN_MS = 200
"""A client sees its assignment so soon after the time that kshim tells: the median; 20 on a quiet machine."""


class Members:
    """The members of the group, each a driver with one consumer."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.drivers: dict[str, Driver] = {}
        self.seen: list[int] = []
        """How long after kshim's time a client saw its assignment, in ms."""

    def new(self, name: str, client: str, **options: Any) -> None:
        """Start a client, and let it join."""
        self.join(self.start(name, client), **options)

    def start(self, name: str, client: str) -> Driver:
        """Start a client that does not join yet."""
        with or_skip(client):
            command = CLIENTS[client].command()
        first, _, _ = self.server.bootstrap.partition(",")
        driver = self.drivers[name] = Driver(command, first, {})
        driver.hello()
        return driver

    @staticmethod
    def join(driver: Driver, **options: Any) -> None:
        driver.open(name="c", topics=[TOPIC], group=GROUP, session_timeout_ms=SESSION_MS, **options)

    def settle(self, partitions: int = PARTITIONS) -> None:
        """Wait until the members have all partitions, and no rebalance is under way."""

        def is_settled() -> bool:
            owned = [tuple(each) for driver in self.drivers.values() for each in driver.assignment(name="c")]
            if not owned:  # the group may not exist yet
                return False
            known = self.server.why(GROUP)
            is_stable = known["now"]["state"] == "Stable" and not known["now"]["because"]
            return is_stable and len(owned) == len(set(owned)) == partitions

        wait_until(is_settled, SETTLED_S, self._told)

    def _told(self) -> str:
        """Each side's account."""
        owned = {name: driver.assignment(name="c") for name, driver in self.drivers.items()}
        return (
            f"{owned}\n{self.server.why(GROUP)['now']}\n{self.server.why(GROUP)['rebalances'][-1]['story']}"
        )

    def last(self) -> dict[str, Any]:
        """The last rebalance; compares what the clients have seen meanwhile with kshim's times."""
        known: list[dict[str, Any]] = self.server.why(GROUP)["rebalances"]
        given: dict[Any, list[int]] = {}
        for member in (member for each in known for member in each["members"] if member["after"]):
            owned = tuple(sorted((topic, p) for topic, some in member["after"].items() for p in some))
            given.setdefault(owned, []).append(member["assigned_ms"])
        for driver in self.drivers.values():
            for kind, partitions, at_ms in driver.timed_events(name="c"):
                times = given.get(tuple(sorted((topic, partition) for topic, partition in partitions)), [])
                if kind == "assigned" and times:
                    self.seen.append(min((at_ms - time_ms for time_ms in times), key=abs))
        return known[-1]

    def since(self, before: int) -> list[dict[str, Any]]:
        """The rebalances to later generations."""
        found: list[dict[str, Any]] = self.server.why(GROUP)["rebalances"]
        return [each for each in found if each["generation"] > before]


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Members]:
    server = Server(tmp_path / "data", (*OPTIONS, "--brokers", "3")).start()
    admin = Admin(server.bootstrap)
    admin.create_topic(TOPIC, PARTITIONS)
    admin.create_topic(OTHER, 1)
    admin.close()
    members = Members(server)
    yield members
    for driver in members.drivers.values():
        driver.stop()
    server.stop()


def moved_between(rebalance: dict[str, Any], before: str | None, after: str) -> int:
    return sum((each["from"], each["to"]) == (before, after) for each in rebalance["moved"])


def happens(
    members: Members, cause: str, act: Callable[[], object], partitions: int = PARTITIONS
) -> dict[str, Any]:
    """The first rebalance of that cause after `act()`, once the group is settled again."""
    before = members.server.why(GROUP)["now"]["generation"]
    act()

    def of_cause() -> list[dict[str, Any]]:
        return [each for each in members.since(before) if each["cause"] == cause]

    wait_until(
        of_cause, SETTLED_S, lambda: f"{cause}, not {[each['story'] for each in members.since(before)]}"
    )
    members.settle(partitions)
    members.last()
    return of_cause()[0]


def test_each_cause(members: Members, capfd: pytest.CaptureFixture[str]) -> None:
    members.new("python", PYTHON)
    members.settle()
    first = members.since(0)[0]
    python = first["member"]["member_id"]
    assert (first["cause"], first["generation"]) == ("a member joined", 1)

    joined = happens(members, JOINED, lambda: members.new("librdkafka", LIBRDKAFKA))
    rdkafka = joined["member"]["member_id"]
    assert moved_between(joined, python, rdkafka) == PARTITIONS // 2
    assert joined["members"][0]["joined_ms"] >= joined["members"][0]["notified_ms"] >= joined["began_ms"]

    joined = happens(members, JOINED, lambda: members.new("java", JAVA))
    java = joined["member"]["member_id"]
    assert {moved["to"] for moved in joined["moved"]} >= {java}

    left = happens(members, LEFT, lambda: members.drivers.pop("librdkafka").close(name="c"))
    assert left["member"]["member_id"] == rdkafka
    assert {moved["from"] for moved in left["moved"]} >= {rdkafka}
    assert [each["gone"] for each in left["members"] if each["member_id"] == rdkafka] == ["left"]

    crashing = happens(members, JOINED, lambda: members.new("crashing", LIBRDKAFKA))["member"]["member_id"]
    expired = happens(members, EXPIRED, lambda: members.drivers.pop("crashing").crash())
    assert expired["member"]["member_id"] == crashing
    (dead,) = [each for each in expired["members"] if each["gone"] == "expired"]
    assert dead["gone_ms"] - dead["heard_ms"] == SESSION_MS
    unowned = [moved["unowned_ms"] for moved in expired["moved"] if moved["from"] == crashing]
    assert unowned
    assert min(unowned) >= SESSION_MS

    late = members.start("librdkafka", LIBRDKAFKA)
    slow = happens(members, JOINED, lambda: stall_and_join(members, late))
    (stalled,) = [each for each in slow["members"] if each["member_id"] == java]
    assert STALL_MS - 1_000 <= stalled["joined_ms"] - slow["began_ms"] <= STALL_MS + 1_000
    assert any(f"the last was {stalled['name']}" in sentence for sentence in slow["story"])

    happens(members, JOINED, lambda: members.new("static", LIBRDKAFKA, instance="i"))
    generation = members.server.why(GROUP)["now"]["generation"]
    members.drivers.pop("static").crash()
    members.new("static", LIBRDKAFKA, instance="i")
    members.settle()
    members.drivers["static"].events(name="c")  # of an assignment without a rebalance
    known = members.server.why(GROUP)
    assert known["now"]["generation"] == generation
    assert [each["event"] for each in known["incidents"]] == ["static member replaced"]

    # kafka-python may lose its assignment when it has to join again at once.
    happens(members, LEFT, lambda: members.drivers.pop("python").close(name="c"))

    with ChangingConsumer(members) as change:
        before = members.server.why(GROUP)["now"]["generation"]
        change()
        wait_until(
            lambda: (
                [each["detail"] for each in members.since(before) if each["cause"] == CHANGED]
                == [f"+{OTHER}"]
            ),
            SETTLED_S,
            "a member with another subscription",
        )
    members.settle()

    grown = happens(members, GROWN, lambda: members.drivers["java"].grow_topic(topic=TOPIC, partitions=8), 8)
    assert grown["detail"] == f"{TOPIC} has 8 partitions, and had {PARTITIONS}"

    generation = members.server.why(GROUP)["now"]["generation"]
    moved_to(members)
    assert "coordinator moved" in [each["event"] for each in members.server.why(GROUP)["incidents"]]
    assert members.server.why(GROUP)["now"]["generation"] == generation

    with capfd.disabled():
        print(f"\nclients saw their assignments {sorted(members.seen)} ms after kshim's times")
        for each in members.server.why(GROUP)["rebalances"]:
            print(f"generation {each['generation']}")
            print("\n".join(f"  {sentence}" for sentence in each["story"]))
    assert min(members.seen) >= -1, "before kshim says so"
    assert statistics.median(members.seen) <= SEEN_WITHIN_MS


def stall_and_join(members: Members, late: Driver) -> None:
    """The Java member works on while another one joins."""
    members.drivers["java"].stall(name="c", ms=STALL_MS)
    members.join(late)


def moved_to(members: Members) -> None:
    """Move the group to another coordinator, and have the members commit there."""
    for node_id in (1, 2, 3):
        members.server.steer("move-coordinator", GROUP, "--to", node_id)
    time_of_a_heartbeat_s = SESSION_MS / 4000
    done = time.monotonic() + 2 * time_of_a_heartbeat_s
    wait_until(lambda: time.monotonic() > done, SETTLED_S, "two heartbeats")


class ChangingConsumer:
    """A librdkafka member of the test's own process, whose subscription the block can change."""

    def __init__(self, members: Members) -> None:
        self._members = members
        settings = {
            "bootstrap.servers": members.server.bootstrap,
            "group.id": GROUP,
            "client.id": "changing",
            "session.timeout.ms": SESSION_MS,
            "partition.assignment.strategy": "range",
        }
        self._consumer = confluent_kafka.Consumer(settings)
        self._consumer.subscribe([TOPIC])
        self._owned = 0
        self._ends = threading.Event()
        self._change = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)

    def _poll(self) -> None:
        while not self._ends.is_set():
            if self._change.is_set():
                self._change.clear()
                self._consumer.subscribe([TOPIC, OTHER])
            self._consumer.poll(0.05)
            self._owned = len(self._consumer.assignment())
        self._consumer.close()

    def __enter__(self) -> Callable[[], None]:
        self._thread.start()
        wait_until(lambda: self._owned, SETTLED_S, "the member that will change")
        known = self._members.server.why(GROUP)["now"]
        assert known["state"]
        wait_until(
            lambda: not self._members.server.why(GROUP)["now"]["because"],
            SETTLED_S,
            "the end of its rebalance",
        )
        return self._change.set

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join(30)
