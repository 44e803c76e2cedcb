"""Rate of rebalances of one group: all members join, the leader assigns, all sync.

Each member is a raw connection. In each round all members join with new metadata, so that the first one
starts the rebalance, whoever it is, and the last one ends it. Frames are encoded once; a round only puts its
number and its generation into them.
"""

from __future__ import annotations

import struct
from functools import partial
from uuid import uuid4

from benchmarks.generator import Load
from benchmarks.processor import Measured, Window
from benchmarks.raw import SOFTWARE, Connection
from benchmarks.servers import Target
from integration.support.awaiting import wait_until
from kshim.testing.wire import framed
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.describe_groups import DescribeGroupsRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

JOIN_VERSION, SYNC_VERSION, LEAVE_VERSION = 3, 2, 3
TIMEOUT_MS = 120_000
ASSIGNMENT = bytes(40)
PLACE = 0x5EAF_A11A
"""Stands in an encoded frame where the number of the round or the generation comes."""
_INT32 = struct.Struct(">i")
_PLACE = _INT32.pack(PLACE)
_JOINED = struct.Struct(">iihi")
"""How the answer to JoinGroup begins: correlation id, throttle time, error code, generation."""
_SYNCED = struct.Struct(">iih")


def join_request(group_id: str, member_id: str, metadata: bytes) -> JoinGroupRequest:
    protocol = JoinGroupRequestProtocol(name="none", metadata=metadata)
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=TIMEOUT_MS,
        rebalance_timeout_ms=TIMEOUT_MS,
        member_id=member_id,
        protocol_type="benchmark",
        protocols=(protocol,),
    )


def sync_request(group_id: str, member_id: str, generation_id: int, assigned: list[str]) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group_id,
        generation_id=generation_id,
        member_id=member_id,
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=each, assignment=ASSIGNMENT) for each in assigned
        ),
    )


class Group:
    """Members that have joined, each on a connection of its own; the first one leads.

    `Group.form` makes many at once: the steps of a group wait for the server, not for one another.
    """

    def __init__(self, bootstrap: str, members: int, software: str = SOFTWARE) -> None:
        self.group_id = f"benchmark-{uuid4()}"
        self.connections = [Connection(bootstrap).greet(software) for _ in range(members)]
        self.member_ids = [""] * members
        self.generation_id = -1

    @staticmethod
    def form(bootstrap: str, groups: int, members: int, software: str = SOFTWARE) -> list[Group]:
        """So many groups, complete and stable."""
        watch = Connection(bootstrap)
        watch.find_coordinator("benchmark")
        made = [Group(bootstrap, members, software) for _ in range(groups)]
        for group in made:
            group._first_joins(watch)
        for group in made:
            group._others_join()
        _wait_for_members(watch, [group.group_id for group in made], members)
        for group in made:
            group._send_join(0, b"")
        for group in made:
            group._complete()
        return made

    def close(self) -> None:
        """All leave: else the server would be busy with their sessions' ends while others are measured."""
        members = tuple(MemberIdentity(member_id=member_id) for member_id in self.member_ids)
        self.connections[0].ask(LEAVE_VERSION, LeaveGroupRequest(group_id=self.group_id, members=members))
        for connection in self.connections:
            connection.close()

    def _first_joins(self, watch: Connection) -> None:
        joined = watch.ask(JOIN_VERSION, join_request(self.group_id, "", b""))
        self.member_ids[0] = joined.member_id

    def _others_join(self) -> None:
        for index in range(1, len(self.connections)):
            self._send_join(index, b"")

    def _send_join(self, index: int, metadata: bytes) -> None:
        request = join_request(self.group_id, self.member_ids[index], metadata)
        self.connections[index].request(JOIN_VERSION, request)

    def _complete(self) -> None:
        """Finish a rebalance for which everybody has sent JoinGroup: read the answers, and sync."""
        for index, connection in enumerate(self.connections):
            joined = connection.response(JOIN_VERSION, ApiKey.JOIN_GROUP)
            self.member_ids[index], self.generation_id = joined.member_id, joined.generation_id
        for index, (connection, member_id) in enumerate(zip(self.connections, self.member_ids, strict=True)):
            assigned = [] if index else self.member_ids
            connection.request(
                SYNC_VERSION, sync_request(self.group_id, member_id, self.generation_id, assigned)
            )
        for connection in self.connections:
            connection.response(SYNC_VERSION, ApiKey.SYNC_GROUP)


def _wait_for_members(watch: Connection, group_ids: list[str], members: int) -> None:
    for begin in range(0, len(group_ids), 100):
        request = DescribeGroupsRequest(groups=tuple(group_ids[begin : begin + 100]))
        wait_until(partial(_are_complete, watch, request, members), TIMEOUT_MS / 1000, "all members")


def _are_complete(watch: Connection, request: DescribeGroupsRequest, members: int) -> bool:
    return all(len(group.members) >= members for group in watch.ask(1, request).groups)


def join_sync(target: Target, load: Load, seconds: float) -> Measured:
    """Rebalances, one after the other, of a group with so many `members`."""
    (group,) = Group.form(target.bootstrap, 1, load["members"])
    joins = [
        framed(JOIN_VERSION, join_request(group.group_id, member_id, _PLACE))
        for member_id in group.member_ids
    ]
    syncs = [
        framed(SYNC_VERSION, sync_request(group.group_id, member_id, PLACE, assigned))
        for member_id, assigned in zip(
            group.member_ids, [group.member_ids, *[[]] * (load["members"] - 1)], strict=True
        )
    ]
    rounds = 0
    with Window(target.pid) as window:
        while window.so_far_s < seconds:
            rebalance(group.connections, joins, syncs, rounds)
            rounds += 1
    group.close()
    return window.measured(rounds * load["members"] * 2, {"rebalances/s": rounds / window.seconds})


def rebalance(connections: list[Connection], joins: list[bytes], syncs: list[bytes], number: int) -> None:
    """All join, and all sync. Raises RuntimeError if an answer is an error."""
    metadata = _INT32.pack(number)
    for connection, frame in zip(connections, joins, strict=True):
        connection.sendall(frame.replace(_PLACE, metadata))
    generations = {_generation_of(connection.frame()) for connection in connections}
    (generation_id,) = generations
    for connection, frame in zip(connections, syncs, strict=True):
        connection.sendall(frame.replace(_PLACE, _INT32.pack(generation_id)))
    for connection in connections:
        _check(_SYNCED.unpack_from(connection.frame())[2])


def _generation_of(answer: bytes) -> int:
    _, _, error, generation_id = _JOINED.unpack_from(answer)
    _check(error)
    return int(generation_id)


def _check(error: int) -> None:
    if error:
        raise RuntimeError(f"the broker answered {ErrorCode(error).name}")
