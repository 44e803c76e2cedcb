"""How many Heartbeats and OffsetCommits a second a broker answers, compared with a peer in the same minute.

    python -m benchmarks.requests 127.0.0.1:9092 [PEER_HOST:PORT]

The requests are encoded beforehand, so that sending them costs little compared with the answers. "8 x 16" is
eight connections with sixteen requests each in flight; "1 x 1" is one at a time, and shows the round trip.
"""

from __future__ import annotations

import selectors
import sys
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from benchmarks.raw import Connection
from integration.support.wire import framed
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

TOPIC = "benchmark"
SECONDS = 3.0


class Member(Connection):
    """The only member of a group of its own, on a connection of its own."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self.group_id = f"benchmark-{uuid4()}"
        topics = (MetadataRequestTopic(name=TOPIC),)
        self.ask(4, MetadataRequest(topics=topics, allow_auto_topic_creation=True))
        self.find_coordinator(self.group_id)
        joined: JoinGroupResponse = self.ask(
            2,
            JoinGroupRequest(
                group_id=self.group_id,
                session_timeout_ms=30_000,
                rebalance_timeout_ms=30_000,
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

    def size_of_answer(self, frame: bytes) -> int:
        """How many bytes the answer to `frame` has."""
        self.sendall(frame)
        return len(self.frame()) + 4


def heartbeat(member: Member) -> bytes:
    """A Heartbeat v1 of `member`."""
    request = HeartbeatRequest(
        group_id=member.group_id, generation_id=member.generation_id, member_id=member.member_id
    )
    return framed(1, request)


def offset_commit(member: Member) -> bytes:
    """An OffsetCommit v2 of one partition."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=member.group_id,
        generation_id_or_member_epoch=member.generation_id,
        member_id=member.member_id,
        topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=(partition,)),),
    )
    return framed(2, request)


def answers_per_second(
    bootstrap: str, request: Callable[[Member], bytes], connections: int, depth: int
) -> float:
    """The rate at which `bootstrap` answers with `depth` requests in flight on each connection."""
    selector = selectors.DefaultSelector()
    received: dict[Any, int] = {}
    for _ in range(connections):
        member = Member(bootstrap)
        frame = request(member)
        expected = member.size_of_answer(frame) * depth
        member.setblocking(False)
        selector.register(member, selectors.EVENT_READ, (frame * depth, expected))
        received[member] = 0
        member.send(frame * depth)
    answered, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        for key, _ in selector.select(SECONDS):
            connection: Any = key.fileobj
            frames, expected = key.data
            received[connection] += len(connection.recv(65536))
            if received[connection] >= expected:
                received[connection] -= expected
                answered += depth
                connection.send(frames)
    took = time.perf_counter() - began
    for connection in received:
        connection.close()
    return answered / took


LOADS = [
    ("Heartbeat, 8 x 16", heartbeat, 8, 16),
    ("Heartbeat, 1 x 1", heartbeat, 1, 1),
    ("OffsetCommit, 8 x 16", offset_commit, 8, 16),
    ("OffsetCommit, 1 x 1", offset_commit, 1, 1),
]


def main(bootstrap: str, peer: str = "") -> None:
    """Print a line for each load."""
    for name, request, connections, depth in LOADS:
        rate = answers_per_second(bootstrap, request, connections, depth)
        line = f"{name:22} {rate:9,.0f}/s"
        if peer:
            peer_rate = answers_per_second(peer, request, connections, depth)
            line += f"   peer {peer_rate:9,.0f}/s   ratio {rate / peer_rate:.2f}"
        print(line, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
