"""Rate of requests of a group's member.

The requests are encoded beforehand, and answers are only counted, so that the generator costs little. "8 x
16" is eight connections with sixteen requests each in flight; "1 x 1" is one at a time, which shows the round
trip.
"""

from __future__ import annotations

import selectors
from collections.abc import Callable
from typing import Any, TypeVar
from uuid import uuid4

from benchmarks.generator import Load
from benchmarks.processor import Measured, Window
from benchmarks.raw import Connection
from benchmarks.servers import Target
from kshim.testing.wire import api_key_of, framed
from schemas.error_code import ErrorCode
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from schemas.registry import decode_response

TOPIC = "benchmark"
TIMEOUT_MS = 60_000
RECEIVE_BYTES = 65_536

Request = tuple[int, Any]
"""A version, and the message."""
A = TypeVar("A", bound="Asking")


class Asking(Connection):
    """A connection of one that sends the same request again and again."""

    def size_of_answer(self, request: Request) -> int:
        """The number of bytes in the answer. Raises RuntimeError if it is an error."""
        version, message = request
        self.sendall(framed(version, message))
        answer = self.frame()
        _, response = decode_response(api_key_of(message), version, answer)
        partitions = [
            partition for topic in getattr(response, "topics", ()) for partition in topic.partitions
        ]
        if any(getattr(each, "error_code", 0) != ErrorCode.NONE for each in (response, *partitions)):
            raise RuntimeError(f"the broker answered {response}")
        return len(answer) + 4


class Member(Asking):
    """The only member of a group of its own, on a connection of its own."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self.group_id = f"benchmark-{uuid4()}"
        self.find_coordinator(self.group_id)
        joined: JoinGroupResponse = self.ask(
            2,
            JoinGroupRequest(
                group_id=self.group_id,
                session_timeout_ms=TIMEOUT_MS,
                rebalance_timeout_ms=TIMEOUT_MS,
                protocol_type="benchmark",
                protocols=(JoinGroupRequestProtocol(name="none", metadata=b""),),
            ),
        )
        self.member_id, self.generation_id = joined.member_id, joined.generation_id
        assignment = SyncGroupRequestAssignment(member_id=self.member_id, assignment=b"")
        self.ask(
            1,
            SyncGroupRequest(
                group_id=self.group_id,
                generation_id=self.generation_id,
                member_id=self.member_id,
                assignments=(assignment,),
            ),
        )


def heartbeat_of(member: Member) -> Request:
    return 1, HeartbeatRequest(
        group_id=member.group_id, generation_id=member.generation_id, member_id=member.member_id
    )


def offset_commit_of(member: Member) -> Request:
    """Of one partition."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    return 2, OffsetCommitRequest(
        group_id=member.group_id,
        generation_id_or_member_epoch=member.generation_id,
        member_id=member.member_id,
        topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=(partition,)),),
    )


def offset_fetch_of(member: Member) -> Request:
    """An OffsetFetch of one partition, whose offset is committed before."""
    member.size_of_answer(offset_commit_of(member))
    topic = OffsetFetchRequestTopic(name=TOPIC, partition_indexes=(0,))
    return 5, OffsetFetchRequest(group_id=member.group_id, topics=(topic,))


def api_versions_of(_: Member) -> Request:
    return 3, ApiVersionsRequest(client_software_name="benchmark", client_software_version="1")


def heartbeat(target: Target, load: Load, seconds: float) -> Measured:
    return exchange(target, heartbeat_of, load, seconds, Member)


def offset_commit(target: Target, load: Load, seconds: float) -> Measured:
    return exchange(target, offset_commit_of, load, seconds, Member)


def offset_fetch(target: Target, load: Load, seconds: float) -> Measured:
    return exchange(target, offset_fetch_of, load, seconds, Member)


def api_versions(target: Target, load: Load, seconds: float) -> Measured:
    return exchange(target, api_versions_of, load, seconds, Member)


def exchange(
    target: Target,
    request_of: Callable[[A], Request],
    load: Load,
    seconds: float,
    new_member: Callable[[str], A],
) -> Measured:
    """The rate of answers, with `depth` requests in flight on each of so many `connections`."""
    depth = load["depth"]
    Connection(target.bootstrap).new_topic(1, TOPIC)
    selector = selectors.DefaultSelector()
    members = [new_member(target.bootstrap) for _ in range(load["connections"])]
    requests = [request_of(member) for member in members]
    left: dict[A, int] = {}
    for member, request in zip(members, requests, strict=True):
        expected = left[member] = member.size_of_answer(request) * depth
        selector.register(member, selectors.EVENT_READ, (member, framed(*request) * depth, expected))
    answered = 0
    with Window(target.pid) as window:
        for key in selector.get_map().values():
            member, frames, _ = key.data
            member.send(frames)
        while window.so_far_s < seconds:
            for key, _ in selector.select(seconds):
                member, frames, expected = key.data
                left[member] -= len(member.recv(RECEIVE_BYTES))
                if left[member] <= 0:
                    left[member] += expected
                    answered += depth
                    member.send(frames)
    for member, request in zip(members, requests, strict=True):
        member.read(left[member])
        member.size_of_answer(request)  # still no error
        member.close()
    return window.measured(answered, {"requests/s": answered / window.seconds})
