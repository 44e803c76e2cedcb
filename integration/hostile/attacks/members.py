"""Attacks on groups of the consumer protocol: wide subscriptions, many members, many groups, expressions."""

from __future__ import annotations

from collections.abc import Sequence

from integration.hostile.attack import MB, Attack, Bounds, Volley
from integration.hostile.requests import TIMEOUT_MS, TOPIC, answers, create_topic, new_topic
from kshim.testing.wire import Wire, framed
from schemas.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from schemas.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from schemas.messages.create_topics import CreateTopicsRequest

GROUP = "attacker"
MOST_NAMES = 99_000
"""A request may have 100,000 elements."""
TOPICS = 1_000
MEMBERS = 1_000
GROUPS = 10_000
EXPRESSIONS = 200
SEARCHED_AGAIN_S = 10.5
"""Topics are searched again for the matches of a group's expressions after 10 s at the latest."""


def _join(group_id: str, member_id: str, names: Sequence[str] = (TOPIC,), regex: str | None = None) -> bytes:
    request = ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        rebalance_timeout_ms=TIMEOUT_MS,
        subscribed_topic_names=tuple(names),
        subscribed_topic_regex=regex,
        topic_partitions=(),
    )
    return framed(1, request)


def _grow(count: int) -> bytes:
    topic = CreatePartitionsTopic(name=TOPIC, count=count, assignments=None)
    return framed(3, CreatePartitionsRequest(topics=(topic,), timeout_ms=TIMEOUT_MS))


def _create_topics(wire: Wire) -> None:
    topics = tuple(new_topic(f"t{number:05}") for number in range(TOPICS))
    wire.ask(4, CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS))


def _many_names(wire: Wire) -> Sequence[Volley]:
    _create_topics(wire)
    names = [f"t{number:05}" for number in range(MOST_NAMES)]
    joins = [_join(GROUP, f"m{number}", names[number:]) for number in range(4)]
    others = [_join(f"{GROUP}-{number}", "m", names) for number in range(4)]
    described = framed(1, ConsumerGroupDescribeRequest(group_ids=(GROUP,)))
    return [
        Volley(label="different names", frames=joins),
        Volley(label="the same names, in other groups", frames=others),
        Volley(label="names that come and go", frames=[joins[0], _join(GROUP, "m0", names[50:])] * 2),
        Volley(label="ConsumerGroupDescribe", frames=[described] * 4),
    ]


def _many_members(wire: Wire) -> Sequence[Volley]:
    create_topic(wire, partitions=500)
    answers(wire, [_join(GROUP, f"m{number}") for number in range(MEMBERS)], in_flight=16)
    more = [_join(GROUP, f"n{number}") for number in range(100)]
    return [
        Volley(label="more join", frames=more, in_flight=16),
        Volley(label="the topic grows", frames=[_grow(600), _grow(700)], hold_s=2),
        Volley(
            label="ConsumerGroupDescribe",
            frames=[framed(1, ConsumerGroupDescribeRequest(group_ids=(GROUP,)))] * 4,
        ),
    ]


def _many_groups(wire: Wire) -> Sequence[Volley]:
    create_topic(wire)
    answers(wire, [_join(f"g{number}", "m") for number in range(GROUPS)], in_flight=200)
    return [Volley(label="the topic grows", frames=[_grow(2), _grow(3)], hold_s=5)]


def _expressions(wire: Wire) -> Sequence[Volley]:
    _create_topics(wire)
    all_topics = [_join(GROUP, f"m{number}", (), f".*{number}?") for number in range(EXPRESSIONS)]
    costly = [
        _join("costly", f"m{number}", (), f"([a-z0-9]{{1,{number + 50}}}){{40}}") for number in range(20)
    ]
    return [
        Volley(label="each matches all topics", frames=all_topics, in_flight=16, hold_s=SEARCHED_AGAIN_S),
        Volley(label="they are searched for", frames=[_join(GROUP, "m0", (), ".*")], hold_s=3),
        Volley(label="large ones", frames=costly, in_flight=4, hold_s=3),
    ]


ATTACKS = (
    Attack(
        name="many-subscribed-topics",
        what=f"members of consumer groups that name {MOST_NAMES:,} topics each",
        arm=_many_names,
        bounds=Bounds(kept_bytes=200 * MB),
    ),
    Attack(
        name="many-members",
        what=f"{MEMBERS:,} members of one consumer group, and their topic grows",
        arm=_many_members,
    ),
    Attack(
        name="many-consumer-groups",
        what=f"{GROUPS:,} consumer groups subscribe to one topic, which grows",
        arm=_many_groups,
        bounds=Bounds(kept_bytes=100 * MB),
    ),
    Attack(
        name="subscribed-expressions",
        what=f"{EXPRESSIONS} expressions of a consumer group, which match {TOPICS:,} topics; large ones",
        arm=_expressions,
    ),
)
