"""Sends each request to the right broker: the leader of a partition, or the coordinator of a group.

While leaders and coordinators move, brokers answer with errors that Kafka calls retriable. Like any client, a
call then asks again until its time is over. Every other error is raised as `Refused`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Final, NamedTuple, Self, TypeVar

from kshim.testing.wire import Wire, api_key_of
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

__all__ = ["CLIENT_ID", "Again", "Brokers", "Deadline", "Refused", "TopicMetadata", "check"]

R = TypeVar("R")
T = TypeVar("T")
Address = tuple[str, int]

CLIENT_ID = "kshim.testing"
VERSIONS: Final = {
    ApiKey.PRODUCE: 8,
    ApiKey.FETCH: 11,
    ApiKey.LIST_OFFSETS: 5,
    ApiKey.METADATA: 9,
    ApiKey.OFFSET_FETCH: 7,
    ApiKey.FIND_COORDINATOR: 2,
    ApiKey.LEAVE_GROUP: 4,
    ApiKey.DESCRIBE_GROUPS: 5,
    ApiKey.LIST_GROUPS: 3,
    ApiKey.CREATE_TOPICS: 5,
    ApiKey.DELETE_TOPICS: 4,
    ApiKey.DESCRIBE_CONFIGS: 1,
    ApiKey.DELETE_GROUPS: 2,
    ApiKey.CONSUMER_GROUP_DESCRIBE: 0,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: 0,
    ApiKey.ALTER_CLIENT_QUOTAS: 0,
    ApiKey.CREATE_PARTITIONS: 1,
    ApiKey.INIT_PRODUCER_ID: 1,
    ApiKey.ADD_PARTITIONS_TO_TXN: 1,
    ApiKey.END_TXN: 1,
}
"""The versions of the requests. Apache Kafka serves them from 2.4 on, those about quotas from 2.6 on,
and those about groups of the consumer protocol from 4.0 on."""
POLL_S = 0.01
GRACE_S = 2.0
"""How long after its time a call still waits for an answer that a broker gives at the end of the time."""
NO_LEADER = -1


class Refused(Exception):
    """A broker refused a request. `error_code` is Kafka's error code."""

    def __init__(self, operation: str, error_code: ErrorCode, message: str | None = None) -> None:
        super().__init__(f"{operation}: {error_code.name}{f': {message}' if message else ''}")
        self.error_code = error_code


class Again(Exception):
    """A step cannot succeed yet. str() says what is missing."""


class Deadline:
    """The end of one call's time."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._end_s = time.monotonic() + timeout_s

    @property
    def left_s(self) -> float:
        """The seconds that are left, but at least POLL_S, so that a last answer can still be read."""
        return max(self._end_s - time.monotonic(), POLL_S)

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._end_s

    def until_done(self, step: Callable[[], T]) -> T:
        """Call `step` until it raises neither Again nor OSError, and return its result.

        Raises TimeoutError, which says what was missing at the last attempt.
        """
        while True:
            try:
                return step()
            except (Again, OSError) as error:
                if self.is_over:
                    raise TimeoutError(f"not within {self.timeout_s:g} s: {error}") from error
            time.sleep(POLL_S)


def check(operation: str, error_code: int, message: str | None = None) -> None:
    """Raise Again for an error that Kafka calls retriable, Refused for any other."""
    error = ErrorCode(error_code)
    if error.retriable:
        raise Again(f"{operation}: {error.name}{f': {message}' if message else ''}")
    if error is not ErrorCode.NONE:
        raise Refused(operation, error, message)


class TopicMetadata(NamedTuple):
    """A topic as Metadata describes it."""

    name: str
    error_code: ErrorCode
    is_internal: bool
    leaders: Mapping[int, int]
    """The node id of each partition's leader, by partition; -1 for none."""


class Brokers:
    """Connections to brokers, opened when first needed, for the time of a `with` block."""

    def __init__(self, bootstrap: str, deadline: Deadline) -> None:
        self.deadline = deadline
        self._bootstrap = [_address(text) for text in bootstrap.split(",")]
        self._addresses: dict[int, Address] = {}
        self._connections: dict[Address, Wire] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        for connection in self._connections.values():
            connection.close()

    # ---- any broker

    def ask_any(self, request: object, response_class: type[R]) -> R:
        """Return the response of the first broker that can be reached. Raises OSError if none can."""
        for address in self._bootstrap[:-1]:
            with suppress(OSError):
                return self._ask(address, request, response_class)
        return self._ask(self._bootstrap[-1], request, response_class)

    def node_ids(self) -> list[int]:
        """The node ids of the running brokers. Raises OSError."""
        self.topics([])
        return sorted(self._addresses)

    def topics(self, names: list[str] | None, *, create: bool = False) -> dict[str, TopicMetadata]:
        """Describe topics, by name. Raises OSError.

        names: None for all topics. create: ask the broker to create missing topics, if its configuration
        allows that.
        """
        wanted = None if names is None else tuple(MetadataRequestTopic(name=name) for name in names)
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=create)
        response = self.ask_any(request, MetadataResponse)
        self._addresses = {broker.node_id: (broker.host, broker.port) for broker in response.brokers}
        return {
            (topic.name or ""): TopicMetadata(
                topic.name or "",
                ErrorCode(topic.error_code),
                topic.is_internal,
                {p.partition_index: p.leader_id for p in topic.partitions},
            )
            for topic in response.topics
        }

    def topic(self, name: str, *, create: bool = False) -> TopicMetadata:
        """Describe a topic. Raises Again if it is missing or a partition lacks a leader, Refused, OSError."""
        topic = self.topics([name], create=create)[name]
        if topic.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise Again(f"there is no topic {name}")
        check(f"topic {name}", topic.error_code)
        without = [index for index, leader in topic.leaders.items() if leader == NO_LEADER]
        if without:
            raise Again(f"topic {name}: no leader for partition {', '.join(map(str, sorted(without)))}")
        return topic

    # ---- one broker

    def ask_node(self, node_id: int, request: object, response_class: type[R]) -> R:
        """Return the response of one broker. Raises OSError, and Again if the broker does not run."""
        address = self._addresses.get(node_id)
        if address is None:
            raise Again(f"broker {node_id} does not run")
        return self._ask(address, request, response_class)

    def coordinator(self, group: str) -> int:
        """The node id of a group's coordinator. Raises Again, Refused, OSError."""
        response = self.ask_any(FindCoordinatorRequest(key=group, key_type=0), FindCoordinatorResponse)
        check(f"coordinator of group {group}", response.error_code, response.error_message)
        self._addresses[response.node_id] = response.host, response.port
        return response.node_id

    def _ask(self, address: Address, request: object, response_class: type[R]) -> R:
        left_s = self.deadline.left_s + GRACE_S
        try:
            if address not in self._connections:
                self._connections[address] = Wire(*address, client_id=CLIENT_ID, timeout_s=left_s)
            connection = self._connections[address]
            connection.settimeout(left_s)
            response = connection.ask(VERSIONS[api_key_of(request)], request)
            assert isinstance(response, response_class)
            return response
        except OSError:
            if broken := self._connections.pop(address, None):
                broken.close()
            raise


def _address(text: str) -> Address:
    host, _, port = text.strip().rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(f"{text!r} is no address of a broker: write HOST:PORT, such as 127.0.0.1:9092")
    return host.strip("[]"), int(port)
