"""Attacks on the HTTP listener: large answers about groups and topics that clients have made; slow
connections.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from integration.hostile.attack import MB, Attack, Bounds, Volley
from integration.hostile.requests import answers, create_topic
from kshim.testing.wire import Wire, framed
from schemas.consumer_protocol import ConsumerProtocolAssignment, TopicPartition, encode_assignment
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

HTTP = ("--http", "127.0.0.1:0")
GROUPS = 70_000
IN_FLIGHT = 500
ASSIGNED = 38_000
REBALANCES = 12
LISTINGS = ("/groups", "/metrics", "/")
BOUNDS = Bounds(peak_bytes=250 * MB, kept_bytes=64 * MB)


def _get(path: str, ends: str = "close") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: {ends}\r\n\r\n".encode()


def _make_groups(wire: Wire) -> None:
    """Commit one offset in each of GROUPS groups without members."""
    create_topic(wire, "orders")
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    topics = (OffsetCommitRequestTopic(name="orders", partitions=(partition,)),)
    requests = (OffsetCommitRequest(group_id=f"group-{number}", topics=topics) for number in range(GROUPS))
    answers(wire, [framed(6, each) for each in requests], IN_FLIGHT)


def _many_groups(wire: Wire) -> Sequence[Volley]:
    _make_groups(wire)
    events = Volley(label="/events", frames=[_get("/events")], connections=3, reads=False, hold_s=6)
    listings = [Volley(label=path, frames=[_get(path)], speaks_http=True) for path in LISTINGS]
    return [events, *listings]


def _join(group_id: str, member_id: str) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group_id,
        member_id=member_id,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range"),),
    )


def _large_assignments(wire: Wire) -> Sequence[Volley]:
    group_id = "large"
    assigned = TopicPartition(topic="orders", partitions=tuple(range(ASSIGNED)))
    assignment = encode_assignment(ConsumerProtocolAssignment(assigned_partitions=(assigned,)))
    member_id = ""
    for _ in range(REBALANCES):
        joined = wire.ask(3, _join(group_id, member_id))
        member_id = joined.member_id
        sync = SyncGroupRequest(
            group_id=group_id,
            generation_id=joined.generation_id,
            member_id=member_id,
            assignments=(SyncGroupRequestAssignment(member_id=member_id, assignment=assignment),),
        )
        assert wire.ask(3, sync).error_code == 0
    paths = [f"/page/groups/{quote(group_id)}", f"/groups/{group_id}", f"/groups/{group_id}/rebalances"]
    return [Volley(label=path, frames=[_get(path)], speaks_http=True) for path in paths]


ATTACKS = (
    Attack(
        name="http-many-groups",
        what="70,000 groups, and who looks at all of them over HTTP",
        arm=_many_groups,
        options=HTTP,
        bounds=BOUNDS,
    ),
    Attack(
        name="http-large-assignments",
        what="a group whose member is assigned 38,000 partitions in each of 12 rebalances, and its page",
        arm=_large_assignments,
        options=HTTP,
        bounds=BOUNDS,
        quick=True,
    ),
)
