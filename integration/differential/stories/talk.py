"""A talk with one server: requests over any number of connections, and answers made comparable.

A story is a function of a `Talk` that must leave the same transcript with both servers. Each story has its
own topics: their names get its prefix. In the transcript, session ids and topic ids are symbols, records are
the base offsets of their whole batches (Kafka may cut the last one), and times and addresses are left out.
"""

from __future__ import annotations

import select
import time
from typing import Any
from uuid import UUID

from integration.differential.playing.plain import NO_ID, Plain
from integration.differential.playing.player import PROBES, QUICK_S, REST_S
from integration.support.awaiting import wait_until
from kshim.testing.wire import Wire, api_key_of
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from schemas.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from schemas.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.records.batch import Record, decode_header, encode

TIMEOUT_S = 60
AT_MS = int(time.time() - 3600) * 1000
"""Recent: a marker has its server's time, and Kafka starts a new segment after seven days."""
ADDRESS = ("host", "port")
LED = {ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE}
NOTHING_TO_TELL: tuple[Any, ...] = ("", "-", -1, {})
FIRST_FETCH_BY_TOPIC_ID = 13


class Talk(Plain):
    """Talks to one server for one story."""

    sets = frozenset({("ListOffsetsResponse", "topics")})

    def __init__(self, host: str, port: int, story: str) -> None:
        self._address = (host, port)
        self._prefix = f"{story}."
        self._wires: dict[str, Wire] = {}
        self._sessions: dict[int, str] = {}
        self._producers: dict[int, str] = {}
        self.topic_ids: dict[str, UUID] = {}
        """Topic ids by the names that the story uses."""
        self._names: dict[UUID, str] = {NO_ID: ""}
        self.heard: list[str] = []
        """The texts that are compared."""

    # ---- requests

    def send(self, version: int, request: Any, *, via: str = "main") -> None:
        """Send a request; read its answer with `hear`."""
        self._wire(via).request(version, request)

    def hear(self, version: int, api_key: ApiKey, *, via: str = "main") -> Any:
        """Read the next answer on a connection, and keep it for the comparison."""
        answer = self._answer(version, api_key, via)
        self.heard.append(f"{api_key.name} v{version}: {self.plain(answer)}")
        return answer

    def ask(self, version: int, request: Any, *, via: str = "main") -> Any:
        self.send(version, request, via=via)
        return self.hear(version, api_key_of(request), via=via)

    def unheard(self, version: int, request: Any) -> Any:
        """Send a request whose answer is not compared."""
        self.send(version, request, via="unheard")
        return self._answer(version, api_key_of(request), "unheard")

    def rest(self, *, via: str = "main") -> None:
        """Wait until the request on a connection is answered or has come to rest, by the rule of `player`."""
        quick = 0
        for _ in range(PROBES):
            is_answered = bool(select.select([self._wire(via)], [], [], REST_S)[0])
            if is_answered or quick == 2:
                return
            began_s = time.monotonic()
            self.unheard(12, self.fetching(version=12))
            quick = quick + 1 if time.monotonic() - began_s < QUICK_S else 0

    # ---- steps

    def create(self, name: str, partitions: int = 1, **configs: str) -> None:
        entries = tuple(
            CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        )
        topic = CreatableTopic(
            name=self._prefix + name, num_partitions=partitions, replication_factor=1, configs=entries
        )
        (made,) = self.unheard(7, CreateTopicsRequest(topics=(topic,), timeout_ms=TIMEOUT_S * 1000)).topics
        assert not made.error_code, made
        self.topic_ids[name] = made.topic_id
        self._names[made.topic_id] = f"{name}#{sum(known.startswith(name) for known in self._names.values())}"
        self.wait_led(name, partitions)

    def wait_led(self, name: str, partitions: int = 1) -> None:
        """Wait until all partitions have leaders: a new topic, or a new server, needs a moment."""
        asked = self.fetching(tuple((name, index, 0) for index in range(partitions)), version=12)

        def is_led() -> bool:
            topics = self.unheard(12, asked).responses
            return {part.error_code for topic in topics for part in topic.partitions} <= LED

        wait_until(is_led, TIMEOUT_S, f"leaders of {name}")

    def delete(self, name: str) -> None:
        """Delete a topic, and wait until its name and id are unknown."""
        topics = (DeleteTopicState(name=self._prefix + name),)
        (gone,) = self.unheard(6, DeleteTopicsRequest(topics=topics, timeout_ms=TIMEOUT_S * 1000)).responses
        assert not gone.error_code, gone
        asked = self.fetching(((name, 0, 0),), version=12)
        while True:
            (topic,) = self.unheard(12, asked).responses
            if topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return

    def produce(
        self, name: str, partition: int = 0, *, count: int = 1, size: int = 10, at_ms: int = AT_MS
    ) -> None:
        """Produce one batch of `count` records with values of `size` bytes and timestamps from `at_ms` on."""
        batch = encode([Record(index, at_ms + index, None, b"x" * size) for index in range(count)])
        self.produce_batch(name, partition, batch)

    def produce_batch(self, name: str, partition: int, batch: bytes) -> None:
        data = (PartitionProduceData(index=partition, records=batch),)
        topics = (TopicProduceData(name=self._prefix + name, partition_data=data),)
        answer = self.unheard(9, ProduceRequest(acks=-1, timeout_ms=TIMEOUT_S * 1000, topic_data=topics))
        assert not answer.responses[0].partition_responses[0].error_code, answer

    def fetching(
        self,
        wanted: tuple[tuple[Any, ...], ...] = (),
        *,
        version: int,
        session: tuple[int, int] = (0, -1),
        forget: tuple[tuple[str, int], ...] = (),
        max_bytes: int = 1 << 20,
        partition_max_bytes: int = 1 << 20,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        isolation_level: int = 0,
        replica_id: int = -1,
    ) -> FetchRequest:
        """A Fetch of (topic, partition, offset[, fields of the partition]); session: id and epoch.

        Consecutive entries of one topic are grouped under it. A topic may be a UUID.
        """
        topics: list[tuple[Any, list[FetchPartition]]] = []
        for topic, index, offset, *more in wanted:
            if not topics or topics[-1][0] != topic:
                topics.append((topic, []))
            fields = {"partition_max_bytes": partition_max_bytes, **(more[0] if more else {})}
            topics[-1][1].append(FetchPartition(partition=index, fetch_offset=offset, **fields))
        return FetchRequest(
            replica_id=replica_id,
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            isolation_level=isolation_level,
            session_id=session[0],
            session_epoch=session[1],
            topics=tuple(
                FetchTopic(**self.topic_fields(topic), partitions=tuple(parts)) for topic, parts in topics
            ),
            forgotten_topics_data=tuple(
                ForgottenTopic(**self.topic_fields(topic), partitions=(index,)) for topic, index in forget
            ),
        )

    def fetch(self, version: int, *wanted: tuple[Any, ...], via: str = "main", **options: Any) -> Any:
        return self.ask(version, self.fetching(wanted, version=version, **options), via=via)

    def topic_fields(self, topic: str | UUID) -> dict[str, Any]:
        if isinstance(topic, UUID):
            return {"topic": "", "topic_id": topic}
        return {"topic": self._prefix + topic, "topic_id": self.topic_ids.get(topic, UUID(int=4711))}

    def name(self, topic: str) -> str:
        """The name that the server knows for a topic of the story."""
        return self._prefix + topic

    # ---- the wire

    def _wire(self, via: str) -> Wire:
        if via not in self._wires:
            self._wires[via] = Wire(*self._address)
        return self._wires[via]

    def _answer(self, version: int, api_key: ApiKey, via: str) -> Any:
        try:
            return self._wire(via).response(version, api_key)
        except ConnectionError as error:
            raise ConnectionError(f"{via} was closed; heard so far:\n" + "\n".join(self.heard)) from error

    def close(self) -> None:
        for connection in self._wires.values():
            connection.close()

    # ---- what is compared

    def plain(self, value: Any) -> Any:
        plain = super().plain(value)
        if not isinstance(plain, dict):
            return plain
        return {name: field for name, field in plain.items() if field not in NOTHING_TO_TELL}

    def plain_id(self, value: UUID) -> Any:
        return self._names.get(value, str(value))

    def plain_text(self, value: str) -> str:
        return value.removeprefix(self._prefix)

    def plain_field(self, entity: str, name: str, value: Any) -> Any:
        if name == "session_id" and value:
            return self._sessions.setdefault(value, f"<session {len(self._sessions) + 1}>")
        if name == "timestamp" and value > AT_MS + 1_000_000:
            return "<a marker's time>"
        if name == "producer_id":
            return self._producers.setdefault(value, f"<producer {len(self._producers) + 1}>")
        if name == "records":
            return value if value is None else list(_base_offsets(value))
        return "-" if name in ADDRESS else super().plain_field(entity, name, value)


def _base_offsets(records: Any) -> Any:
    at = 0
    while at + 61 <= len(records):
        header = decode_header(records, at)
        at += header.size
        if at <= len(records):
            yield header.base_offset
