"""kshim notices that the upstream does not answer, that it answers again, and which brokers run."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kshim.callers.once import Once
from kshim.upstream.link import LinkError
from kshim.upstream.looking import LOOK_S, SILENT_S, Looking
from kshim.upstream.own_topic import OwnTopic
from schemas.messages.metadata import MetadataRequest, MetadataResponse


class Looked:
    """An upstream that the test answers for, and what was seen of it."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.asked: list[Deferred[MetadataResponse]] = []
        self.seen: list[str | None] = []
        upstream: Any = self
        self.looking = Looking(self.clock, upstream, OwnTopic("own"), self._see, Once(self.clock))
        self.looking.start()

    def ask(self, request: MetadataRequest) -> Deferred[MetadataResponse]:
        assert [topic.name for topic in request.topics or ()] == ["own"]
        self.asked.append(Deferred())
        return self.asked[-1]

    def _see(self, found: MetadataResponse) -> None:
        self.seen.append(found.cluster_id)


def test_an_upstream_that_does_not_answer_is_silent() -> None:
    looked = Looked()
    looked.clock.advance(LOOK_S)
    looked.asked.pop().callback(MetadataResponse(cluster_id="c"))
    assert not looked.looking.is_silent
    looked.clock.advance(LOOK_S)
    looked.asked.pop().errback(LinkError("refused"))
    assert looked.looking.is_silent
    looked.clock.advance(LOOK_S)
    looked.asked.pop().callback(MetadataResponse(cluster_id="d"))
    assert not looked.looking.is_silent
    assert looked.seen == ["c", "d"]
    looked.clock.advance(LOOK_S)  # this question stays without an answer
    looked.clock.advance(SILENT_S)
    assert looked.looking.is_silent


def test_an_answer_after_the_stop_is_ignored() -> None:
    looked = Looked()
    looked.clock.advance(LOOK_S)
    looked.looking.stop()
    looked.asked.pop().callback(MetadataResponse(cluster_id="c"))
    assert looked.seen == []
    assert looked.clock.getDelayedCalls() == []
