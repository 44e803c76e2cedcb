"""The words of `kshim why` after a client has died, stood still, polled too late, or was closed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from integration.clients.conftest import OPTIONS
from integration.clients.matrix.clients import CLIENTS
from integration.clients.matrix.driver import Driver
from integration.support.awaiting import wait_until
from integration.support.clients import Admin
from integration.support.server import Server
from integration.support.toolchain import or_skip

SESSION_MS, MOST_POLL_MS = 3_000, 3_500
STALL_MS = 10_000
SETTLED_S = 40
PARTITIONS = 4
ALL = ("kafka-python", "confluent-kafka", "kafka-clients-4.4")
NUMBER = re.compile(r"\d+\.\d+ s")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("stories") / "data", OPTIONS).start()
    yield server
    assert server.stop() == 0, server.report()


class Pair:
    """A group of two members of the same client: one stays, one has the story."""

    def __init__(self, server: Server, group: str, client: str) -> None:
        self.server, self.group = server, group
        self.topic = f"{group}-topic"
        admin = Admin(server.bootstrap)
        admin.create_topic(self.topic, PARTITIONS)
        admin.close()
        self.client = client
        with or_skip(client):
            self._command = CLIENTS[client].command()
        self.drivers: list[Driver] = []
        self.stays = self.joins()
        self.settle(1)
        self.other = self.joins()
        self.settle(2)

    def joins(self, instance: str | None = None) -> Driver:
        """Start one more member."""
        driver = Driver(self._command, self.server.bootstrap, {})
        self.drivers.append(driver)
        driver.open(
            name="c",
            topics=[self.topic],
            group=self.group,
            session_timeout_ms=SESSION_MS,
            max_poll_interval_ms=MOST_POLL_MS,
            instance=instance,
        )
        return driver

    def settle(self, members: int) -> None:
        """Wait until the group is stable with so many members."""

        def is_settled() -> bool:
            if not self.drivers[-1].assignment(name="c"):  # the group may not exist yet
                return False
            now = self.server.why(self.group)["now"]
            return now is not None and now["state"] == "Stable" and len(now["members"]) == members

        wait_until(is_settled, SETTLED_S, self.server.report)

    def story(self, cause: str) -> list[str]:
        """The sentences of the last rebalance with this cause, and the advice; durations are left out."""
        for rebalance in reversed(self.server.why(self.group)["rebalances"]):
            if rebalance["cause"] == cause:
                return [NUMBER.sub("… s", text) for text in (*rebalance["story"], rebalance["advice"])]
        return []

    def waits_for(self, sentence: str, cause: str) -> list[str]:
        """Wait until the story of a cause has a sentence, and return the story."""

        def has_it() -> bool:
            return any(sentence in each for each in self.story(cause))

        wait_until(has_it, SETTLED_S, lambda: f"{sentence!r} in {self.story(cause)}")
        return self.story(cause)


@pytest.fixture(params=ALL)
def pair(server: Server, request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]) -> Iterator[Pair]:
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name)
    pair = Pair(server, name, request.param)
    yield pair
    with capfd.disabled():
        for rebalance in server.why(pair.group)["rebalances"][2:]:
            print("\n  ".join([f"\n{request.node.name}", *rebalance["story"], rebalance["advice"]]))
    for driver in pair.drivers:
        driver.stop()


EXPIRES = " was not heard of any more, and its session expired, … s after its last sign of life."
EXPIRED, JOINED, LEFT = "a member's session expired", "a member joined", "a member left"


def test_a_process_that_is_killed(pair: Pair) -> None:
    pair.other.crash()
    story = pair.waits_for("was not heard of any more", EXPIRED)
    assert story[1].endswith(EXPIRES)
    assert story[2].startswith("The connection of ")
    assert story[2].endswith(
        " had been closed: its process was killed, or ended without closing its consumer."
    )
    assert story[-1].startswith("Close the consumer when the program ends, also on SIGTERM")


def test_a_process_that_stands_still_and_goes_on(pair: Pair) -> None:
    pair.other.freeze()
    story = pair.waits_for("was not heard of any more", EXPIRED)
    assert story[1].endswith(EXPIRES)
    assert story[2].startswith("The connection of ")
    assert story[2].endswith(
        " stayed open, but silent: its process stood still, or the network loses what it sends."
    )
    assert story[-1].startswith("Look for what stopped its process")
    pair.other.thaw()
    if pair.client == "confluent-kafka":
        pair.settle(2)  # librdkafka may end the connection whose heartbeat was late, and join on another one
        return
    story = pair.waits_for("It is the same program", JOINED)
    assert story[1] == "It is the same program that lost its session … s before."
    assert story[-1].startswith("Look for what stopped its process")


def test_a_program_that_polls_too_late(pair: Pair) -> None:
    pair.other.stall(name="c", ms=STALL_MS)
    exceeded = "probably exceeded max.poll.interval.ms, or unsubscribed."
    story = pair.waits_for("stayed connected", LEFT)
    assert story[1].endswith(" left.")
    assert story[2].endswith(f" stayed connected: its program {exceeded}")
    assert story[-1].startswith("If its program took too long between two polls: set max.poll.records lower")
    story = pair.waits_for("It is the same program", JOINED)
    assert story[1] == f"It is the same program that left … s before, and stayed connected: it {exceeded}"
    assert story[-1].startswith("If its program took too long between two polls: set max.poll.records lower")


def test_a_consumer_that_is_closed(pair: Pair) -> None:
    pair.other.close(name="c")
    story = pair.waits_for(" left.", LEFT)
    assert story[1].endswith(" left.")
    assert story[-1].startswith("Nothing, if it was to end. A member that restarts within session.timeout.ms")


@pytest.mark.parametrize("pair", ["confluent-kafka", "kafka-clients-4.4"], indirect=True)
def test_two_programs_with_one_instance_id(pair: Pair) -> None:
    pair.joins("till")
    pair.settle(3)
    pair.joins("till")

    def reported() -> list[str]:
        return [each["text"] for each in pair.server.why(pair.group)["incidents"]]

    wait_until(lambda: any("two live members" in each for each in reported()), SETTLED_S, reported)
