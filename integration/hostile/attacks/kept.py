"""Attacks that make the server keep sent bytes, or objects decoded from them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice

from integration.hostile.attack import MB, Attack, Bounds, Volley
from integration.hostile.requests import TOPIC, create_topic
from kshim.testing.wire import Wire, framed
from schemas.consumer_protocol import ConsumerProtocolSubscription, encode_subscription
from schemas.messages.delete_groups import DeleteGroupsRequest
from schemas.messages.describe_groups import DescribeGroupsRequest
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from schemas.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

MANY = 98_000
"""Nearly as many elements as one request may have: 100,000."""
GROUP = "attacker"
LONGEST_ID = 32_000
LONG_SESSION_MS = 1_800_000
AT_ONCE = ("--set", "group.initial.rebalance.delay.ms=0")
LEFT_BEHIND = Bounds(peak_bytes=250 * MB, kept_bytes=64 * MB)


def _join(
    *protocols: JoinGroupRequestProtocol,
    group_id: str = GROUP,
    member_id: str = "",
    group_instance_id: str | None = None,
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=LONG_SESSION_MS,
        rebalance_timeout_ms=LONG_SESSION_MS,
        member_id=member_id,
        group_instance_id=group_instance_id,
        protocol_type="consumer",
        protocols=protocols,
    )


def _names(beginning: str, count: int) -> tuple[JoinGroupRequestProtocol, ...]:
    return tuple(JoinGroupRequestProtocol(name=f"{beginning}{number}") for number in range(count))


def _subscription(topics: Sequence[str]) -> JoinGroupRequestProtocol:
    metadata = encode_subscription(ConsumerProtocolSubscription(topics=tuple(topics)), version=0)
    return JoinGroupRequestProtocol(name="range", metadata=metadata)


def _decoded_again(wire: Wire) -> Sequence[Volley]:
    create_topic(wire)
    topics = 3_000_000
    metadata = bytes(2) + topics.to_bytes(4) + bytes(2 * topics + 4)
    wire.ask(3, _join(JoinGroupRequestProtocol(name="range", metadata=metadata)))
    partitions = (OffsetDeleteRequestPartition(partition_index=0),)
    request = OffsetDeleteRequest(
        group_id=GROUP, topics=(OffsetDeleteRequestTopic(name=TOPIC, partitions=partitions),)
    )
    return [Volley(label="OffsetDelete", frames=[framed(0, request)] * 5)]


def _protocols(wire: Wire) -> Sequence[Volley]:
    few = MANY // 10
    groups = [
        (MANY, [f"whole-{number}" for number in range(40)]),
        (few, [f"tenth-{number}" for number in range(400)]),
    ]
    return [
        Volley(
            label=f"{len(group_ids)} JoinGroup with {count:,} protocols",
            frames=[framed(3, _join(*_names("p", count), group_id=group_id)) for group_id in group_ids],
        )
        for count, group_ids in groups
    ]


def _parked(wire: Wire) -> Sequence[Volley]:
    """Join with many members that wait for the first one, which does not join again."""
    names = _names("p", 9_000)
    wire.ask(3, _join(*names))
    frame = framed(3, _join(*names))
    return [Volley(label="JoinGroup", frames=[frame], connections=300, reads=False, hold_s=3)]


def _idle_connections(wire: Wire) -> Sequence[Volley]:
    request = SyncGroupRequest(
        group_id=GROUP,
        generation_id=1,
        member_id="nobody",
        assignments=tuple(SyncGroupRequestAssignment(member_id=f"m{number}") for number in range(MANY)),
    )
    return [Volley(label="SyncGroup", frames=[framed(3, request)], connections=24, hold_s=3)]


def _rebalances(wire: Wire) -> Sequence[Volley]:
    """Join as the only member of a group, again and again, so that each JoinGroup begins a rebalance."""
    volleys = []
    common = _names("p", 1)
    for label, beginning, count in (
        ("offers", "p", 4_900),
        ("votes", "v" * LONGEST_ID, 1),
    ):
        member_id = wire.ask(3, _join(*common, group_id=label)).member_id
        offers = [_names(f"{letter}{beginning}", count) + common for letter in "ab"]
        frames = [framed(3, _join(*each, group_id=label, member_id=member_id)) for each in offers]
        volleys.append(Volley(label=f"JoinGroup: {label}", frames=list(islice(cycle(frames), 400))))
    return volleys


def _deleted_groups(wire: Wire) -> Sequence[Volley]:
    frames = []
    for number in range(1_500):
        group_id = f"{number}-".ljust(LONGEST_ID, "g")
        join = _join(*_names("p", 1), group_id=group_id, group_instance_id="i")
        leave = LeaveGroupRequest(group_id=group_id, members=(MemberIdentity(group_instance_id="i"),))
        delete = DeleteGroupsRequest(groups_names=(group_id,))
        frames += [framed(5, join), framed(3, leave), framed(1, delete)]
    return [Volley(label="JoinGroup, LeaveGroup, DeleteGroups", frames=frames, in_flight=60)]


def _pending_ids(wire: Wire) -> Sequence[Volley]:
    client_id = "c" * LONGEST_ID
    frames = [
        framed(4, _join(*_names("p", 1), group_id=f"{GROUP}-{number % 100}"), client_id=client_id)
        for number in range(15_000)
    ]
    return [Volley(label="JoinGroup", frames=frames, in_flight=16)]


def _joins_again(wire: Wire) -> Sequence[Volley]:
    """Join again with a subscription to other names each time."""
    member_id = wire.ask(3, _join(_subscription(["t"]))).member_id
    subscriptions = [
        _subscription([f"{letter}{number}-".ljust(100, "t") for number in range(90_000)]) for letter in "ab"
    ]
    frames = [framed(3, _join(each, member_id=member_id)) for each in subscriptions]
    return [Volley(label="JoinGroup", frames=frames * 5)]


def _departed(wire: Wire) -> Sequence[Volley]:
    """Keep the join phase of a group open with one member, while others join and leave."""
    stays = wire.ask(5, _join(*_names("p", 1), group_instance_id="stays")).member_id
    frames = []
    for number in range(3_000):
        instance_id = f"{number}-".ljust(LONGEST_ID, "i")
        leave = LeaveGroupRequest(group_id=GROUP, members=(MemberIdentity(group_instance_id=instance_id),))
        frames += [framed(5, _join(*_names("p", 1), group_instance_id=instance_id)), framed(3, leave)]
    heartbeat = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=stays)
    frames += [framed(3, heartbeat)]
    return [Volley(label="JoinGroup, LeaveGroup", frames=frames, in_flight=2)]


def _long_ids(wire: Wire) -> Sequence[Volley]:
    """Use ids with a letter beyond the Basic Multilingual Plane: Python then needs four bytes for each
    letter.
    """
    frames = []
    for frame in range(10):
        group_ids = [f"\N{GRINNING FACE}{frame}{number}-".ljust(LONGEST_ID, "g") for number in range(300)]
        frames.append(framed(4, DescribeGroupsRequest(groups=tuple(group_ids))))
    return [Volley(label="DescribeGroups", frames=frames)]


ATTACKS = (
    Attack(
        name="decoded-again",
        what="OffsetDelete of a group whose member subscribes to 3,000,000 topics",
        arm=_decoded_again,
        bounds=LEFT_BEHIND,
        options=AT_ONCE,
        quick=True,
    ),
    Attack(
        name="kept-protocols",
        what=f"40 JoinGroup with {MANY:,} protocols, and 400 with a tenth of that",
        arm=_protocols,
        bounds=LEFT_BEHIND,
        options=AT_ONCE,
    ),
    Attack(
        name="parked-joins",
        what="300 JoinGroup with 9,000 protocols are parked",
        arm=_parked,
        bounds=LEFT_BEHIND,
        options=AT_ONCE,
    ),
    Attack(
        name="kept-by-connections",
        what=f"24 connections send a SyncGroup with {MANY:,} assignments and stay",
        arm=_idle_connections,
        bounds=LEFT_BEHIND,
    ),
    Attack(
        name="recorded-rebalances",
        what="400 rebalances of members with many protocols, and of members with long names",
        arm=_rebalances,
        bounds=LEFT_BEHIND,
        options=AT_ONCE,
    ),
    Attack(
        name="recorded-groups",
        what="1,500 groups with ids of 32 KB come and go",
        arm=_deleted_groups,
        bounds=LEFT_BEHIND,
        options=AT_ONCE,
    ),
    Attack(
        name="recorded-departures",
        what="3,000 members with instance ids of 32 KB come and go within one rebalance",
        arm=_departed,
        bounds=LEFT_BEHIND,
        options=AT_ONCE,
    ),
    Attack(
        name="pending-ids",
        what="15,000 JoinGroup without a member id, each with a client id of 32 KB, for 100 groups",
        arm=_pending_ids,
        bounds=LEFT_BEHIND,
    ),
    Attack(
        name="long-ids",
        what="DescribeGroups of 3,000 unknown groups with ids of 32 KB",
        arm=_long_ids,
        bounds=LEFT_BEHIND,
    ),
    Attack(
        name="joins-again",
        what="a member changes its subscription from 90,000 long names to others",
        arm=_joins_again,
        bounds=LEFT_BEHIND,
        options=AT_ONCE,
    ),
)
