"""Two seams: how the upstream is asked, and where the groups of kshim in front of it are kept.

What asks knows an `Upstream`, and nothing of how its brokers are connected to. The service knows a
`GroupShards`, and no more of how it keeps what it keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from twisted.internet.defer import Deferred

from kshim.configs.endpoint import Endpoint
from kshim.coordination.group_runtime import GroupRuntime
from kshim.storage.interfaces import Journal
from kshim.upstream.fellows import Fellow
from kshim.upstream.link import Link


class Upstream(Protocol):
    """The brokers behind kshim."""

    def ask(self, request: Any) -> Deferred[Any]:
        """Ask whichever broker answers. Fires with the response; errbacks LinkError."""

    def connect(self, address: Endpoint, timeout_s: float) -> Deferred[Link]:
        """A link to one broker. Errbacks LinkError."""


Addresses = Mapping[str, Endpoint]
"""Where clients reach one kshim, by the name of the listener."""


class GroupShards(Protocol):
    """The shards of the group coordinator, of which this process leads some or all."""

    @property
    def topic(self) -> str:
        """The topic of the upstream whose partitions are the shards."""

    @property
    def partitions(self) -> int:
        """How many shards there are; fixed once `prepare` has fired."""

    @property
    def record_bytes(self) -> int:
        """The most that one record may take, or the records of one commit; fixed once `prepare` has fired."""

    @property
    def group_id(self) -> str:
        """The group of the upstream that its processes are; it is none of the clients' groups."""

    @property
    def journal(self) -> Journal:
        """What the runtime appends to, and loads from."""

    def prepare(self) -> Deferred[None]:
        """Find or make what is needed; errbacks StorageError, LinkError. Called once, before all else."""

    def start(self, groups: GroupRuntime, addresses: Callable[[], Addresses]) -> Deferred[None]:
        """Begin to lead shards: `groups.load(shard, leader)` for each that is won, `groups.unload(shard)` for
        each that is lost. Fires once clients may come; errbacks StorageError.

        addresses: where clients reach this process now.
        """

    def may_answer(self, shard: int) -> bool:
        """Whether it is sure that no other process leads the shard; see `Runtime`."""

    def leader(self, shard: int) -> Fellow | None:
        """The process that is to lead the shard; None if this one is alone."""

    def has_open_transactions(self, shard: int) -> bool:
        """Whether any of them has committed offsets there, as far as the log was read."""

    def is_open(self, shard: int, producer_id: int, producer_epoch: int) -> bool:
        """Whether this transaction has, and has not ended as far as the log was read."""

    def last_marker(self, shard: int, producer_id: int) -> int:
        """Where in the shard's log the last end of a transaction of a producer is, of those that this process
        has applied; -1 if it knows none.
        """

    def fellows(self) -> Sequence[Fellow]:
        """All processes that share the shards, this one included; none if it is alone."""

    def gone(self) -> Sequence[Fellow]:
        """Processes that have shared the shards until lately."""

    def stop(self) -> Deferred[None]:
        """Give up all shards; the runtime is stopped already. Fires when others may lead them."""
