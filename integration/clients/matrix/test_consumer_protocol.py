"""Groups of the consumer protocol (KIP-848): static members, and members of both protocols in one group."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from integration.clients.matrix.clients import CLIENTS
from integration.clients.matrix.driver import CLASSIC, CONSUMER, ClientError, Driver
from integration.clients.matrix.members import PARTITIONS, SETTLED_S, join, send_to_each, wait_for
from integration.clients.matrix.records import SILENCE_MS, send, values
from integration.support.awaiting import wait_until

NewDriver = Callable[[str], Driver]


@pytest.fixture
def shared(driver: Driver, topic: str) -> str:
    driver.create_topic(topic=topic, partitions=PARTITIONS)
    return topic


@pytest.mark.protocol(CONSUMER)
def test_members_share_and_take_over_uniformly(driver: Driver, second: Driver, shared: str) -> None:
    join(driver, shared, assignors=["uniform"])
    wait_for([PARTITIONS], driver)
    join(second, shared, assignors=["uniform"])
    wait_for([3, 3], driver, second)
    second.close(name="c")
    wait_for([PARTITIONS], driver)


@pytest.mark.protocol(CONSUMER)
def test_a_static_member_that_was_closed_has_its_partitions_again(
    driver: Driver, second: Driver, shared: str
) -> None:
    join(driver, shared, instance="a")
    join(second, shared, instance="b")
    wait_for([3, 3], driver, second)
    before = second.assignment(name="c")
    driver.events(name="c")
    second.close(name="c")
    join(second, shared, instance="b")
    wait_for([3, 3], driver, second)
    assert second.assignment(name="c") == before
    assert driver.events(name="c") == []


@pytest.mark.protocol(CONSUMER)
def test_a_second_static_member_of_a_name_is_refused(driver: Driver, second: Driver, shared: str) -> None:
    """With the classic protocol it would take the first one's place."""
    join(driver, shared, instance="a")
    wait_for([PARTITIONS], driver)
    join(second, shared, instance="a")

    def is_refused() -> bool:
        try:
            values(second, 1, timeout_ms=SILENCE_MS)
        except ClientError:
            return True
        return False

    wait_until(is_refused, SETTLED_S, "the second member is refused")
    send(driver, shared, "a")
    assert values(driver, 1) == ["a"]


@pytest.mark.protocol(CONSUMER)
def test_a_member_that_crashed_with_its_name_is_replaced_after_its_session(
    driver: Driver, new_driver: NewDriver, client: str, shared: str
) -> None:
    second = new_driver(client)
    join(driver, shared, instance="a")
    join(second, shared, instance="b")
    wait_for([3, 3], driver, second)
    second.crash()
    wait_for([PARTITIONS], driver)
    again = new_driver(client)
    join(again, shared, instance="b")
    wait_for([3, 3], driver, again)


@pytest.mark.protocol(CONSUMER, CLASSIC)
def test_a_group_changes_its_protocol_with_its_members(
    new_driver: NewDriver, client: str, other: str, topic: str
) -> None:
    """From classic to consumer and back while the group consumes: each record comes once."""
    protocols = {CLIENTS[client].protocol: client, CLIENTS[other].protocol: other}
    old, new = new_driver(protocols[CLASSIC]), new_driver(protocols[CONSUMER])
    old.create_topic(topic=topic, partitions=PARTITIONS)
    join(old, topic)
    wait_for([PARTITIONS], old)
    _consume_and_commit(topic, "a", {old: PARTITIONS})
    join(new, topic)
    wait_for([3, 3], old, new)
    _consume_and_commit(topic, "b", {old: 3, new: 3})
    old.close(name="c")
    wait_for([PARTITIONS], new)
    _consume_and_commit(topic, "c", {new: PARTITIONS})
    join(old, topic)
    wait_for([3, 3], old, new)
    _consume_and_commit(topic, "d", {old: 3, new: 3})
    new.close(name="c")
    wait_for([PARTITIONS], old)
    _consume_and_commit(topic, "e", {old: PARTITIONS})


def _consume_and_commit(topic: str, letter: str, members: dict[Driver, int]) -> None:
    """Send a record to each partition; each member takes and commits its share."""
    sent = send_to_each(next(iter(members)), topic, letter)
    taken = [value for driver, count in members.items() for value in values(driver, count)]
    assert sorted(taken) == sent
    for driver in members:
        driver.commit(name="c")
