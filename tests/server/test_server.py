"""Start and stop of the server's parts, with a reactor and a store in memory."""

import errno
import logging
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.error import CannotListenError

from kshim.configs.config import Config
from kshim.configs.endpoint import Endpoint
from kshim.configs.reading import new_config
from kshim.coordination.groups.rebalance import SHORTEST_DELAY_MS
from kshim.server import StartError
from kshim.server.local import LocalBackend
from kshim.server.parts import Parts
from kshim.server.server import Server
from kshim.storage.interfaces import DataDirLocked, StorageError
from kshim.storage.memory import MemoryStore
from kshim.testing.wire import payload
from kshim.turns.promise import Promise
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from schemas.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from schemas.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.list_groups import ListGroupsRequest
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.sync_group import SyncGroupRequest
from schemas.registry import decode_response
from tests.network import free_ports
from tests.network.frames import frame
from tests.network.transport import Transport
from tests.ports_in_memory import Client, Reactor
from tests.server.local_server import local_server

CONFIG = Config(log_dirs=":memory:", listeners="127.0.0.1:9092")
API_VERSIONS_V9 = bytes.fromhex("0012 0009 00000007 ffff 00")


class Store(MemoryStore):
    """Records when it is opened and closed."""

    def __init__(self) -> None:
        super().__init__()
        self.history: list[str] = []

    def open(self) -> None:
        self.history.append("open")
        super().open()

    def close(self) -> Deferred[None]:
        self.history.append("close")
        return super().close()


def results(deferred: Deferred[Any]) -> list[Any]:
    """Empty until the Deferred fires, then its result."""
    brought: list[Any] = []
    deferred.addBoth(brought.append)
    return brought


def outcome(deferred: Deferred[Any]) -> Any:
    """The result of a Deferred that has fired."""
    (result,) = results(deferred)
    return result


def connect(reactor: Reactor) -> tuple[Any, Transport]:
    transport = Transport()
    connection = reactor.factory.buildProtocol(transport.peerAddr)
    connection.makeConnection(transport)
    return connection, transport


def test_a_started_server_listens_and_answers() -> None:
    reactor, store = Reactor(), Store()
    assert outcome(local_server(CONFIG, reactor, store).start()) == {"PLAINTEXT": [Endpoint("0.0.0.0", 9092)]}
    ((port, _, _, interface),) = reactor.tcpServers
    assert (port, interface) == (9092, "127.0.0.1")
    connection, transport = connect(reactor)
    connection.dataReceived(frame(API_VERSIONS_V9))
    assert transport.value() == frame(bytes.fromhex("00000007002300000001001200000005"))
    assert store.history == ["open"]


def test_what_is_configured_reaches_the_connections() -> None:
    reactor = Reactor()
    config = Config(
        log_dirs=":memory:",
        socket_request_max_bytes=1000,
        connections_max_idle_ms=5000,
        advertised_listeners="kafka.example:1",
    )
    outcome(local_server(config, reactor, Store()).start())
    shared = reactor.factory.shared
    assert (shared.max_request_bytes, shared.max_idle_ms) == (1000, 5000)
    assert shared.advertised == Endpoint("kafka.example", 1)


def test_connections_are_limited_by_the_configs_of_the_moment() -> None:
    reactor = Reactor()
    config, warnings = new_config({"log.dirs": ":memory:", "max.connections.per.ip": "1"})
    assert not warnings
    outcome(local_server(config, reactor, Store()).start())
    connect(reactor)
    assert reactor.factory.buildProtocol(Transport().peerAddr) is None


def test_the_memory_store_is_what_memory_names() -> None:
    server = local_server(CONFIG, Reactor())
    assert outcome(server.start()) == {"PLAINTEXT": [Endpoint("0.0.0.0", 9092)]}


def test_a_port_in_use() -> None:
    taken = OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
    store = Store()
    server = local_server(CONFIG, Reactor(CannotListenError("127.0.0.1", 9092, taken)), store)
    failure = outcome(server.start())
    assert failure.check(StartError)
    assert str(failure.value) == "cannot listen at 127.0.0.1:9092: Address already in use"
    assert store.history == ["open", "close"]


def test_a_data_directory_in_use() -> None:
    class Locked(Store):
        def open(self) -> None:
            raise DataDirLocked("data is in use")

    reactor = Reactor()
    failure = outcome(local_server(CONFIG, reactor, Locked()).start())
    assert failure.check(StartError)
    assert str(failure.value) == "data is in use"
    assert reactor.tcpServers == []


def test_a_store_that_cannot_be_read_is_closed() -> None:
    class Torn(Store):
        @property
        def metadata(self) -> Any:
            raise StorageError("torn")

        @metadata.setter
        def metadata(self, value: Any) -> None:
            pass

    store = Torn()
    failure = outcome(local_server(CONFIG, Reactor(), store).start())
    assert failure.check(StartError)
    assert store.history == ["open", "close"]


def test_stop_closes_connections_and_store() -> None:
    reactor, store = Reactor(), Store()
    server = local_server(CONFIG, reactor, store)
    outcome(server.start())
    connection, transport = connect(reactor)
    stopped = results(server.stop())
    assert not reactor.listens
    assert store.history == ["open", "close"]
    assert transport.disconnecting
    assert not stopped
    connection.connectionLost()
    assert stopped == [None]
    assert reactor.getDelayedCalls() == []


def test_stop_answers_what_the_store_still_finishes() -> None:
    """A request that waits for the disk at the stop gets its answer; a later one gets none."""
    reactor = Reactor()
    closed: Deferred[None] = Deferred()
    reply: Promise[bytes] = Promise()

    class Slow(Store):
        def close(self) -> Deferred[None]:
            return closed

    server = local_server(CONFIG, reactor, Slow())
    outcome(server.start())
    connection, transport = connect(reactor)
    requests: list[bytes] = []

    def answer(request: bytes, *_: Any) -> Promise[bytes]:
        requests.append(request)
        return reply

    connection.shared.answer = answer
    connection.dataReceived(frame(b"produce"))
    stopped = results(server.stop())
    connection.dataReceived(frame(b"another"))
    assert requests == [b"produce"]
    reply.answer_alone(b"produced")
    assert transport.value() == frame(b"produced")
    assert not transport.disconnecting
    closed.callback(None)
    assert transport.disconnecting
    connection.connectionLost()
    assert stopped == [None]


def test_stop_answers_a_parked_member() -> None:
    """The member is answered NOT_COORDINATOR, and no timer of the group is left."""
    reactor = Reactor()
    server = local_server(replace(CONFIG, group_initial_rebalance_delay_ms=3000), reactor, Store())
    outcome(server.start())
    connection, transport = connect(reactor)
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10000,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range"),),
    )
    connection.dataReceived(frame(payload(0, join, "c", 7)))
    assert transport.value() == b""
    server.stop()
    _, response = decode_response(ApiKey.JOIN_GROUP, 0, transport.value()[4:])
    assert response.error_code == ErrorCode.NOT_COORDINATOR
    connection.connectionLost()
    assert reactor.getDelayedCalls() == []


@pytest.fixture
def reactor() -> Reactor:
    """The reactor of a server with two brokers; the first leads topic t and the shard of group g."""
    reactor = Reactor()
    config = replace(CONFIG, brokers=2, offsets_topic_num_partitions=1, offsets_topic_replication_factor=1)
    outcome(local_server(config, reactor, Store()).start())
    replicas = (CreatableReplicaAssignment(partition_index=0, broker_ids=(1,)),)
    topic = CreatableTopic(name="t", num_partitions=-1, replication_factor=-1, assignments=replicas)
    (made,) = Client(reactor, 1).ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=(topic,)), 7).topics
    assert made.error_code == ErrorCode.NONE
    return reactor


def move(reactor: Reactor, topic: str, node_id: int) -> None:
    partitions = (ReassignablePartition(partition_index=0, replicas=(node_id,)),)
    request = AlterPartitionReassignmentsRequest(
        topics=(ReassignableTopic(name=topic, partitions=partitions),)
    )
    (moved,) = Client(reactor, 1).ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, request, 0).responses
    assert moved.partitions[0].error_code == ErrorCode.NONE


def test_a_parked_fetch_is_answered_when_its_leader_moves(reactor: Reactor) -> None:
    partitions = (FetchPartition(partition=0, fetch_offset=0, current_leader_epoch=0),)
    request = FetchRequest(
        max_wait_ms=60_000, min_bytes=1, topics=(FetchTopic(topic="t", partitions=partitions),)
    )
    client = Client(reactor, 1)
    assert client.ask(ApiKey.FETCH, request, 12) is None
    move(reactor, "t", 2)
    (answered,) = client.answer.responses[0].partitions
    assert answered.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_group_is_coordinated_where_its_partition_is_led(reactor: Reactor) -> None:
    first, second = Client(reactor, 1), Client(reactor, 2)
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10000,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range"),),
    )
    assert first.ask(ApiKey.JOIN_GROUP, join, 0) is None
    reactor.advance(SHORTEST_DELAY_MS / 1000)
    joined = first.answer
    assert joined.generation_id == 1
    heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id=joined.member_id)
    sync = SyncGroupRequest(group_id="g", generation_id=1, member_id=joined.member_id)
    assert first.ask(ApiKey.SYNC_GROUP, sync, 0).error_code == ErrorCode.NONE
    assert second.ask(ApiKey.HEARTBEAT, heartbeat, 0).error_code == ErrorCode.NOT_COORDINATOR
    move(reactor, "__consumer_offsets", 2)
    assert first.ask(ApiKey.HEARTBEAT, heartbeat, 0).error_code == ErrorCode.NOT_COORDINATOR
    assert second.ask(ApiKey.HEARTBEAT, heartbeat, 0).error_code == ErrorCode.NONE
    (group,) = second.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(), 0).groups
    assert (group.group_id, first.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(), 0).groups) == ("g", ())
    found = first.ask(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(key="g"), 0)
    assert (found.node_id, found.port) == (2, 9093)


def test_stop_closes_the_control_socket_the_page_and_the_threads(tmp_path: Path) -> None:
    reactor = free_ports.Reactor()
    config = replace(
        CONFIG, control_path=str(tmp_path / "control"), http_listener=Endpoint("127.0.0.1", 8080)
    )
    parts = Parts(config, reactor)
    server = Server(parts, LocalBackend(parts, Store()))
    outcome(server.start())
    assert reactor.open == [9092, 0, 8080]
    parts.aside.run(lambda: None)
    (thread,) = (each for each in threading.enumerate() if each.name == "kshim-aside")
    assert outcome(server.stop()) is None
    assert reactor.open == []
    thread.join(timeout=10)
    assert not thread.is_alive()


def test_stop_does_not_wait_for_a_client_that_does_not_read() -> None:
    reactor = Reactor()
    server = local_server(CONFIG, reactor, Store())
    outcome(server.start())
    connection, transport = connect(reactor)
    connection.pauseProducing()
    stopped = results(server.stop())
    reactor.advance(1)
    assert transport.aborted
    connection.connectionLost()
    assert stopped == [None]


def test_stop_before_the_start_is_through() -> None:
    """A signal may come while the store still writes."""
    reactor = Reactor()
    written: Deferred[None] = Deferred()
    store = Store()
    store.metadata.put = lambda changes: written
    server = local_server(CONFIG, reactor, store)
    started = server.start()
    stopped = results(server.stop())
    written.callback(None)
    assert stopped == [None]
    assert outcome(started).check(StartError)
    assert reactor.tcpServers == []


def test_what_takes_long_to_load_is_loaded_behind_the_open_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cleaning waits for it."""
    reactor, store = Reactor(), Store()
    config = replace(CONFIG, offsets_topic_num_partitions=1)
    first = local_server(config, reactor, store)
    outcome(first.start())
    client = Client(reactor, 1)
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    client.ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=(topic,)), 5)
    partitions = (OffsetCommitRequestPartition(partition_index=0, committed_offset=7),)
    commit = OffsetCommitRequest(
        group_id="g", topics=(OffsetCommitRequestTopic(name="t", partitions=partitions),)
    )
    (committed,) = client.ask(ApiKey.OFFSET_COMMIT, commit, 8).topics
    assert committed.partitions[0].error_code == ErrorCode.NONE
    client.connection.connectionLost()
    first.stop()

    read, cleaned = store.log.read, []

    def slowly(*arguments: Any, **more: Any) -> bytes:
        reactor.rightNow += 1
        return read(*arguments, **more)

    monkeypatch.setattr(store.log, "read", slowly)
    monkeypatch.setattr(store.log, "clean", cleaned.append)
    server = local_server(config, reactor, store)
    outcome(server.start())
    loaded = results(server.loaded())
    assert (loaded, cleaned) == ([], [])
    client = Client(reactor, 2)  # the second listener
    refused = client.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(), 0)
    assert refused.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    listed = client.ask(ApiKey.LIST_GROUPS, ListGroupsRequest(), 0)
    assert [group.group_id for group in listed.groups] == ["g"]
    assert (loaded, len(cleaned)) == ([None], 1)


def test_a_stop_while_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    reactor, store = Reactor(), Store()
    monkeypatch.setattr("kshim.coordination.led_shards.START_MS", 0)
    server = local_server(CONFIG, reactor, store)
    outcome(server.start())
    loaded = results(server.loaded())
    assert loaded == []
    assert outcome(server.stop()) is None
    assert loaded == [None]
    assert reactor.getDelayedCalls() == []


def test_a_second_stop_waits_for_the_first() -> None:
    reactor, store = Reactor(), Store()
    server = local_server(CONFIG, reactor, store)
    outcome(server.start())
    assert outcome(server.stop()) is None
    assert outcome(server.stop()) is None
    assert store.history == ["open", "close"]


def test_the_log_says_what_was_started(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    outcome(local_server(CONFIG, Reactor(), Store()).start())
    (line,) = caplog.messages
    assert line.startswith("kshim ")
    assert line.endswith("at 0.0.0.0:9092, data in :memory:")
