"""Small requests with large answers, repeated or not read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from integration.hostile.attack import MB, Attack, Bounds, Volley
from integration.hostile.attacks.repeating import let_many_produce
from integration.hostile.requests import TIMEOUT_MS, TOPIC, answers, create_topic, producer_id
from kshim.testing.wire import Wire, framed
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from schemas.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from schemas.messages.describe_groups import DescribeGroupsRequest
from schemas.messages.describe_producers import DescribeProducersRequest
from schemas.messages.describe_producers import TopicRequest as ProducersOfTopic
from schemas.messages.describe_transactions import DescribeTransactionsRequest
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.list_groups import ListGroupsRequest
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from schemas.messages.sync_group import SyncGroupRequest

GROUP = "answered"
BROKER_RESOURCE = 4
LONGEST_METADATA_BYTES = 4096
"""The longest metadata that a commit may have (offset.metadata.max.bytes)."""
PARTITIONS = 1900
WIDE_PARTITIONS = 9_000
MEMBER_BYTES = 30 * MB
HOLD_S = 8
BOUNDS = Bounds(peak_bytes=250 * MB, kept_bytes=64 * MB)
JOIN_VERSION = 9


def _offset_fetch(wire: Wire) -> Sequence[Volley]:
    """Ask for all offsets of a group: 8 MB."""
    create_topic(wire, partitions=PARTITIONS)
    for first in range(0, PARTITIONS, 100):
        partitions = tuple(
            OffsetCommitRequestPartition(
                partition_index=index, committed_offset=1, committed_metadata="m" * LONGEST_METADATA_BYTES
            )
            for index in range(first, first + 100)
        )
        topics = (OffsetCommitRequestTopic(name=TOPIC, partitions=partitions),)
        (topic,) = wire.ask(2, OffsetCommitRequest(group_id=GROUP, topics=topics)).topics
        assert topic.partitions[0].error_code == ErrorCode.NONE, topic.partitions[0]
    group = OffsetFetchRequestGroup(group_id=GROUP, topics=None)
    several = OffsetFetchRequest(groups=(group,) * 7)
    return [
        _volley("one group 200 times", 8, OffsetFetchRequest(groups=(group,) * 200)),
        _volley("seven times, not read", 8, several, connections=40, reads=False, hold_s=HOLD_S),
    ]


def _volley(label: str, version: int, request: Any, **details: Any) -> Volley:
    return Volley(label=label, frames=[framed(version, request)], **details)


def _join(wire: Wire, member_id: str, metadata: bytes, instance_id: str) -> None:
    wire.request(JOIN_VERSION, _join_request(member_id, metadata, instance_id))


def _join_request(member_id: str, metadata: bytes, instance_id: str) -> JoinGroupRequest:
    protocol = JoinGroupRequestProtocol(name="range", metadata=metadata)
    return JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=TIMEOUT_MS,
        rebalance_timeout_ms=TIMEOUT_MS,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocols=(protocol,),
    )


def _joining_group(wire: Wire, other: Wire, member_bytes: int) -> tuple[str, str, int]:
    """Make a group that waits for its leader's assignments. The leader has little metadata, the other member
    much.

    Return the leader's id, the other member's id, and the generation.
    """
    _join(wire, "", b"", "leader")
    first = wire.response(JOIN_VERSION, ApiKey.JOIN_GROUP)
    _join(other, "", bytes(member_bytes), "other")
    heartbeat = HeartbeatRequest(group_id=GROUP, generation_id=first.generation_id, member_id=first.member_id)
    while wire.ask(3, heartbeat).error_code != ErrorCode.REBALANCE_IN_PROGRESS:
        pass
    _join(wire, first.member_id, b"", "leader")
    leader = wire.response(JOIN_VERSION, ApiKey.JOIN_GROUP)
    member = other.response(JOIN_VERSION, ApiKey.JOIN_GROUP)
    assert leader.leader == leader.member_id
    assert len(leader.members) == 2
    return leader.member_id, member.member_id, leader.generation_id


def _describe_groups(wire: Wire) -> Sequence[Volley]:
    with Wire(*wire.getpeername()) as other:
        leader_id, _, generation = _joining_group(wire, other, MB - 50_000)
    sync = SyncGroupRequest(
        group_id=GROUP, generation_id=generation, member_id=leader_id, group_instance_id="leader"
    )
    synced = wire.ask(3, sync)
    assert synced.error_code == ErrorCode.NONE, synced
    request = DescribeGroupsRequest(groups=(GROUP,) * 60)
    return [
        _volley("one group 1,500 times", 4, DescribeGroupsRequest(groups=(GROUP,) * 1500)),
        _volley("60 times, not read", 4, request, connections=40, reads=False, hold_s=HOLD_S),
    ]


def _describe_configs(wire: Wire) -> Sequence[Volley]:
    resource = DescribeConfigsResource(resource_type=BROKER_RESOURCE, resource_name="1")
    request = DescribeConfigsRequest(resources=(resource,) * 900, include_synonyms=True)
    return [
        _volley("a broker 900 times, not read", 4, request, connections=80, reads=False, hold_s=4 * HOLD_S)
    ]


def _join_group(wire: Wire) -> Sequence[Volley]:
    """Join again as the leader while its assignments are awaited: it gets the same large answer each time."""
    with Wire(*wire.getpeername(), timeout_s=60) as other:
        leader_id, _, _ = _joining_group(wire, other, MEMBER_BYTES)
    request = _join_request(leader_id, b"", "leader")
    return [
        _volley(
            "the leader joins again, and does not read",
            JOIN_VERSION,
            request,
            connections=40,
            reads=False,
            hold_s=HOLD_S,
        )
    ]


def _describe_producers(wire: Wire) -> Sequence[Volley]:
    create_topic(wire)
    let_many_produce(wire)
    topic = ProducersOfTopic(name=TOPIC, partition_indexes=(0,) * 400)
    request = DescribeProducersRequest(topics=(topic,))
    return [
        _volley("400 times, not read", 0, request, connections=80, reads=False, hold_s=4 * HOLD_S),
    ]


def _list_groups(wire: Wire) -> Sequence[Volley]:
    create_topic(wire)
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = (OffsetCommitRequestTopic(name=TOPIC, partitions=(partition,)),)
    names = [f"{number}".ljust(32_000, "g") for number in range(500)]
    answers(
        wire, [framed(2, OffsetCommitRequest(group_id=name, topics=topics)) for name in names], in_flight=16
    )
    return [_volley("not read", 4, ListGroupsRequest(), connections=80, reads=False, hold_s=HOLD_S)]


def _describe_transactions(wire: Wire) -> Sequence[Volley]:
    create_topic(wire, partitions=WIDE_PARTITIONS)
    number, epoch = producer_id(wire, "wide")
    topic = AddPartitionsToTxnTopic(name=TOPIC, partitions=tuple(range(WIDE_PARTITIONS)))
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="wide",
        v3_and_below_producer_id=number,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=(topic,),
    )
    (added,) = wire.ask(3, request).results_by_topic_v3_and_below
    assert added.results_by_partition[0].partition_error_code == ErrorCode.NONE, added
    asked = DescribeTransactionsRequest(transactional_ids=("wide",) * 90_000)
    return [_volley(f"one of {WIDE_PARTITIONS:,} partitions 90,000 times", 0, asked)]


_ATTACKS = {
    "offset-fetch": ("OffsetFetch of one group's 8 MB of offsets again and again", _offset_fetch),
    "describe-groups": (
        "DescribeGroups of one group with 1 MB of metadata again and again",
        _describe_groups,
    ),
    "describe-configs": ("DescribeConfigs of a broker again and again", _describe_configs),
    "join-group": ("JoinGroup of a leader that is answered 30 MB", _join_group),
    "describe-producers": ("DescribeProducers of one partition again and again", _describe_producers),
    "list-groups": ("ListGroups of 16 MB of names", _list_groups),
    "describe-transactions": ("DescribeTransactions of a large one again and again", _describe_transactions),
}

ATTACKS = [
    Attack(name=f"answer-{name}", what=f"{what}, or not read", arm=arm, bounds=BOUNDS)
    for name, (what, arm) in _ATTACKS.items()
]
