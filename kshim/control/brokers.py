"""The commands about brokers: stop and start them, move leaders and coordinators.

Clients see what they would see in a Kafka cluster of several machines: brokers shut down, leaders and
coordinators move.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

from twisted.internet.defer import Deferred, DeferredLock

from kshim.cluster import GROUP_METADATA_TOPIC, Cluster, leaders
from kshim.cluster.changes import Outcome
from kshim.cluster.topics import NO_LEADER
from kshim.control.commands import Command, Commands, SteeringError
from kshim.network.listeners import BrokerListeners, CannotListen
from kshim.storage.interfaces import StorageError

if TYPE_CHECKING:
    from kshim.coordination.interfaces import Groups


class DescribedBroker(TypedDict):
    """A broker, and how many partitions it leads."""

    node_id: int
    address: str
    listeners: Mapping[str, str]
    state: str
    leads: int


class DescribedPartition(TypedDict):
    """A partition with its leader and replicas."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    replicas: Sequence[int]
    isr: Sequence[int]
    is_internal: bool


class DescribedCluster(TypedDict):
    """The brokers and partitions."""

    cluster_id: str
    controller_id: int
    brokers: Sequence[DescribedBroker]
    partitions: Sequence[DescribedPartition]


MovedLeader = TypedDict(
    "MovedLeader", {"topic": str, "partition": int, "from": int, "to": int, "leader_epoch": int}
)


class StoppedBroker(TypedDict):
    """How many partitions other brokers lead now, and how many have no leader."""

    node_id: int
    moved: int
    without_leader: int


class StartedBroker(TypedDict):
    """How many partitions the broker leads."""

    node_id: int
    leads: int


class BrokerSteering:
    """Carries out the commands of `kshim cluster`.

    A method's Deferred fires when clients see the change, or fails with SteeringError.
    """

    def __init__(self, cluster: Cluster, groups: Groups, listeners: Mapping[int, BrokerListeners]) -> None:
        self._cluster = cluster
        self._groups = groups
        self._listeners = listeners
        self._one_at_a_time = DeferredLock()

    def commands(self) -> Commands:
        return {
            "describe": Command(self.describe),
            "move-leader": Command(self.move_leader, (str, int, int)),
            "move-coordinator": Command(self.move_coordinator, (str, int)),
            "stop-broker": Command(self.stop_broker, (int,)),
            "start-broker": Command(self.start_broker, (int,)),
        }

    def describe(self) -> DescribedCluster:
        """The brokers and partitions, as JSON values."""
        cluster = self._cluster
        led = [p.leader for topic in cluster.topics.values() for p in topic.partitions]
        return {
            "cluster_id": cluster.cluster_id,
            "controller_id": cluster.controller_id,
            "brokers": [
                {
                    "node_id": node_id,
                    "address": str(listener.address),
                    "listeners": {name: str(address) for name, address in listener.addresses.items()},
                    "state": "running" if node_id in cluster.running else "stopped",
                    "leads": led.count(node_id),
                }
                for node_id, listener in self._listeners.items()
            ],
            "partitions": [
                {
                    "topic": topic.name,
                    "partition": p.index,
                    "leader": p.leader,
                    "leader_epoch": p.leader_epoch,
                    "replicas": p.replicas,
                    "isr": p.isr,
                    "is_internal": topic.is_internal,
                }
                for topic in sorted(cluster.topics.values(), key=lambda topic: topic.name)
                for p in topic.partitions
            ],
        }

    def move_leader(self, topic: str, partition: int, node_id: int) -> Deferred[MovedLeader]:
        """Make a broker lead a partition, also one without a replica of it."""
        return self._one_at_a_time.run(self._move_leader, topic, partition, node_id)

    def move_coordinator(self, group_id: str, node_id: int) -> Deferred[MovedLeader]:
        """Make a broker lead the group's __consumer_offsets partition, and so coordinate all groups in it."""
        return self.move_leader(GROUP_METADATA_TOPIC, self._groups.shard_for(group_id), node_id)

    def stop_broker(self, node_id: int) -> Deferred[StoppedBroker]:
        """Shut a broker down as Kafka's controlled shutdown does.

        Brokers in the ISR take over its partitions, then its connections are closed.
        """
        return self._one_at_a_time.run(self._stop_broker, node_id)

    def start_broker(self, node_id: int) -> Deferred[StartedBroker]:
        """Make a stopped broker accept connections again.

        It leads the partitions that no other broker can lead, and follows in the others.
        """
        return self._one_at_a_time.run(self._start_broker, node_id)

    async def _move_leader(self, topic: str, partition: int, node_id: int) -> MovedLeader:
        self._check(node_id, running=True)
        known = self._cluster.topics.get(topic)
        if known is None:
            raise SteeringError(f"no topic {topic}; there are {_listed(self._cluster.topics)}")
        before = known.partition(partition)
        if before is None:
            raise SteeringError(f"{topic} has the partitions 0 to {len(known.partitions) - 1}")
        await self._stored(leaders.move_leader(self._cluster, (topic, partition), node_id))
        after = self._cluster.topics[topic].partitions[partition]
        return {
            "topic": topic,
            "partition": partition,
            "from": before.leader,
            "to": after.leader,
            "leader_epoch": after.leader_epoch,
        }

    async def _stop_broker(self, node_id: int) -> StoppedBroker:
        self._check(node_id, running=True)
        before = self._led_by(node_id)
        await self._stored(leaders.stop_broker(self._cluster, node_id))
        await self._listeners[node_id].suspend()
        without = sum(self._leader(*partition) == NO_LEADER for partition in before)
        return {"node_id": node_id, "moved": len(before) - without, "without_leader": without}

    async def _start_broker(self, node_id: int) -> StartedBroker:
        self._check(node_id, running=False)
        try:
            await self._listeners[node_id].resume()
        except CannotListen as error:
            raise SteeringError(str(error)) from error
        await self._stored(leaders.start_broker(self._cluster, node_id))
        return {"node_id": node_id, "leads": len(self._led_by(node_id))}

    def _check(self, node_id: int, *, running: bool) -> None:
        if node_id not in self._cluster.node_ids:
            raise SteeringError(f"no broker {node_id}; there are {_listed(self._cluster.node_ids)}")
        if (node_id in self._cluster.running) != running:
            raise SteeringError(f"broker {node_id} {'is stopped' if running else 'runs already'}")

    def _led_by(self, node_id: int) -> list[tuple[str, int]]:
        topics = self._cluster.topics.values()
        return [(topic.name, p.index) for topic in topics for p in topic.partitions if p.leader == node_id]

    def _leader(self, topic: str, partition: int) -> int:
        known = self._cluster.topics.get(topic)
        return known.partitions[partition].leader if known else NO_LEADER

    async def _stored(self, changed: Deferred[Outcome]) -> None:
        try:
            outcome = await changed
        except StorageError as error:
            raise SteeringError(str(error)) from error
        for _, refusal in outcome:
            if refusal is not None:
                raise SteeringError(refusal.message or refusal.error_code.name)


def _listed(names: Iterable[object]) -> str:
    return ", ".join(map(str, names))
