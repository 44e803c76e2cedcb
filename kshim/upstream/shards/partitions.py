"""Asks the leaders of one topic's partitions at the upstream: appends, fetches, and the ends of the logs.

No call errbacks. A call without an answer fires with nothing, the leaders are looked up again, and the caller
asks again. A broker answers the requests of a connection one after the other, and an append waits for the
replicas. So each broker has two links. What is asked in one turn of the reactor, or while an append is under
way, goes into one request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kshim.configs.endpoint import Endpoint
from kshim.storage.clock import Call
from kshim.upstream.interfaces import Upstream
from kshim.upstream.link import Link, LinkError
from kshim.upstream.shards.answers import NO_ANSWER, Answer
from schemas.error_code import ErrorCode
from schemas.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from schemas.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from schemas.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

if TYPE_CHECKING:
    from kshim.storage.reactor import Reactor


logger = logging.getLogger(__name__)

ANSWER_S = 5.0
LOOK_AGAIN_S = 0.2
"""The least time between two lookups of the leaders."""
FETCH_BYTES = 1024 * 1024
"""Limit of one fetch, which is looked through in one go."""
NEWEST_BY_NAME = 12
"""The newest version of Produce and Fetch that names topics; later versions use their ids."""
NOT_ITS_LEADER = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Answers that say nothing of a partition, as another broker leads it."""
LATEST = -1
ALL_REPLICAS = -1

Asked = TypeVar("Asked")


class Fetched(NamedTuple):
    """The result of a fetch."""

    data: bytes
    """Whole batches. The first one may begin before the requested offset."""
    high_watermark: int


class _Gathered(Generic[Asked]):
    """Questions to one broker that go into its next request."""

    def __init__(self) -> None:
        self.waiting: list[tuple[int, Asked, Deferred[object]]] = []
        """(partition, question, the Deferred of its answer)"""
        self.is_under_way = False


class _Broker:
    """The links to one broker, made when they are needed."""

    def __init__(self, upstream: Upstream, address: Endpoint) -> None:
        self.address = address
        self.appends: _Gathered[bytes | memoryview] = _Gathered()
        self.ends: _Gathered[None] = _Gathered()
        self._upstream = upstream
        self._links: dict[str, Link] = {}
        self._is_closed = False

    async def ask(self, use: str, request: Any, **options: Any) -> Any:
        """Send a request on the link for `use`, and return the response. Raises LinkError."""
        link = self._links.get(use)
        if link is None or not link.is_open:
            link = await self._upstream.connect(self.address, ANSWER_S)
            if self._is_closed:
                link.close()
            self._links[use] = link
        return await link.ask(request, timeout_s=ANSWER_S, **options)

    def close(self) -> None:
        self._is_closed = True
        for link in self._links.values():
            link.close()


class Partitions:
    """Asks the leaders of a topic's partitions."""

    def __init__(
        self, reactor: Reactor, topic: str, upstream: Upstream, heard: Callable[[int], object]
    ) -> None:
        """heard: called with each partition whose leader has answered for it."""
        self._heard = heard
        self._reactor = reactor
        self._topic = topic
        self._upstream = upstream
        self._brokers: dict[int, _Broker] = {}
        self._leaders: Mapping[int, int] = {}
        """The node id of each partition's leader."""
        self._look_later: Call | None = None
        self._is_looking = False
        self._looked_s = -LOOK_AGAIN_S
        self._is_stopped = False

    # ---- questions

    def append(self, partition: int, batch: bytes | memoryview) -> Deferred[Answer]:
        """Append a batch. Fires when all in-sync replicas have it, or with the reason why not."""
        return self._gather(partition, batch, lambda broker: broker.appends, self._send_appends, NO_ANSWER)

    def end(self, partition: int) -> Deferred[int | None]:
        """Ask for the end of the log. Fires with the high watermark; None without an answer."""
        return self._gather(partition, None, lambda broker: broker.ends, self._send_ends, None)

    def fetch(self, partition: int, offset: int, max_bytes: int = FETCH_BYTES) -> Deferred[Fetched | None]:
        """Fetch from an offset on, at least one batch if there is one. Fires with None without an answer."""
        return Deferred.fromCoroutine(self._fetch(partition, offset, max_bytes))

    def stop(self) -> None:
        """Ask nothing more."""
        self._is_stopped = True
        if self._look_later is not None:
            self._look_later.cancel()
            self._look_later = None
        for broker in self._brokers.values():
            broker.close()

    # ---- requests

    def _leader(self, partition: int) -> _Broker | None:
        """Return the leader of a partition. If it is not known, look it up and return None."""
        broker = self._brokers.get(self._leaders.get(partition, -1))
        if broker is None:
            self.look()
        return broker

    def _gather(
        self,
        partition: int,
        asked: Any,
        of: Callable[[_Broker], _Gathered[Any]],
        send: Callable[[_Broker], object],
        nothing: object,
    ) -> Deferred[Any]:
        answer: Deferred[Any] = Deferred()
        broker = self._leader(partition)
        if broker is None or self._is_stopped:
            self._reactor.callLater(0, answer.callback, nothing)
            return answer
        gathered = of(broker)
        gathered.waiting.append((partition, asked, answer))
        if not gathered.is_under_way:
            gathered.is_under_way = True
            self._reactor.callLater(0, self._send_all, broker, gathered, send)
        return answer

    def _send_all(self, broker: _Broker, gathered: _Gathered[object], send: Callable[[_Broker], Any]) -> None:
        """Send the gathered questions. After the answer, send what was gathered meanwhile."""

        def done(_: object) -> None:
            gathered.is_under_way = bool(gathered.waiting)
            if gathered.is_under_way:
                self._send_all(broker, gathered, send)

        Deferred.fromCoroutine(send(broker)).addErrback(_log_fault).addCallback(done)

    async def _send_appends(self, broker: _Broker) -> None:
        waiting, broker.appends.waiting = broker.appends.waiting, []
        data = tuple(PartitionProduceData(index=index, records=batch) for index, batch, _ in waiting)
        topic = TopicProduceData(name=self._topic, partition_data=data)
        timeout_ms = int(ANSWER_S * 1000) - 1000  # the broker answers before kshim stops waiting
        request = ProduceRequest(acks=ALL_REPLICAS, timeout_ms=timeout_ms, topic_data=(topic,))
        found: dict[int, Answer] = {}
        try:
            response: ProduceResponse = await broker.ask("append", request, newest=NEWEST_BY_NAME)
            for each in response.responses[0].partition_responses:
                found[each.index] = Answer(_error(each.error_code), each.base_offset)
        except LinkError as error:
            logger.debug("%s", error)
        self._answer(waiting, found, NO_ANSWER, lambda answer: answer.error_code is not ErrorCode.NONE)

    async def _send_ends(self, broker: _Broker) -> None:
        waiting, broker.ends.waiting = broker.ends.waiting, []
        partitions = tuple(
            ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index, _, _ in waiting
        )
        topic = ListOffsetsTopic(name=self._topic, partitions=partitions)
        found: dict[int, int | None] = {}
        try:
            request = ListOffsetsRequest(replica_id=-1, topics=(topic,))
            response: ListOffsetsResponse = await broker.ask("read", request)
            for each in response.topics[0].partitions:
                if each.error_code == ErrorCode.NONE:
                    found[each.partition_index] = each.offset
        except LinkError as error:
            logger.debug("%s", error)
        self._answer(waiting, found, None, lambda end: end is None)

    async def _fetch(self, partition: int, offset: int, max_bytes: int) -> Fetched | None:
        broker = self._leader(partition)
        if broker is None:
            return None
        asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
        topic = FetchTopic(topic=self._topic, partitions=(asked,))
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(topic,))
        try:
            response: FetchResponse = await broker.ask("read", request, newest=NEWEST_BY_NAME)
            (found,) = response.responses[0].partitions
        except LinkError as error:
            logger.debug("%s", error)
            self.look()
            return None
        if found.error_code != ErrorCode.NONE:
            logger.debug("%s-%d: %s", self._topic, partition, _error(found.error_code).name)
            self.look()
            return None
        self._heard(partition)
        return Fetched(bytes(found.records or b""), found.high_watermark)

    def _answer(
        self,
        waiting: list[tuple[int, Any, Deferred[Any]]],
        found: Mapping[int, Any],
        nothing: object,
        is_bad: Callable[[Any], bool],
    ) -> None:
        for index, each in found.items():
            if not (isinstance(each, Answer) and each.error_code in NOT_ITS_LEADER):
                self._heard(index)
        answers = [(answer, found.get(index, nothing)) for index, _, answer in waiting]
        if any(is_bad(each) for _, each in answers):
            self.look()
        for answer, each in answers:
            answer.callback(each)

    # ---- leaders

    def look(self) -> None:
        """Look the leaders up soon."""
        if self._is_looking or self._look_later is not None or self._is_stopped:
            return
        wait_s = max(0.0, self._looked_s + LOOK_AGAIN_S - self._reactor.seconds())
        self._look_later = self._reactor.callLater(wait_s, self._look)

    def _look(self) -> None:
        self._look_later = None
        Deferred.fromCoroutine(self.learn()).addErrback(_log_fault)

    async def learn(self) -> bool:
        """Look the leaders up now; return True if all partitions have one."""
        self._is_looking = True
        self._looked_s = self._reactor.seconds()
        request = MetadataRequest(
            topics=(MetadataRequestTopic(name=self._topic),), allow_auto_topic_creation=False
        )
        try:
            response: MetadataResponse = await self._upstream.ask(request)
        except LinkError as error:
            logger.debug("%s", error)
            return False
        finally:
            self._is_looking = False
        return self._learn(response)

    def _learn(self, response: MetadataResponse) -> bool:
        addresses = {each.node_id: Endpoint(each.host, each.port) for each in response.brokers}
        for node_id, address in addresses.items():
            known = self._brokers.get(node_id)
            if known is None or known.address != address:
                if known is not None:
                    known.close()
                self._brokers[node_id] = _Broker(self._upstream, address)
        (topic,) = response.topics
        self._leaders = {each.partition_index: each.leader_id for each in topic.partitions}
        return bool(topic.partitions) and all(leader in addresses for leader in self._leaders.values())


def _error(code: int) -> ErrorCode:
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def _log_fault(failure: Failure) -> None:
    logger.error("internal error: %s", failure.getTraceback())
