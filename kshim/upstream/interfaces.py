"""Two interfaces: one to ask the upstream, and one to the shards in which kshim keeps its groups there.

Parts that ask use an `Upstream`, and do not know how its brokers are connected. The service uses a
`GroupShards`, and does not know how it keeps the groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from twisted.internet.defer import Deferred

from kshim.configs.endpoint import Endpoint
from kshim.coordination.group_runtime import GroupRuntime
from kshim.storage.interfaces import Journal
from kshim.upstream.fellows import Fellow
from kshim.upstream.link import Link


class Upstream(Protocol):
    """The brokers behind kshim."""

    def ask(self, request: Any) -> Deferred[Any]:
        """Send a request to any broker that answers. Fires with the response; errbacks LinkError."""

    def connect(self, address: Endpoint, timeout_s: float) -> Deferred[Link]:
        """Connect to one broker. Errbacks LinkError."""


Addresses = Mapping[str, Endpoint]
"""Where clients reach one kshim process, by listener name."""


class SeenShards(NamedTuple):
    """What a process does with the shards."""

    assigned: int
    """The number of shards that it has to lead."""
    led: int
    """The number of those that it leads."""
    taken_over: int
    """How often it has begun to lead a shard."""
    lost: int
    """How often it has lost one without having released it."""
    queued: int
    """The number of writes that the upstream has not acknowledged."""
    lag_s: float
    """How long the oldest of them has waited; 0 if there is none."""
    proof_age_s: float
    """How old the oldest of the last proofs is that no other process leads a shard."""


class GroupShards(Protocol):
    """The group coordinator's shards. This process leads some or all of them."""

    @property
    def topic(self) -> str:
        """The upstream's topic whose partitions are the shards."""

    @property
    def partitions(self) -> int:
        """The number of shards; fixed once `prepare` has fired."""

    @property
    def record_bytes(self) -> int:
        """Limit of one record, and of the records of one commit; fixed once `prepare` has fired."""

    @property
    def group_id(self) -> str:
        """The upstream's group in which the kshim processes are members. Clients do not use it."""

    @property
    def journal(self) -> Journal:
        """The journal in which the runtime keeps the groups."""

    def prepare(self) -> Deferred[None]:
        """Find or create the topic. Errbacks StorageError, LinkError. Called once, before all else."""

    def start(
        self,
        groups: GroupRuntime,
        addresses: Callable[[], Addresses],
        ports: Callable[[], Mapping[int, int]],
        http: Callable[[], Endpoint | None],
    ) -> Deferred[None]:
        """Begin to lead shards: call `groups.load(shard, leader)` for each shard won, `groups.unload(shard)`
        for each one lost. Fires once clients may come; errbacks StorageError.

        addresses: returns where clients reach this process now. ports: returns how far its port for each
        upstream broker is from there, by the broker's node id. http: returns where its HTTP interface is.
        """

    def why_not_ready(self) -> str:
        """Return why this process serves no groups; empty if it does, or if it has no shard to lead."""

    def seen(self) -> SeenShards:
        """Return what this process does with the shards."""

    def may_answer(self, shard: int) -> bool:
        """True if certainly no other process leads the shard; see `Runtime`."""

    def leader(self, shard: int) -> Fellow | None:
        """Return the process that has to lead the shard; None if this one is alone."""

    def here(self) -> Fellow:
        """Return this process, as clients find it as a coordinator."""

    @property
    def has_met(self) -> bool:
        """True once this process has known of another one."""

    def tell(self) -> None:
        """Tell the other processes soon where clients reach this one: that has changed."""

    def has_open_transactions(self, shard: int) -> bool:
        """True if transactions have pending offsets in the shard, as far as its log was read."""

    def is_open(self, shard: int, producer_id: int, producer_epoch: int) -> bool:
        """True if this transaction has pending offsets in the shard and has not ended, as far as its log was
        read.
        """

    def last_marker(self, shard: int, producer_id: int) -> int:
        """Return the offset of the producer's last transaction end in the shard's log that this process has
        applied; -1 if it knows none.
        """

    def fellows(self) -> Sequence[Fellow]:
        """Return all processes that share the shards, with this one; empty if it is alone."""

    def gone(self) -> Sequence[Fellow]:
        """Return the processes that shared the shards until lately."""

    def hand_over(self) -> Deferred[bool]:
        """Give up all shards, and leave the other processes; the runtime goes on. Fires with True when they
        have the shards, with False if there are none that could.
        """

    def successors(self) -> Sequence[Fellow]:
        """Return the processes that have taken over from this one; empty before `hand_over`."""

    def stop(self) -> Deferred[None]:
        """Give up all shards; the runtime is stopped already. Fires when other processes may lead them."""
