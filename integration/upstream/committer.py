"""Commits and reads the offset of one group, as a client would that finds the coordinator by itself."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from integration.support.server import Server
from kshim.testing.wire import Wire
from schemas.error_code import ErrorCode
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

COMMIT, FETCH, FIND = 8, 8, 3
PATIENCE_S = 2.0
PAUSE_S = 0.02


class Read(NamedTuple):
    """An answer to OffsetFetch."""

    error: ErrorCode
    offset: int


def commit_request(group_id: str, topic: str, offset: int) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=""
    )
    topics = (OffsetCommitRequestTopic(name=topic, partitions=(partition,)),)
    return OffsetCommitRequest(group_id=group_id, member_id="", topics=topics)


def fetch_request(
    group_id: str, topic: str, partitions: Sequence[int] = (0,), *, stable: bool = False
) -> OffsetFetchRequest:
    """stable: offsets that wait for the end of a transaction are answered with an error."""
    topics = (OffsetFetchRequestTopics(name=topic, partition_indexes=tuple(partitions)),)
    groups = (OffsetFetchRequestGroup(group_id=group_id, topics=topics),)
    return OffsetFetchRequest(groups=groups, require_stable=stable)


def read_of(answer: object) -> Read:
    """Read an answer to `fetch_request`."""
    (group,) = answer.groups
    if group.error_code:
        return Read(ErrorCode(group.error_code), -1)
    return Read(ErrorCode.NONE, group.topics[0].partitions[0].committed_offset)


class Committer:
    """Asks whichever of the servers answers where the group's coordinator is, until it has an answer."""

    def __init__(self, servers: list[Server], group_id: str, topic: str) -> None:
        self.servers, self.group_id, self.topic = servers, group_id, topic
        self.acknowledged = -1
        self.faults: list[str] = []
        self._wire: Wire | None = None

    def leader(self) -> Server | None:
        """The server that coordinates the group, as any of them says that answers."""
        address = self._coordinator()
        if address is None:
            return None
        (found,) = (each for each in self.servers if "{}:{}".format(*address) in each.bootstrap.split(","))
        return found

    def _coordinator(self) -> tuple[str, int] | None:
        """The coordinator's address. A kshim that is alone names any of its ports."""
        return next((found for each in self.servers if (found := self._found(each)) is not None), None)

    def _found(self, server: Server) -> tuple[str, int] | None:
        try:
            with Wire(server.host, server.port, timeout_s=PATIENCE_S) as wire:
                answer = wire.ask(FIND, FindCoordinatorRequest(key=self.group_id))
        except OSError:
            return None
        return None if answer.error_code else (answer.host, answer.port)

    def commit(self, offset: int) -> bool:
        """True if the commit was acknowledged. If False, it may have been performed or not."""
        try:
            answer = self._ask(COMMIT, commit_request(self.group_id, self.topic, offset))
        except OSError:
            self._forget()
            return False
        if answer is None or answer.topics[0].partitions[0].error_code != ErrorCode.NONE:
            self._forget()
            return False
        self.acknowledged = offset
        return True

    def read(self) -> int | None:
        """The committed offset; None if no server answers. Notes a fault if it goes back."""
        known = self.acknowledged
        try:
            answer = self._ask(FETCH, fetch_request(self.group_id, self.topic))
        except OSError:
            self._forget()
            return None
        read = None if answer is None else read_of(answer)
        if read is None or read.error is not ErrorCode.NONE:
            self._forget()
            return None
        if read.offset < known:
            self.faults.append(f"{known} was acknowledged, then {read.offset} read")
        return read.offset

    def stable_offsets(self, partitions: Sequence[int]) -> dict[int, int]:
        """The committed offsets, by partition; without those that wait for the end of a transaction, and
        empty if no server answers.
        """
        request = fetch_request(self.group_id, self.topic, partitions, stable=True)
        try:
            answer: Any = self._ask(FETCH, request)
        except OSError:
            self._forget()
            return {}
        if answer is None or answer.groups[0].error_code:
            self._forget()
            return {}
        return {
            each.partition_index: each.committed_offset
            for topic in answer.groups[0].topics
            for each in topic.partitions
            if not each.error_code
        }

    def _ask(self, version: int, request: object) -> object:
        if self._wire is None:
            address = self._coordinator()
            if address is None:
                time.sleep(PAUSE_S)
                return None
            self._wire = Wire(*address, timeout_s=PATIENCE_S)
        return self._wire.ask(version, request)

    def _forget(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None
            time.sleep(PAUSE_S)
