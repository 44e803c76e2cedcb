"""Members of librdkafka (confluent-kafka) hear of a rebalance when it begins, not by their next heartbeat.

But from SyncGroup's answer until its application has taken the assignment, librdkafka ignores that the group
rebalances, with Apache Kafka as well, and asks again with its next heartbeat. In a cooperative group the
member that gives up partitions may join again just then. So here it waits until the other one is through.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server

confluent_kafka = pytest.importorskip("confluent_kafka")
pytestmark = pytest.mark.kshim_only("heartbeats are parked")

PARTITIONS = 4
HEARTBEAT_S = 10
AT_ONCE_S = HEARTBEAT_S / 2


class Member:
    """A consumer that polls in a thread of its own."""

    def __init__(
        self, bootstrap: str, group_id: str, topic: str, assignor: str, settled: threading.Event
    ) -> None:
        """settled: is set when its application has taken an assignment, which may be empty."""
        self.partitions = 0
        self._settled = settled
        self.may_give_up = threading.Event()
        """It gives up partitions only when this is set."""
        self.may_give_up.set()
        self._assigned = False
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group_id,
                "partition.assignment.strategy": assignor,
                "heartbeat.interval.ms": HEARTBEAT_S * 1000,
                "session.timeout.ms": 6 * HEARTBEAT_S * 1000,
            }
        )
        self._consumer.subscribe([topic], on_assign=self._on_assign, on_revoke=self._on_revoke)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def _on_assign(self, *_: object) -> None:
        self._assigned = True

    def _on_revoke(self, *_: object) -> None:
        self.may_give_up.wait(HEARTBEAT_S)

    def _poll(self) -> None:
        while not self._stopping.is_set():
            self._consumer.poll(0.05)
            if self._assigned:
                self._settled.set()
            self.partitions = len(self._consumer.assignment())
        self._consumer.close()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(30)


@pytest.fixture
def debugged(new_server: Callable[..., Server]) -> Server:
    """Its log has a line for each request."""
    return new_server("--log-level", "debug").start()


@pytest.fixture
def new_member(debugged: Server) -> Iterator[Callable[[str, threading.Event], Member]]:
    members: list[Member] = []

    def new(assignor: str, settled: threading.Event) -> Member:
        members.append(Member(debugged.bootstrap, "g", "t", assignor, settled))
        return members[-1]

    yield new
    for member in members:
        member.stop()


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_second_member_has_its_share_at_once(
    debugged: Server, new_member: Callable[[str, threading.Event], Member], assignor: str
) -> None:
    admin = Admin(debugged.bootstrap)
    admin.create_topic("t", PARTITIONS)
    admin.close()
    first = new_member(assignor, threading.Event())

    def heartbeats() -> int:
        return sum("Heartbeat (12)" in line for line in debugged.log)

    # Requests for offsets follow the first heartbeat of a generation, so it is not parked for long.
    wait_until(lambda: heartbeats() == 2, 3 * HEARTBEAT_S, "the second heartbeat")
    settled = threading.Event()
    if assignor == "cooperative-sticky":
        first.may_give_up = settled
    second = new_member(assignor, settled)

    def shared() -> tuple[int, int]:
        return first.partitions, second.partitions

    wait_until(lambda: shared() == (2, 2), AT_ONCE_S, lambda: f"two each, not {shared()}")
