"""Differences in groups of the consumer protocol (KIP-848)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from integration.differential.differences.configs import described_config
from integration.differential.differences.groups import API_VERSIONS, PATIENT
from integration.differential.differences.guest import Guest, soon
from integration.differential.differences.member import PATIENCE_S, Member, coordinated, protocol
from integration.differential.differences.scenario import difference
from integration.support.awaiting import wait_until
from schemas.consumer_protocol import ConsumerProtocolSubscription, encode_subscription
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions


def _join(guest: Guest, member_id: str = "m", topics: Collection[str] = ("t",), **fields: Any) -> Any:
    """The answer to a member that joins."""
    joining = ConsumerGroupHeartbeatRequest(
        group_id=guest.name("g"),
        member_id=member_id,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=tuple(map(guest.name, topics)),
        topic_partitions=(),
        **fields,
    )
    return guest.answer(1, joining)


def _classic(guest: Guest, name: str, protocols: Collection[str] = ("range",), **fields: Any) -> Member:
    """A classic member with the same subscription."""
    subscription = encode_subscription(ConsumerProtocolSubscription(topics=(guest.name("t"),)))
    offered = tuple(replace(protocol(subscription), name=each) for each in protocols)
    return Member(guest, name, protocols=offered, **fields)


class _Consumer:
    """A consumer member, which owns what the server gives it."""

    def __init__(self, guest: Guest, member_id: str, **fields: Any) -> None:
        """fields: fields of its first heartbeat."""
        self._guest, self._id = guest, member_id
        self._owned: tuple[TopicPartitions, ...] = ()
        self._hear(_join(guest, member_id, **fields))

    def beat(self, **fields: Any) -> int:
        """Send a heartbeat; return the number of partitions that it owns then."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._guest.name("g"),
            member_id=self._id,
            member_epoch=self._epoch,
            topic_partitions=self._owned,
            **fields,
        )
        return self._hear(self._guest.answer(1, request))

    def _hear(self, answer: Any) -> int:
        assert not answer.error_code, answer
        self._epoch = answer.member_epoch
        if answer.assignment is not None:
            self._owned = answer.assignment.topic_partitions
        return sum(len(each.partitions) for each in self._owned)


def _error(answer: Any) -> str:
    return ErrorCode(answer.error_code).name


@difference("D-assignment-interval", apache_kafka="1000", kshim="0")
def the_interval_between_assignments_that_nobody_has_set(guest: Guest) -> str:
    config = described_config(guest, "group.consumer.assignment.interval.ms")
    return str(config.synonyms[-1].value)


@difference("D-static-member-joins-again", apache_kafka="UNRELEASED_INSTANCE_ID", kshim="NONE")
def a_static_member_that_joins_twice(guest: Guest) -> str:
    coordinated(guest)
    guest.create("t")
    _join(guest, instance_id="i")
    return _error(_join(guest, instance_id="i"))


@difference("D-upgrade-rebalances", apache_kafka=1, kshim=2)
def a_member_without_topics_that_joins_members_without_partitions(guest: Guest) -> int:
    coordinated(guest)
    guest.create("t")
    _classic(guest, "classic").enter()
    epoch: int = _join(guest, topics=()).member_epoch
    return epoch


@difference("D-upgrade-before-the-vote", apache_kafka="UNKNOWN_SERVER_ERROR", kshim="NONE")
def a_member_that_joins_before_the_protocol_of_a_rebalance_is_selected(guest: Guest) -> str:
    coordinated(guest)
    guest.create("t")
    old = _classic(guest, "old", ("range", "roundrobin"))
    new = _classic(guest, "new", ("roundrobin",))
    old.enter()
    new.take_id()
    new.send_join()
    wait_until(lambda: old.beat() == "REBALANCE_IN_PROGRESS", PATIENCE_S, "the rebalance")
    return _error(_join(guest))


@difference("D-downgrade-rebalances", apache_kafka="NONE", kshim="REBALANCE_IN_PROGRESS")
def a_member_that_waits_while_the_last_consumer_member_turns_classic(guest: Guest) -> str:
    coordinated(guest)
    guest.create("t", 2)
    _join(guest, instance_id="i")
    waiting, other = _classic(guest, "waiting"), _classic(guest, "other", group_instance_id="i")
    waiting.enter()
    other.send_join()
    assert not other.hear_join().error_code
    return waiting.beat()


@difference("D-consumer-heartbeats-wait", apache_kafka=5_000, kshim=1_000)
def the_interval_of_a_client_that_can_wait(guest: Guest) -> int:
    coordinated(guest)
    guest.create("t")
    assert guest.error(API_VERSIONS, PATIENT) == "NONE"
    interval_ms: int = _join(guest).heartbeat_interval_ms
    return interval_ms


@difference("D-expression-without-match", apache_kafka=1, kshim=2)
def partitions_that_a_member_had_by_an_expression_before_one_that_matches_nothing(guest: Guest) -> int:
    coordinated(guest)
    guest.create("t", 2)
    one = _Consumer(guest, "one")
    other = _Consumer(guest, "other", topics=(), subscribed_topic_regex=guest.name("t"))
    wait_until(lambda: (one.beat(), other.beat()) == (1, 1), PATIENCE_S, "a partition for each")
    other.beat(subscribed_topic_regex="nothing")
    assert not other.beat()
    return soon(lambda: one.beat() + other.beat(), 2)


@difference("D-large-group-changes", apache_kafka="UNKNOWN_SERVER_ERROR", kshim="NONE")
def a_subscription_that_fits_into_a_record_but_not_with_all_that_is_written(guest: Guest) -> str:
    coordinated(guest)
    names = tuple(f"{number:x<32760}" for number in range(32))  # with their lengths 172 bytes below the limit
    joining = ConsumerGroupHeartbeatRequest(
        group_id=guest.name("g"),
        member_id="m",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=names,
        topic_partitions=(),
    )
    return _error(guest.answer(1, joining))
