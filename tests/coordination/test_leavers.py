"""Members that leave are reported if they stay connected."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.task import Clock

from kshim.callers import RequestContext
from kshim.callers.context import Client, Contact, NamedMember
from kshim.configs.endpoint import Endpoint
from kshim.coordination.groups.rebalance_record import Departure, Part, Rebalance, RebalanceBegan, Who
from kshim.coordination.groups.trigger import Gone, LastContact, Trigger
from kshim.coordination.leavers import CLOSES_S, MOST, MOST_DEPARTURES, Leavers

AT = Endpoint("127.0.0.1", 9)
MEMBER = NamedMember("g", "m")


class World:
    def __init__(self) -> None:
        self.clock = Clock()
        self.reported: list[str] = []
        self.leavers = Leavers(self.clock, lambda report: self.reported.append(str(report)))

    def context(self, member: NamedMember | None = MEMBER) -> Any:
        client = Client("/10.0.0.7", AT, AT, member=member)
        return RequestContext(5, "billing", "/10.0.0.7", AT, client=client)


@pytest.fixture
def world() -> World:
    return World()


def test_a_client_that_closes_is_not_reported(world: World) -> None:
    context = world.context()
    world.leavers.left(context, "g", "m")
    world.clock.advance(CLOSES_S / 2)
    context.client.ended(Contact.CLOSED)
    world.clock.advance(CLOSES_S)
    assert world.reported == []


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("", ": its program probably exceeded max.poll.interval.ms, or it unsubscribed"),
        ("consumer poll timeout has expired.", '; it said "consumer poll timeout has expired."'),
    ],
)
def test_a_client_that_stays_connected_is_reported(world: World, reason: str, words: str) -> None:
    world.leavers.left(world.context(), "g", "m", reason)
    world.clock.advance(CLOSES_S - 0.1)
    assert world.reported == []
    world.clock.advance(0.1)
    left = "group g: m (client billing at 10.0.0.7) left, but is still connected"
    assert world.reported == [left + words]


@pytest.mark.parametrize("member", [None, NamedMember("g", "other"), NamedMember("other", "m")])
def test_an_administrator_is_not_reported(world: World, member: NamedMember | None) -> None:
    world.leavers.left(world.context(member), "g", "m")
    world.clock.advance(CLOSES_S)
    assert world.reported == []


def test_there_is_a_limit(world: World) -> None:
    for _ in range(MOST + 5):
        world.leavers.left(world.context(), "g", "m")
    world.clock.advance(CLOSES_S)
    assert len(world.reported) == MOST
    world.leavers.left(world.context(), "g", "m")
    world.clock.advance(CLOSES_S)
    assert len(world.reported) == MOST + 1


# ---- what connections say about members that are gone


def gone(how: Gone, member: NamedMember = MEMBER) -> Rebalance:
    """The record of a rebalance because a member is gone."""
    who = Who(member.member_id, "billing", "/10.0.0.7")
    part = Part(who, gone=how, gone_ms=7_000)
    trigger = Trigger.SESSION_EXPIRED if how is Gone.EXPIRED else Trigger.MEMBER_LEFT
    return Rebalance(member.group_id, trigger, (who,), "", "", 7_000, parts={who.member_id: part})


def joined(member: NamedMember) -> Rebalance:
    who = Who(member.member_id, "billing", "/10.0.0.7")
    return Rebalance("g", Trigger.MEMBER_JOINED, (who,), "", "", 9_000)


def contact(record: Rebalance) -> LastContact | None:
    (part,) = record.parts.values()
    return None if part.departure is None else part.departure.contact


@pytest.mark.parametrize("how", [Contact.CLOSED, Contact.LOST, Contact.ENDED])
def test_a_connection_that_ended_before_the_session(world: World, how: Contact) -> None:
    client = world.context().client
    world.leavers.speaks(client, *MEMBER)
    client.ended(how)
    record = gone(Gone.EXPIRED)
    world.leavers.complete(record)
    assert contact(record) == how.value


def test_a_connection_that_is_open_and_silent(world: World) -> None:
    client = world.context().client
    world.leavers.speaks(client, *MEMBER)
    record = gone(Gone.EXPIRED)
    world.leavers.complete(RebalanceBegan("g", record.trigger, record.members))
    client.ended(Contact.CLOSED)  # before the others have joined
    world.leavers.complete(record)
    assert contact(record) is LastContact.OPEN


def test_a_connection_that_another_has_followed(world: World) -> None:
    first, second = world.context().client, world.context().client
    world.leavers.speaks(first, *MEMBER)
    first.ended(Contact.CLOSED)
    world.leavers.speaks(second, *MEMBER)
    record = gone(Gone.EXPIRED)
    world.leavers.complete(record)
    assert contact(record) is LastContact.OPEN


def test_a_member_without_a_connection(world: World) -> None:
    """Its connection may have been one of the server before its restart."""
    record = gone(Gone.EXPIRED)
    world.leavers.complete(record)
    assert contact(record) is None


def test_a_record_that_is_reported_learns_later_that_its_member_stayed(world: World) -> None:
    context = world.context()
    world.leavers.speaks(context.client, *MEMBER)
    world.leavers.left(context, *MEMBER)
    record = gone(Gone.LEFT)
    world.leavers.complete(record)
    assert contact(record) is None
    world.clock.advance(CLOSES_S)
    assert contact(record) is LastContact.OPEN


@pytest.mark.parametrize("how", [Gone.LEFT, Gone.EXPIRED])
@pytest.mark.parametrize("new", [NamedMember("g", "n"), MEMBER])
def test_a_client_that_comes_back(world: World, how: Gone, new: NamedMember) -> None:
    """With another member id, or with the same one, as in the consumer protocol."""
    client = world.context().client
    world.leavers.speaks(client, *MEMBER)
    world.leavers.complete(gone(how))
    world.leavers.joins(client, "g", "" if new is not MEMBER else "m")
    client.member = new
    record = joined(new)
    world.leavers.complete(record)
    assert record.came_back == Departure(how, 7_000, LastContact.OPEN)
    again = joined(new)
    world.leavers.complete(again)
    assert again.came_back is None


def test_another_client_has_not_come_back(world: World) -> None:
    world.leavers.complete(gone(Gone.LEFT))
    client = world.context(None).client
    world.leavers.joins(client, "g", "")
    client.member = NamedMember("g", "n")
    record = joined(client.member)
    world.leavers.complete(record)
    assert record.came_back is None


def test_departures_are_bounded(world: World) -> None:
    for number in range(MOST_DEPARTURES + 10):
        world.leavers.complete(gone(Gone.LEFT, NamedMember("g", str(number))))
    assert len(world.leavers._departures) == MOST_DEPARTURES


def test_ended_connections_are_forgotten(world: World) -> None:
    for _ in range(10):
        client = world.context().client
        world.leavers.speaks(client, *MEMBER)
        client.ended(Contact.CLOSED)
    assert not world.leavers._open
