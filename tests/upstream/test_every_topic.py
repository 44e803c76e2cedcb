"""All topics of the upstream: one question for all who wait, and a version that grows with new topics."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kshim.turns.rounds import Rounds
from kshim.upstream.every_topic import EveryTopic
from kshim.upstream.link import LinkError
from kshim.upstream.topics import Topics
from schemas.api_key import ApiKey
from schemas.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from schemas.registry import VERSIONS, encode_response
from tests.api.harness import PENDING, AtOnce, result

NEWEST = VERSIONS[ApiKey.METADATA][-1]


def listed(*names: str, partitions: int = 1) -> bytes:
    """The frame of an answer that lists topics."""
    each = tuple(MetadataResponsePartition(partition_index=index) for index in range(partitions))
    topics = (
        MetadataResponseTopic(name=name, topic_id=UUID(int=len(name)), partitions=each) for name in names
    )
    return encode_response(ApiKey.METADATA, NEWEST, 1, MetadataResponse(topics=tuple(topics)))


class Upstream:
    """Answers by hand."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.clock.advance(1000)
        self.waiting: list[Deferred[bytes]] = []
        topics: Any = Topics(lambda _: Deferred(), self.clock)
        aside: Any = AtOnce()
        self.every = EveryTopic(self.link, topics, aside, Rounds(self.clock), lambda: True)

    async def link(self) -> Any:
        return SimpleNamespace(address="10.0.0.1:9092", version=lambda _: NEWEST, ask=self.ask)

    def ask(self, request: Any, *, is_read: bool) -> Deferred[bytes]:
        assert request.topics is None
        assert not is_read, "it is decoded aside"
        self.waiting.append(Deferred())
        return self.waiting[-1]

    def answer(self, answer: bytes | LinkError) -> None:
        waits = self.waiting.pop()
        waits.errback(answer) if isinstance(answer, LinkError) else waits.callback(answer)
        self.clock.advance(0)


def test_all_who_wait_share_a_question() -> None:
    it = Upstream()
    looks = [it.every.look() for _ in range(3)]
    assert len(it.waiting) == 1
    assert [result(each) for each in looks] == [PENDING] * 3
    it.answer(listed("a", "bb", partitions=4))
    assert [result(each) for each in looks] == [None] * 3
    assert {name: each.partitions for name, each in it.every.by_name.items()} == {"a": 4, "bb": 4}
    assert it.every.names_by_id == {UUID(int=1): "a", UUID(int=2): "bb"}


@pytest.mark.parametrize("answer", [LinkError("down"), b"\0\0\0\1 nonsense"])
def test_an_answer_that_does_not_come_or_cannot_be_read(answer: bytes | LinkError) -> None:
    it = Upstream()
    looks = [it.every.look() for _ in range(2)]
    it.answer(answer)
    for each in looks:
        with pytest.raises(LinkError, match=r"down|upstream broker 10\.0\.0\.1:9092 lists topics"):
            result(each)
    again = it.every.look()
    it.answer(listed("a"))
    assert result(again) is None


def test_the_version_grows_when_topics_are_created_and_only_then() -> None:
    it = Upstream()
    versions = []
    announced: list[int] = []
    it.every.created = lambda: announced.append(it.every.version)
    for names in (("a", "bb"), ("a", "bb"), ("a",), ("a", "ccc")):
        it.clock.advance(10)
        it.every.look()
        it.answer(listed(*names))
        versions.append(it.every.version)
    assert versions[0] == versions[1] == versions[2] == 1_010_000
    assert versions[3] == 1_040_000, "the time, so that the versions of several kshim can be compared"
    assert announced == [versions[0], versions[3]]
