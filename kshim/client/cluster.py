"""A cluster as a client sees it: its brokers, its topics, and a connection to each broker that is asked.

Leaders and coordinators move. A broker that is the wrong one says so with a retriable error, and `until_done`
then asks anew, until the time is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

from kshim.client.connection import Connection
from kshim.client.faults import ClientError, Refused, Unanswered, Unreachable, check, did_you_mean
from kshim.client.settings import ClientSettings
from kshim.configs.endpoint import Endpoint
from schemas.error_code import ErrorCode
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

T = TypeVar("T")

NO_LEADER: Final = -1
PAUSE_S: Final = 0.1
"""retry.backoff.ms of Kafka's clients."""
MOST_UNANSWERED: Final = 3
"""After so many connections in a row that a broker closed without an answer, the settings are at fault."""


class Retry(Exception):
    """A step cannot succeed yet. `error` says why."""

    def __init__(self, error: ClientError) -> None:
        super().__init__(str(error))
        self.error = error


class Partition(NamedTuple):
    """One partition of a topic."""

    number: int
    leader: int
    """The leader's node id; NO_LEADER if there is none."""
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


class Topic(NamedTuple):
    """One topic."""

    name: str
    topic_id: object
    is_internal: bool
    partitions: Mapping[int, Partition]
    """The partitions by their numbers, in order."""


class Broker(NamedTuple):
    """One running broker."""

    node_id: int
    address: Endpoint
    rack: str | None


class Cluster:
    """Connections are opened when they are first needed, and closed by `close`."""

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        self.brokers: Mapping[int, Broker] = {}
        """The running brokers as of the last Metadata answer, by node id."""
        self.cluster_id: str | None = None
        self.controller_id = NO_LEADER
        self._connections: dict[tuple[Endpoint, str], Connection] = {}
        self._first: Endpoint | None = None
        """The bootstrap address that has answered."""

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # ---- connections

    def any(self) -> Connection:
        """Return a connection to the first bootstrap address that can be reached. Raises ClientError."""
        if self._first is not None:
            with suppress(Unreachable):
                return self._connection(self._first)
        addresses = self.settings.bootstrap
        for address in addresses:
            try:
                connection = self._connection(address)
            except Unreachable:
                if address == addresses[-1]:
                    raise
                continue
            self._first = address
            return connection
        raise AssertionError("there is always an address")

    def node(self, node_id: int, use: str = "") -> Connection:
        """Return a connection to a broker. Raises Retry if the broker does not run, or not any more.

        use: each use has a connection of its own, because answers come in the order of the requests, and that
        of a Fetch may come late.
        """
        if node_id not in self.brokers:
            self.describe(())
        broker = self.brokers.get(node_id)
        if broker is None:
            raise Retry(ClientError(f"broker {node_id} does not run"))
        try:
            return self._connection(broker.address, use)
        except Unreachable as error:
            self.brokers = {}
            raise Retry(error) from None

    def controller(self) -> Connection:
        """Return a connection to the controller; to any broker if the cluster names none."""
        if self.controller_id not in self.brokers:
            self.describe(())
        return self.node(self.controller_id) if self.controller_id in self.brokers else self.any()

    def coordinator(self, group_id: str) -> Connection:
        """Return a connection to a group's coordinator. Raises ClientError, Retry."""
        found = self.ask(self.any(), FindCoordinatorRequest(key=group_id, key_type=0))
        retry_or_check(f"coordinator of group {group_id}", found.error_code, found.error_message)
        address = Endpoint(found.host, found.port)
        self.brokers = {**self.brokers, found.node_id: Broker(found.node_id, address, None)}
        return self.node(found.node_id)

    def ask(self, connection: Connection, request: object) -> Any:
        """Return the response to a request. Raises Retry if the connection is lost, ClientError."""
        try:
            return connection.ask(request)
        except Unreachable as error:
            self.drop(connection)
            raise Retry(error) from None

    def drop(self, connection: Connection) -> None:
        """Close a connection. The next user of its broker gets a new one."""
        connection.close()
        self._connections = {key: each for key, each in self._connections.items() if each is not connection}
        self.brokers = {}

    def _connection(self, address: Endpoint, use: str = "") -> Connection:
        found = self._connections.get((address, use))
        if found is None:
            found = self._connections[address, use] = Connection(address, self.settings)
        return found

    # ---- retries

    def until_done(self, step: Callable[[], T]) -> T:
        """Call `step` until it raises no Retry, and return its result. Raises ClientError with the last
        reason when the time is over, or when a broker closes one connection after the other.
        """
        end_s, unanswered = time.monotonic() + self.settings.timeout_s, 0
        while True:
            try:
                return step()
            except Retry as retry:
                unanswered = unanswered + 1 if isinstance(retry.error, Unanswered) else 0
                if unanswered == MOST_UNANSWERED or time.monotonic() >= end_s:
                    raise retry.error from None
            time.sleep(PAUSE_S)

    # ---- metadata

    def describe(self, names: Collection[str] | None, *, create: bool = False) -> MetadataResponse:
        """Ask for the brokers and for topics; None asks for all topics. Raises ClientError, Retry.

        create: allow the broker to create missing topics, if its configuration does.
        """
        topics = None if names is None else tuple(MetadataRequestTopic(name=name) for name in names)
        connection = self.any()
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=create)
        found: MetadataResponse = self.ask(connection, request)
        self.brokers = {
            each.node_id: Broker(each.node_id, Endpoint(each.host, each.port), each.rack)
            for each in found.brokers
        }
        self.cluster_id, self.controller_id = found.cluster_id, found.controller_id
        return found

    def topics(self) -> list[Topic]:
        """All topics that may be seen, by name. Raises ClientError."""
        found = self.until_done(lambda: self.describe(None))
        known = [each for each in found.topics if each.error_code == ErrorCode.NONE]
        return sorted(map(_topic, known), key=lambda each: each.name)

    def topic(self, name: str) -> Topic:
        """Describe one topic. Raises ClientError, for an unknown name with those that are most like it."""
        return self.until_done(lambda: self._topic(name))

    def led_topic(self, name: str, *, create: bool = False) -> Topic:
        """Describe one topic, and wait until each partition has a leader. Raises ClientError.

        create: allow the broker to create the topic, if its configuration does, and wait for it.
        """
        return self.until_done(lambda: self._led_topic(name, create=create))

    def _topic(self, name: str) -> Topic:
        (found,) = self.describe((name,)).topics
        if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise self._no_topic(name)
        if found.error_code != ErrorCode.LEADER_NOT_AVAILABLE:
            retry_or_check(f"topic {name}", found.error_code)
        return _topic(found)

    def _led_topic(self, name: str, *, create: bool) -> Topic:
        (found,) = self.describe((name,), create=create).topics
        if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            missing = self._no_topic(name)
            raise Retry(missing) if create else missing
        retry_or_check(f"topic {name}", found.error_code)
        topic = _topic(found)
        for each in topic.partitions.values():
            if each.leader == NO_LEADER:
                raise Retry(ClientError(f"no running broker leads {name}-{each.number}"))
        return topic

    def _no_topic(self, name: str) -> ClientError:
        """The error for a topic that does not exist. Raises Retry if it exists by now."""
        known = [each.name or "" for each in self.describe(None).topics if not each.is_internal]
        missing = ClientError(f"no topic {name}{did_you_mean(name, known)}")
        if name in known:
            raise Retry(missing)  # it was created a moment ago
        return missing


def retry_or_check(operation: str, error_code: int, message: str | None = None) -> None:
    """Raise Retry for a retriable error, Refused for any other."""
    try:
        check(operation, error_code, message)
    except Refused as refused:
        if refused.is_retriable:
            raise Retry(refused) from None
        raise


def _topic(found: MetadataResponseTopic) -> Topic:
    partitions = sorted(found.partitions, key=lambda each: each.partition_index)
    return Topic(
        name=found.name or "",
        topic_id=found.topic_id,
        is_internal=found.is_internal,
        partitions={
            p.partition_index: Partition(
                p.partition_index, p.leader_id, p.leader_epoch, tuple(p.replica_nodes), tuple(p.isr_nodes)
            )
            for p in partitions
        },
    )
