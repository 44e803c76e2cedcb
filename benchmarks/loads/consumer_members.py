"""Raw members of consumer groups (KIP-848): the rate of their heartbeats, and the cost of changes.

Their connections do not name their software, so kshim answers each heartbeat at once.
"""

from __future__ import annotations

import time
from uuid import uuid4

from benchmarks.generator import Load
from benchmarks.loads.requests import TOPIC, Asking, Request, exchange
from benchmarks.processor import Measured, Window
from benchmarks.raw import Connection
from benchmarks.servers import Target
from kshim.testing.wire import SIZE_BYTES, framed
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from schemas.registry import decode_response

VERSION = 1
TIMEOUT_MS = 120_000
CONNECTIONS = 8
AT_ONCE = 400
"""So many heartbeats are sent before their answers are read."""
JOINS, LEAVES = 0, -1


class GroupMember:
    """A member's epoch and partitions, as it knows them."""

    def __init__(self, group_id: str, topic: str) -> None:
        self._group_id, self._topic = group_id, topic
        self.member_id = str(uuid4())
        self.epoch = JOINS
        self.owned: tuple[TopicPartitions, ...] = ()
        self._has_news = True
        self._says_nothing: bytes | None = None

    def heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        """The next heartbeat: it joins, says what it owns by now, or says nothing."""
        joins = self.epoch == JOINS
        return ConsumerGroupHeartbeatRequest(
            group_id=self._group_id,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout_ms=TIMEOUT_MS if joins else -1,
            subscribed_topic_names=(self._topic,) if joins else None,
            topic_partitions=self.owned if self._has_news else None,
        )

    def leaves(self) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self._group_id, member_id=self.member_id, member_epoch=LEAVES
        )

    def hears_frame(self, frame: bytes) -> bool:
        """Like `hears`. An answer with the same bytes as an earlier one that said nothing is not decoded.

        Raises RuntimeError where it is an error.
        """
        if frame == self._says_nothing:
            self._has_news = False
            return False
        answer = decode_response(ApiKey.CONSUMER_GROUP_HEARTBEAT, VERSION, frame)[1]
        if answer.error_code != ErrorCode.NONE:
            raise RuntimeError(f"the broker answered {answer}")
        is_new = self.hears(answer)
        self._says_nothing = None if is_new else frame
        return is_new

    def hears(self, answer: ConsumerGroupHeartbeatResponse) -> bool:
        """Note an answer; return True if it says anything new."""
        self._has_news = answer.assignment is not None
        if answer.assignment is not None:
            self.owned = answer.assignment.topic_partitions
        is_new = self._has_news or answer.member_epoch != self.epoch
        self.epoch = answer.member_epoch
        return is_new

    def left(self) -> None:
        """Be ready to join again."""
        self.epoch, self.owned, self._has_news = JOINS, (), True


class Alone(Asking):
    """The only member of a group, with the only partition, on a connection of its own."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        group_id = f"benchmark-{uuid4()}"
        self.find_coordinator(group_id)
        self.member = GroupMember(group_id, TOPIC)
        while self.member.hears(self.ask(VERSION, self.member.heartbeat())) or not self.member.owned:
            time.sleep(0.05)


def heartbeat_of(alone: Alone) -> Request:
    return VERSION, alone.member.heartbeat()


def heartbeat(target: Target, load: Load, seconds: float) -> Measured:
    """The rate of heartbeats that say nothing, of members with nothing to do."""
    return exchange(target, heartbeat_of, load, seconds, Alone)


class Group:
    """Many members of one group, whose heartbeats share a few connections."""

    def __init__(self, bootstrap: str, members: int) -> None:
        group_id = f"benchmark-{uuid4()}"
        topic = Connection(bootstrap).new_topic(members)
        self._connections = [Connection(bootstrap) for _ in range(CONNECTIONS)]
        self._answers = [connection.makefile("rb") for connection in self._connections]
        self._connections[0].find_coordinator(group_id)
        self.members = [GroupMember(group_id, topic) for _ in range(members)]
        self.requests = 0

    def settle(self, after: int = 0) -> int:
        """All members send heartbeats until they have reached the same epoch, beyond `after`, and there is
        nothing new; return that epoch.
        """
        while self._beat() or len({member.epoch for member in self.members}) > 1 or self.epoch <= after:
            pass
        return self.epoch

    @property
    def epoch(self) -> int:
        return self.members[0].epoch

    def leave(self, member: GroupMember) -> None:
        self._connections[0].ask(VERSION, member.leaves())
        self.requests += 1
        member.left()

    def _beat(self) -> bool:
        """A heartbeat of each member; True if there was anything new."""
        is_new = False
        for begin in range(0, len(self.members), AT_ONCE):
            members = self.members[begin : begin + AT_ONCE]
            for number, connection in enumerate(self._connections):
                frames = [framed(VERSION, member.heartbeat()) for member in members[number::CONNECTIONS]]
                connection.sendall(b"".join(frames))
            for number, member in enumerate(members):
                is_new |= member.hears_frame(self._next_frame(number % CONNECTIONS))
        self.requests += len(self.members)
        return is_new

    def _next_frame(self, number: int) -> bytes:
        answers = self._answers[number]
        size = int.from_bytes(answers.read(SIZE_BYTES))
        frame = answers.read(size)
        if not size or len(frame) < size:
            raise ConnectionError("the broker closed a connection")
        return frame

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


def change(target: Target, load: Load, seconds: float) -> Measured:
    """A member leaves, and joins again: each time all others send heartbeats until they have the new epoch,
    and what moves has moved.
    """
    group = Group(target.bootstrap, load["members"])
    epoch = group.settle()
    last = group.members[-1]
    changes = group.requests = 0
    with Window(target.pid) as window:
        while window.so_far_s < seconds:
            group.leave(last)
            group.members.remove(last)
            epoch = group.settle(epoch)
            group.members.append(last)
            epoch = group.settle(epoch)
            changes += 2
    for member in tuple(group.members):
        group.leave(member)
    group.close()
    return window.measured(group.requests, {"changes/s": changes / window.seconds})
