"""A server without sockets that is asked over HTTP, by browsers and others, and by Kafka's clients."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from http.client import HTTPResponse
from typing import Any, NamedTuple

import pytest
from twisted.internet.error import ConnectionDone
from twisted.python.failure import Failure

from kshim.configs.config import Config
from kshim.configs.endpoint import Endpoint
from kshim.http.channel import Site
from kshim.http.facts import Facts
from kshim.http.guard import Guard
from kshim.http.listener import HttpListener
from kshim.http.routes import new_routes
from kshim.server.local import LocalBackend
from kshim.server.parts import Parts
from kshim.server.server import Server
from kshim.storage.memory import MemoryStore
from schemas.api_key import ApiKey
from schemas.consumer_protocol import ConsumerProtocolAssignment, TopicPartition, encode_assignment
from schemas.error_code import ErrorCode
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.messages.create_topics import CreatableTopic, CreateTopicsRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from schemas.records.batch import Record, encode
from tests.api.harness import AtOnce
from tests.network.transport import Transport
from tests.ports_in_memory import Client, Reactor

CONFIG = Config(
    log_dirs=":memory:",
    listeners="127.0.0.1:9092",
    http_listener=Endpoint("127.0.0.1", 8080),
    offsets_topic_num_partitions=2,
    offsets_topic_replication_factor=1,
)
HOST = "127.0.0.1:8080"


Headers = Mapping[str, str] | None


class Told(NamedTuple):
    """Something that is reported."""

    group_id: str = ""
    kind: str = "test"


class Reply:
    """An answer that has arrived whole."""

    def __init__(self, received: bytes, method: str) -> None:
        class Received:
            def makefile(self, mode: str) -> io.BytesIO:
                return io.BytesIO(received)

        response = HTTPResponse(Received(), method=method)
        response.begin()
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Slow(Transport):
    """Holds 64 KiB that its client does not read, as Twisted's does, before it asks for a pause."""

    def write(self, data: bytes) -> None:
        self.writeSequence([data])

    def writeSequence(self, data: Iterable[bytes]) -> None:  # noqa: N802
        self.io.write(b"".join(data))
        if len(self.value()) > 64 * 1024 and self.producer is not None:
            self.producer.pauseProducing()


class Browser:
    """A connection over HTTP."""

    def __init__(self, reactor: Reactor, site: Site, transport: Transport) -> None:
        self._reactor = reactor
        self.transport = transport
        self.channel = site.buildProtocol(self.transport.peerAddr)
        self.is_refused = self.channel is None
        if self.channel is not None:
            self.channel.makeConnection(self.transport)

    def send(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> None:
        """Send a request, and let the server do what it can do now."""
        lines = [f"{method} {target} HTTP/1.1"]
        given = {
            "Host": HOST,
            **({} if body is None else {"Content-Length": str(len(body))}),
            **(headers or {}),
        }
        lines += [f"{name}: {value}" for name, value in given.items()]
        self.channel.dataReceived("\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b""))
        self._reactor.advance(0)

    def ask(self, method: str, target: str, headers: Headers = None, body: bytes | None = None) -> Reply:
        self.transport.clear()
        self.send(method, target, headers, body)
        return Reply(self.transport.value(), method)

    def events(self) -> list[tuple[str, str, Any]]:
        """The server-sent events since the last call: (event, id, data)."""
        text = _joined(self.transport.value()).decode()
        self.transport.clear()
        found = []
        for block in text.split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
            if "data" in fields:
                found.append((fields["event"], fields.get("id", ""), json.loads(fields["data"])))
        return found

    def close(self) -> None:
        self.channel.connectionLost(Failure(ConnectionDone()))


def _joined(received: bytes) -> bytes:
    """The chunks of a body; a head before them is left out."""
    rest = received.partition(b"\r\n\r\n")[2] if received.startswith(b"HTTP/") else received
    chunks = []
    while rest:
        length, _, rest = rest.partition(b"\r\n")
        chunks.append(rest[: int(length, 16)])
        rest = rest[int(length, 16) + 2 :]
    return b"".join(chunks)


class Kshim:
    """A server; `site` is what HTTP arrives at."""

    def __init__(self, **config: Any) -> None:
        self.reactor = Reactor()
        self.config = replace(CONFIG, **config)
        self.parts, self.store = Parts(self.config, self.reactor), MemoryStore()
        self.backend = LocalBackend(self.parts, self.store)
        self.server = Server(self.parts, self.backend)
        self.server.start()
        listener = self.server._http
        assert isinstance(listener, HttpListener)
        assert listener._site is not None
        facts: Facts = listener._facts
        self.facts = replace(facts, aside=AtOnce())
        self.site = Site(self.facts, new_routes(self.facts), Guard(self.config.http_token))
        self.site.guard.port = 8080
        self.reactor.advance(0)

    def browser(self, transport: Transport | None = None) -> Browser:
        return Browser(self.reactor, self.site, transport or Transport())

    def ask(self, method: str, target: str, headers: Headers = None, body: bytes | None = None) -> Reply:
        return self.browser().ask(method, target, headers, body)

    def get(self, target: str, **headers: str) -> Reply:
        return self.ask("GET", target, {name.replace("_", "-"): value for name, value in headers.items()})

    def client(self) -> Client:
        """One of Kafka."""
        return Client(self.reactor, 1, "app")


def create_topic(client: Client, name: str, partitions: int = 1) -> None:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    (made,) = client.ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=(topic,)), 7).topics
    assert made.error_code == ErrorCode.NONE


def produce(client: Client, topic: str, count: int, partition: int = 0) -> None:
    batch = encode([Record(offset, 1000, None, b"x") for offset in range(count)])
    data = TopicProduceData(
        name=topic, partition_data=(PartitionProduceData(index=partition, records=batch),)
    )
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=(data,))
    (produced,) = client.ask(ApiKey.PRODUCE, request, 9).responses
    assert produced.partition_responses[0].error_code == ErrorCode.NONE


def join(client: Client, reactor: Reactor, group_id: str, assignment: Mapping[str, Sequence[int]]) -> str:
    """Make the client the only member of a group; return its id."""
    client.ask(
        ApiKey.API_VERSIONS,
        ApiVersionsRequest(client_software_name="apache-kafka-java", client_software_version="4.2.0"),
        3,
    )
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range"),),
    )
    client.ask(ApiKey.JOIN_GROUP, request, 3)
    reactor.advance(1)
    joined = client.answer
    assert joined.error_code == ErrorCode.NONE
    partitions = tuple(TopicPartition(topic=topic, partitions=tuple(p)) for topic, p in assignment.items())
    assigned = encode_assignment(ConsumerProtocolAssignment(assigned_partitions=partitions))
    sync = SyncGroupRequest(
        group_id=group_id,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=(SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assigned),),
    )
    assert client.ask(ApiKey.SYNC_GROUP, sync, 3).error_code == ErrorCode.NONE
    member_id: str = joined.member_id
    return member_id


def commit(
    client: Client, group_id: str, topic: str, offset: int, *, member_id: str = "", generation: int = -1
) -> None:
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=""
    )
    request = OffsetCommitRequest(
        group_id=group_id,
        member_id=member_id,
        generation_id_or_member_epoch=generation,
        topics=(OffsetCommitRequestTopic(name=topic, partitions=(partition,)),),
    )
    (answered,) = client.ask(ApiKey.OFFSET_COMMIT, request, 6).topics
    assert answered.partitions[0].error_code == ErrorCode.NONE


def billing(kshim: Kshim) -> Client:
    """The world of docs/http.md. The client id of its member is "app"."""
    client = kshim.client()
    create_topic(client, "orders")
    produce(client, "orders", 3)
    member_id = join(client, kshim.reactor, "billing", {"orders": [0]})
    commit(client, "billing", "orders", 2, member_id=member_id, generation=1)
    return client


def delays(clock: Any, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The delays of all calls that a clock is asked for from now on."""
    found: list[float] = []
    call_later = clock.callLater

    def noted(delay: float, *call: Any) -> Any:
        found.append(delay)
        return call_later(delay, *call)

    monkeypatch.setattr(clock, "callLater", noted)
    return found
