"""Ends of partitions: their leaders are asked when somebody looks; until then they are unknown."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock

from kshim.cluster import Topic
from kshim.cluster.topics import Partition
from kshim.configs.endpoint import Endpoint
from kshim.storage.interfaces import Offsets
from kshim.upstream.ends import EARLIEST, FRESH_S, UNKNOWN, Ends
from kshim.upstream.link import LinkError
from schemas.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from schemas.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.api.harness import PENDING, result

NOT_KNOWN = Offsets(UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)


class Upstream:
    """Partition n of "t" is led by broker n, and has the records from n to 10 n."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.clock.advance(100)
        self.down: set[int] = set()
        self.lost: set[int] = set()
        self.asked = 0
        self.waiting: list[Deferred[None]] | None = None
        partitions = tuple(Partition(index, 100 + index, 0) for index in range(3))
        topics = {"t": Topic("t", UUID(int=1), partitions)}
        self.ends = Ends(self.clock, self, topics, self.address)

    def address(self, node_id: int) -> Endpoint:
        if node_id in self.lost:
            raise KeyError(node_id)
        return Endpoint("b", node_id)

    def connect(self, address: Endpoint, timeout_s: float) -> Deferred[Any]:
        if address.port in self.down:
            return fail(LinkError("down"))
        return succeed(Leader())

    def ask(self, request: MetadataRequest) -> Deferred[MetadataResponse]:
        self.asked += 1
        partitions = tuple(MetadataResponsePartition(partition_index=n, leader_id=n) for n in range(3))
        response = MetadataResponse(topics=(MetadataResponseTopic(name="t", partitions=partitions),))
        if self.waiting is None:
            return succeed(response)
        waits: Deferred[None] = Deferred()
        self.waiting.append(waits)
        return waits.addCallback(lambda _: response)

    def known(self) -> list[Offsets]:
        return [self.ends.offsets(100 + index) for index in range(3)]


class Leader:
    is_open = True

    def ask(self, request: ListOffsetsRequest, timeout_s: float) -> Deferred[ListOffsetsResponse]:
        (topic,) = request.topics
        found = [
            ListOffsetsPartitionResponse(
                partition_index=each.partition_index,
                offset=each.partition_index * (1 if each.timestamp == EARLIEST else 10),
                error_code=6 if each.partition_index == 2 and each.timestamp == EARLIEST else 0,
            )
            for each in topic.partitions
        ]
        topics = (ListOffsetsTopicResponse(name=topic.name, partitions=tuple(found)),)
        return succeed(ListOffsetsResponse(topics=topics))


def test_a_look_learns_them() -> None:
    upstream = Upstream()
    assert result(upstream.ends.look()) is None
    assert upstream.known() == [Offsets(0, 0, 0, 0), Offsets(1, 10, 10, 10), Offsets(UNKNOWN, 20, 20, 20)]
    assert upstream.ends.offsets(999) == NOT_KNOWN
    assert upstream.asked == 1


def test_they_are_asked_for_again_after_a_time() -> None:
    upstream = Upstream()
    result(upstream.ends.look())
    result(upstream.ends.look())
    assert upstream.asked == 1
    upstream.clock.advance(FRESH_S)
    upstream.ends.offsets(100)
    assert upstream.asked == 2


def test_those_who_look_together_ask_once() -> None:
    upstream = Upstream()
    upstream.waiting = []
    looks = [upstream.ends.look(), upstream.ends.look()]
    assert upstream.known() == [NOT_KNOWN] * 3
    assert [result(look) for look in looks] == [PENDING] * 2
    looks.append(upstream.ends.look())
    (waits,) = upstream.waiting
    waits.callback(None)
    assert looks[2].called
    assert upstream.asked == 1


@pytest.mark.parametrize("way", ["down", "lost"])
def test_a_leader_that_does_not_answer_leaves_its_partitions_unknown(way: str) -> None:
    upstream = Upstream()
    getattr(upstream, way).add(1)
    result(upstream.ends.look())
    assert upstream.known() == [Offsets(0, 0, 0, 0), NOT_KNOWN, Offsets(UNKNOWN, 20, 20, 20)]


@pytest.mark.parametrize("is_down", [True, False])
def test_offsets_at_a_time(*, is_down: bool) -> None:
    upstream = Upstream()
    upstream.down = {1} if is_down else set()
    found = result(Deferred.fromCoroutine(upstream.ends.at(["t"], 1_700_000_000_000)))
    assert found == {("t", 0): 0, ("t", 2): 20} | ({} if is_down else {("t", 1): 10})
