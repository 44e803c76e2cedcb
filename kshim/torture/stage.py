"""The server as a torture needs it: a port that the testing kit implements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from kshim.torture.evidence import Partition
from kshim.torture.faults import Request

Note = Mapping[str, Any]
"""What one request did; see `kshim.faults.notes`."""


class Refused(Exception):
    """A step was not possible at this moment, or not in time. str() says why."""


class Outgoing(NamedTuple):
    """A record to produce. partition: None to choose it by the key."""

    key: str
    value: str
    headers: Mapping[str, str]
    partition: int | None = None


class Incoming(NamedTuple):
    """A record of the program's output topic, without those of aborted transactions."""

    partition: int
    offset: int
    at_ms: float
    """When the broker appended it."""
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


class Stage(Protocol):
    """A running server. All methods may raise Refused."""

    def bootstrap_of(self, listener: str) -> str:
        """The addresses of the brokers for the clients of one listener."""

    def make_topic(self, name: str, partitions: int) -> None:
        """Create a topic; its records get the broker's time."""

    def append(self, topic: str, records: Sequence[Outgoing]) -> Sequence[tuple[int, int]]:
        """Produce records; return the partition and the offset of each."""

    def append_aborted(self, topic: str, records: Sequence[Outgoing]) -> Sequence[tuple[int, int]]:
        """Produce records in a transaction that is aborted. Each names its partition."""

    def read(self, topic: str) -> Sequence[Incoming]:
        """All records of a topic that consumers may read; those of aborted transactions are left out."""

    def committed(self, group: str) -> Mapping[Partition, int]:
        """The group's committed offsets."""

    def group_ids(self) -> Sequence[str]:
        """The ids of all groups."""

    def rebalances_of(self, group: str) -> Sequence[Mapping[str, Any]]:
        """The group's rebalances, as JSON values of the recorder (`kshim.recorder.shown`)."""

    def notes(self) -> Sequence[Note]:
        """What members were given and what they committed so far."""

    def fail_requests(self, request: Request, lasts_ms: int) -> str:
        """Make requests fail; return what is done in words."""

    def expire(self, group: str, member: str) -> None:
        """End a member's session."""

    def put_out(self, group: str, member: str) -> None:
        """Remove a member from its group."""

    def static_member(self, group: str, instance_id: str) -> str:
        """The id of the member that has this group.instance.id."""

    def fence(self, group: str, instance_id: str) -> None:
        """Fence a static member."""

    def fence_producer(self, transactional_id: str) -> None:
        """Fence a transactional producer."""

    def rebalance(self, group: str) -> None:
        """Make the group rebalance."""

    def move_coordinator(self, group: str, choice: int) -> str:
        """Move the group's coordinator to another broker; return what is done in words."""

    def move_leader(self, topic: str, choice: int) -> str:
        """Move a partition's leader to another broker; return what is done in words."""

    def stop_broker(self, choice: int) -> int:
        """Stop a broker, but not the last one; return its node id."""

    def start_broker(self, node_id: int) -> None:
        """Start a broker again."""

    def add_partitions(self, topic: str, more: int) -> int:
        """Add partitions to a topic, and return how many it has now."""

    def mend(self) -> None:
        """End all faults of requests, and start all brokers."""
