"""The topics of an upstream that answers by hand, or at once."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from twisted.internet.defer import Deferred, fail
from twisted.internet.task import Clock

from kshim.upstream.link import LinkError
from kshim.upstream.topics import Topics
from schemas.error_code import ErrorCode
from schemas.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

A, B = UUID(int=10), UUID(int=11)


class Upstream:
    """Answers by hand, or at once."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.topics: dict[str, tuple[UUID, int]] = {}
        """Id and number of partitions, by name."""
        self.leader = 1
        """Of all partitions."""
        self.asked: list[MetadataRequest] = []
        self.waiting: list[Deferred[MetadataResponse]] | None = None
        self.is_down = False
        self.told: list[tuple[str, str]] = []
        self.deleted: list[str] = []
        self.known = Topics(self.ask, self.clock)
        self.known.on_change(lambda name, change: self.told.append((name, change)))
        self.known.on_deletion(self.delete)

    def delete(self, topics: Mapping[str, UUID]) -> None:
        self.deleted += topics

    def ask(self, request: MetadataRequest) -> Deferred[MetadataResponse]:
        if self.is_down:
            return fail(LinkError("down"))
        assert not request.allow_auto_topic_creation
        self.asked.append(request)
        answer: Deferred[MetadataResponse] = Deferred()
        answer.addCallback(lambda _: self.response(request))
        if self.waiting is None:
            answer.callback(None)
        else:
            self.waiting.append(answer)
        return answer

    def response(self, request: MetadataRequest) -> MetadataResponse:
        assert request.topics is not None
        by_name = any(topic.name for topic in request.topics)
        found = []
        for asked in request.topics:
            name = asked.name or next((n for n, (i, _) in self.topics.items() if i == asked.topic_id), None)
            if name in self.topics:
                topic_id, count = self.topics[name]
                partitions = tuple(
                    MetadataResponsePartition(
                        partition_index=n,
                        leader_id=self.leader,
                        replica_nodes=(1, 2),
                        isr_nodes=(self.leader,),
                    )
                    for n in reversed(range(count))
                )
                found.append(MetadataResponseTopic(name=name, topic_id=topic_id, partitions=partitions))
            else:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if by_name else ErrorCode.UNKNOWN_TOPIC_ID
                found.append(MetadataResponseTopic(name=asked.name, error_code=error))
        return MetadataResponse(topics=tuple(found))

    def names_asked(self) -> list[str | None]:
        asked, self.asked = self.asked, []
        return [topic.name for request in asked for topic in request.topics or ()]
