"""How long a rebalance of a large group takes: all rejoin, the leader assigns, all sync.

    python -m benchmarks.rebalance 127.0.0.1:9092 [PEER_HOST:PORT] [--members 1000]

Each member is a raw connection. Part of the time goes into making requests and reading answers here.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any
from uuid import uuid4

from benchmarks.raw import Connection
from schemas.api_key import ApiKey
from schemas.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

JOIN_VERSION, SYNC_VERSION = 3, 2
ROUNDS = 5
TIMEOUT_MS = 60_000


class Group:
    """A group of raw members, each on a connection of its own; the first one leads."""

    def __init__(self, bootstrap: str, members: int) -> None:
        self.group_id = f"benchmark-{uuid4()}"
        self.watch = Connection(bootstrap)
        self.watch.find_coordinator(self.group_id)
        self.connections = [Connection(bootstrap) for _ in range(members)]
        self.member_ids = [""] * members
        self._send_join(0)
        self._receive_joined(0)
        for index in range(1, members):
            self._send_join(index)
        self._wait_for(lambda group: len(group.members) == members)
        self._send_join(0)
        self._complete()

    def round(self) -> float:
        """The seconds that one rebalance takes; the leader's JoinGroup starts it."""
        began = time.perf_counter()
        self._send_join(0)
        self._wait_for(lambda group: group.group_state == "PreparingRebalance")
        for index in range(1, len(self.connections)):
            self._send_join(index)
        self._complete()
        return time.perf_counter() - began

    def _complete(self) -> None:
        """Finish a rebalance for which everybody has sent JoinGroup: read the answers, and sync."""
        generations = {self._receive_joined(index) for index in range(len(self.connections))}
        (generation_id,) = generations
        assigned = tuple(
            SyncGroupRequestAssignment(member_id=member_id, assignment=b"\0" * 40)
            for member_id in self.member_ids
        )
        for index, (connection, member_id) in enumerate(zip(self.connections, self.member_ids, strict=True)):
            request = SyncGroupRequest(
                group_id=self.group_id,
                generation_id=generation_id,
                member_id=member_id,
                assignments=() if index else assigned,
            )
            connection.request(SYNC_VERSION, request)
        for connection in self.connections:
            connection.response(SYNC_VERSION, ApiKey.SYNC_GROUP)

    def _wait_for(self, condition: Callable[[DescribedGroup], bool]) -> None:
        request = DescribeGroupsRequest(groups=(self.group_id,))
        deadline = time.monotonic() + TIMEOUT_MS / 1000
        while not condition(self.watch.ask(1, request).groups[0]):
            if time.monotonic() > deadline:
                raise TimeoutError("the group did not reach that state")

    def _send_join(self, index: int) -> None:
        self.connections[index].request(JOIN_VERSION, self._join_request(self.member_ids[index]))

    def _receive_joined(self, index: int) -> int:
        answer: JoinGroupResponse = self.connections[index].response(JOIN_VERSION, ApiKey.JOIN_GROUP)
        self.member_ids[index] = answer.member_id
        return answer.generation_id

    def _join_request(self, member_id: str) -> JoinGroupRequest:
        protocol = JoinGroupRequestProtocol(name="none", metadata=b"\0" * 40)
        return JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=TIMEOUT_MS,
            rebalance_timeout_ms=TIMEOUT_MS,
            member_id=member_id,
            protocol_type="benchmark",
            protocols=(protocol,),
        )


def measure(bootstrap: str, members: int) -> list[float]:
    """The seconds of several rebalances."""
    group = Group(bootstrap, members)
    return [group.round() for _ in range(ROUNDS)]


def main() -> None:
    """Print one line for each broker."""
    parser = argparse.ArgumentParser()
    parser.add_argument("brokers", nargs="+")
    parser.add_argument("--members", type=int, default=1000)
    options: Any = parser.parse_args()
    for broker in options.brokers:
        rounds = measure(broker, options.members)
        shown = f"median {median(rounds):.3f} s, {min(rounds):.3f} to {max(rounds):.3f}"
        print(f"{broker:22} {options.members} members, {ROUNDS} rounds: {shown}", flush=True)


if __name__ == "__main__":
    main()
