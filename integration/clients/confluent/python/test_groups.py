"""Groups of two: both members' callbacks and the broker agree on which partitions each owns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from integration.clients.confluent.python.clients import (
    ANSWER_S,
    QUIET,
    VERSION,
    name_of,
    needs,
    outcome,
    poll_until,
    receive,
    send,
)
from integration.support.awaiting import wait_until
from integration.support.server import Server

PARTITIONS = 4
COOPERATIVE = "cooperative-sticky"
QUICK = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 200}


class Member:
    """A consumer, and what its callbacks reported."""

    def __init__(self, consumer: Consumer, topic: str) -> None:
        self.consumer = consumer
        self.owned: set[int] = set()
        self.assignments = 0
        self.revocations: list[set[int]] = []
        consumer.subscribe([topic], on_assign=self._on_assign, on_revoke=self._on_revoke)

    def _on_assign(self, _: Consumer, partitions: list[Any]) -> None:
        self.owned |= {partition.partition for partition in partitions}
        self.assignments += 1

    def _on_revoke(self, _: Consumer, partitions: list[Any]) -> None:
        taken = {partition.partition for partition in partitions}
        self.owned -= taken
        self.revocations.append(taken)


def share(*members: Member) -> bool:
    """Each partition has one owner, and all own equally many; the consumers themselves say the same."""
    owned = [sorted(member.owned) for member in members]
    told = [sorted(tp.partition for tp in member.consumer.assignment()) for member in members]
    sizes = {len(partitions) for partitions in owned}
    return owned == told and sizes == {PARTITIONS // len(members)} and len(set().union(*owned)) == PARTITIONS


@pytest.fixture
def join(
    new_consumer: Callable[..., Consumer], new_topic: Callable[..., str], group_id: str
) -> Callable[..., Member]:
    """Makes members of one group on one topic."""
    topic = new_topic(PARTITIONS)
    return lambda **config: Member(new_consumer(group_id, **QUICK, **config), topic)


@pytest.mark.parametrize("assignor", ["range", "roundrobin", COOPERATIVE])
def test_two_share_and_one_leaves(
    assignor: str, join: Callable[..., Member], admin: AdminClient, producer: Producer, group_id: str
) -> None:
    options = {"partition_assignment_strategy": assignor}
    first = join(**options, client_id="first")
    poll_until(lambda: share(first), first.consumer, what="one owns all")
    second = join(**options, client_id="second")
    both = first.consumer, second.consumer
    poll_until(lambda: share(first, second), *both, what="two share")
    assert len(set().union(*first.revocations)) == (
        PARTITIONS // 2 if assignor == COOPERATIVE else PARTITIONS
    )

    described = outcome(admin.describe_consumer_groups([group_id])[group_id])
    assert (described.state.name, described.partition_assignor) == ("STABLE", assignor)
    assert {
        member.client_id: {tp.partition for tp in member.assignment.topic_partitions}
        for member in described.members
    } == {"first": first.owned, "second": second.owned}
    assert {member.member_id for member in described.members} == {consumer.memberid() for consumer in both}
    assert first.consumer.consumer_group_metadata() is not None

    topic = first.consumer.assignment()[0].topic
    for partition in range(PARTITIONS):
        send(producer, topic, str(partition), partition=partition)
    for member in (first, second):
        came = receive(member.consumer, PARTITIONS // 2)
        assert {int(message.value()) for message in came} == member.owned

    second.consumer.close()
    poll_until(lambda: share(first), first.consumer, what="one owns all again")


def test_a_member_that_unsubscribes_leaves(
    join: Callable[..., Member], admin: AdminClient, group_id: str
) -> None:
    member = join()
    poll_until(lambda: share(member), member.consumer, what="one owns all")
    member.consumer.unsubscribe()

    def state() -> str:
        return str(outcome(admin.describe_consumer_groups([group_id])[group_id]).state.name)

    poll_until(lambda: state() == "EMPTY", member.consumer, what="the group is empty")
    assert member.consumer.assignment() == []


def test_a_static_member_that_comes_back_disturbs_nobody(join: Callable[..., Member]) -> None:
    stays, returns = join(), join(group_instance_id="returns")
    poll_until(lambda: share(stays, returns), stays.consumer, returns.consumer, what="two share")
    assignments, owned = stays.assignments, set(returns.owned)
    returns.consumer.close()
    again = join(group_instance_id="returns")
    poll_until(lambda: share(stays, again), stays.consumer, again.consumer, what="two share again")
    assert (again.owned, stays.assignments) == (owned, assignments)


def test_an_instance_id_that_is_taken_fences_its_first_owner(join: Callable[..., Member]) -> None:
    first = join(group_instance_id="one")
    poll_until(lambda: share(first), first.consumer, what="one owns all")
    second = join(group_instance_id="one")
    fenced: list[str] = []

    def poll_first() -> bool:
        try:
            message = first.consumer.poll(0.02)
        except KafkaException as error:
            fenced.append(name_of(error))
        else:
            if message is not None and message.error():
                fenced.append(name_of(message.error()))
        return bool({"FENCED_INSTANCE_ID", "_FATAL"} & {*fenced})

    poll_until(poll_first, second.consumer, what="the first is fenced")
    poll_until(lambda: share(second), second.consumer, what="the second owns all")


def test_assignors_that_do_not_match_are_refused(join: Callable[..., Member]) -> None:
    first = join(partition_assignment_strategy="range")
    poll_until(lambda: share(first), first.consumer, what="one owns all")
    other = join(partition_assignment_strategy="roundrobin")
    errors: list[str] = []

    def refused() -> bool:
        message = other.consumer.poll(0.02)
        if message is not None and message.error():
            errors.append(name_of(message.error()))
        return "INCONSISTENT_GROUP_PROTOCOL" in errors

    poll_until(refused, first.consumer, what="the other is refused")
    assert first.owned == set(range(PARTITIONS))


@pytest.mark.skipif(VERSION < (2, 6), reason="librdkafka 2.2 has no group.protocol")
def test_the_consumer_protocol(
    new_consumer: Callable[..., Consumer],
    new_topic: Callable[..., str],
    producer: Producer,
    group_id: str,
) -> None:
    """KIP-848."""
    topic = new_topic()
    send(producer, topic, b"1")
    consumer = new_consumer(group_id, group_protocol="consumer")
    consumer.subscribe([topic])
    assert [message.value() for message in receive(consumer, 1)] == [b"1"]


def refusal_of_sharing(sharing: Any) -> str:
    """The error with which a share consumer fails."""

    def refused() -> str:
        try:
            sharing.poll(0.1)
        except KafkaException as error:
            return name_of(error.args[0])
        return ""

    return wait_until(refused, ANSWER_S, "an error")


@needs("ShareConsumer", confluent_kafka)
def test_a_share_group(
    broker: Server, new_topic: Callable[..., str], producer: Producer, group_id: str, is_kshim: bool
) -> None:
    """KIP-932, which kshim does not serve, and says so (docs/differences.md)."""
    topic = new_topic()
    sharing = confluent_kafka.ShareConsumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": group_id, **QUIET}
    )
    sharing.subscribe([topic])
    if is_kshim:
        assert refusal_of_sharing(sharing) == "UNSUPPORTED_VERSION"
    else:  # a share group begins at the latest record
        wait_until(
            lambda: send(producer, topic, b"1") and len(sharing.poll(0.2)), ANSWER_S, "a record is shared"
        )
    sharing.close()
