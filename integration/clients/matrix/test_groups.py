"""Groups: who has which partitions after members join, leave, crash, stall, and come back."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from integration.clients.matrix.clients import common_assignors
from integration.clients.matrix.coming_back import next_when_back
from integration.clients.matrix.driver import ClientError, Driver
from integration.clients.matrix.members import (
    PARTITIONS,
    SESSION_TIMEOUT_MS,
    SETTLED_S,
    join,
    send_to_each,
    wait_for,
)
from integration.clients.matrix.records import SILENCE_MS, send, values
from integration.support.awaiting import wait_until

IDLE_SESSION_MS = 16_000
IDLE_HEARTBEAT_S = IDLE_SESSION_MS / 4000
"""The interval that the drivers choose."""
AT_ONCE_MS = 1_500
"""Less than half of it."""


@pytest.fixture
def shared(driver: Driver, topic: str) -> str:
    driver.create_topic(topic=topic, partitions=PARTITIONS)
    return topic


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_members_share_and_take_over(driver: Driver, second: Driver, shared: str, assignor: str) -> None:
    join(driver, shared, assignors=[assignor])
    wait_for([PARTITIONS], driver)
    join(second, shared, assignors=[assignor])
    wait_for([3, 3], driver, second)
    second.close(name="c")
    wait_for([PARTITIONS], driver)


def test_a_new_cooperative_member_is_given_nothing_first(driver: Driver, second: Driver, shared: str) -> None:
    """Its listener is called twice: with no partitions, and when the other member has given some up.

    If its SyncGroup arrives after the other member has joined again, both brokers send it back, and its
    listener is called once. So it may try three times.
    """
    options = {"assignors": ["cooperative-sticky"]}
    join(driver, shared, **options)
    wait_for([PARTITIONS], driver)
    given: list[list[int]] = []
    while [0, 3] not in given and len(given) < 3:
        join(second, shared, **options)
        wait_for([3, 3], driver, second)
        events = second.events(name="c")
        given.append([len(partitions) for kind, partitions in events if kind == "assigned"])
        second.close(name="c")
        wait_for([PARTITIONS], driver)
    assert given[-1] == [0, 3], given


def test_a_crashed_member_is_replaced(driver: Driver, second: Driver, shared: str) -> None:
    join(driver, shared)
    join(second, shared)
    wait_for([3, 3], driver, second)
    second.crash()
    wait_for([PARTITIONS], driver)


def test_a_member_with_nothing_to_do_is_not_held_up(driver: Driver, shared: str) -> None:
    """Whatever its heartbeats wait for, records come at once, and it leaves at once."""
    driver.open(name="c", topics=[shared], group=shared, session_timeout_ms=IDLE_SESSION_MS)
    wait_for([PARTITIONS], driver)
    began_s, sent = time.monotonic(), 0
    while time.monotonic() - began_s < 2 * IDLE_HEARTBEAT_S:
        send(driver, shared, str(sent))
        assert values(driver, 1, timeout_ms=AT_ONCE_MS) == [str(sent)]
        sent += 1
    closing_s = time.monotonic()
    driver.close(name="c")
    assert time.monotonic() - closing_s < AT_ONCE_MS / 1000


def test_records_are_consumed_once_while_members_come_and_go(
    driver: Driver, second: Driver, shared: str
) -> None:
    join(driver, shared, auto_commit=True)
    wait_for([PARTITIONS], driver)
    sent = send_to_each(driver, shared, "a")
    assert sorted(values(driver, PARTITIONS)) == sent
    driver.commit(name="c")
    join(second, shared, auto_commit=True)
    wait_for([3, 3], driver, second)
    sent = send_to_each(driver, shared, "b")
    assert sorted(values(driver, 3) + values(second, 3)) == sent


def test_a_listener_commits_before_partitions_are_given_up(
    driver: Driver, second: Driver, shared: str
) -> None:
    join(driver, shared, commit_on_revoke=True)
    wait_for([PARTITIONS], driver)
    sent = send_to_each(driver, shared, "a")
    assert sorted(values(driver, PARTITIONS)) == sent
    join(second, shared)
    wait_for([3, 3], driver, second)
    sent = send_to_each(driver, shared, "b")
    assert sorted(values(driver, 3) + values(second, 3)) == sent


def test_a_listener_is_called(driver: Driver, shared: str) -> None:
    join(driver, shared)
    wait_for([PARTITIONS], driver)
    partitions = [[shared, number] for number in range(PARTITIONS)]
    assert ["assigned", partitions] in driver.events(name="c")
    driver.close(name="c")


def test_a_static_member_comes_back_without_a_rebalance(
    new_driver: Callable[[str], Driver], client: str, driver: Driver, shared: str
) -> None:
    join(driver, shared, instance="a")
    second = new_driver(client)
    join(second, shared, instance="b")
    wait_for([3, 3], driver, second)
    before = second.assignment(name="c")
    driver.events(name="c")
    again = new_driver(client)
    again.hello()  # it runs before the session begins to run out: some take seconds to start
    second.crash()
    join(again, shared, instance="b")
    wait_for([3, 3], driver, again)
    assert again.assignment(name="c") == before
    assert driver.events(name="c") == []


def test_a_static_member_is_fenced_by_another_of_its_name(
    driver: Driver, second: Driver, shared: str
) -> None:
    join(driver, shared, instance="a")
    wait_for([PARTITIONS], driver)
    join(second, shared, instance="a")
    wait_for([PARTITIONS], second)

    def is_told() -> bool:
        try:
            values(driver, 1, timeout_ms=SILENCE_MS)
        except ClientError:
            return True
        return False

    wait_until(is_told, SETTLED_S, "the first member is told")
    driver.crash()  # one that polls on may join again, and fence the second in turn
    send(second, shared, "a")
    assert next_when_back(second) == ["a"]


def test_a_pattern_finds_topics_that_appear(driver: Driver, topic: str) -> None:
    driver.create_topic(topic=f"{topic}-one")
    driver.open(name="c", pattern=f"^{topic}-.*", group=topic)
    wait_until(lambda: len(driver.assignment(name="c")) == 1, SETTLED_S, "the first topic")
    driver.create_topic(topic=f"{topic}-two", partitions=2)
    wait_until(lambda: len(driver.assignment(name="c")) == 3, SETTLED_S, "the second topic")
    send(driver, f"{topic}-two", "found", partition=1)
    assert values(driver, 1) == ["found"]


def test_a_topic_that_grows(driver: Driver, topic: str) -> None:
    driver.create_topic(topic=topic, partitions=1)
    join(driver, topic)
    wait_for([1], driver)
    driver.grow_topic(topic=topic, partitions=4)
    wait_for([4], driver)


def test_a_member_that_does_not_poll_is_replaced(driver: Driver, second: Driver, shared: str) -> None:
    join(driver, shared)
    join(second, shared, max_poll_interval_ms=SESSION_TIMEOUT_MS)
    wait_for([3, 3], driver, second)
    second.stall(name="c", ms=3 * SESSION_TIMEOUT_MS)
    wait_for([PARTITIONS], driver)
    wait_for([3, 3], driver, second)


def test_members_of_different_clients(
    new_driver: Callable[[str], Driver], client: str, other: str, topic: str
) -> None:
    common, why_no_more = common_assignors(client, other)
    if not common:
        pytest.skip(why_no_more)
    driver, second = new_driver(client), new_driver(other)
    driver.create_topic(topic=topic, partitions=PARTITIONS)
    for assignors in common:
        group_id = "-".join((topic, *assignors))
        for each, assignor in zip((driver, second), assignors, strict=True):
            join(each, topic, group=group_id, assignors=[assignor])
        wait_for([3, 3], driver, second)
        driver.close(name="c")
        wait_for([PARTITIONS], second)
        second.close(name="c")
