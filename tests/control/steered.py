"""Three brokers in memory, and what steers them."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail, succeed

from kshim.cluster import Cluster, NewTopic
from kshim.configs.config import Config
from kshim.configs.endpoint import Endpoint
from kshim.control.brokers import BrokerSteering
from kshim.control.commands import SteeringError
from kshim.coordination.groups.rebalance_record import Who
from kshim.coordination.groups.waiting import WaitsFor
from kshim.network.listeners import CannotListen
from kshim.storage.memory import MemoryStore
from tests.api.harness import result


class Listener:
    """Records what is done to it."""

    def __init__(self, node_id: int, history: list[str]) -> None:
        self.address = Endpoint("127.0.0.1", 9091 + node_id)
        self.addresses = {"PLAINTEXT": self.address, "SSL": Endpoint("127.0.0.1", 9191 + node_id)}
        self.error: CannotListen | None = None
        self._node_id, self._history = node_id, history

    def suspend(self) -> Deferred[None]:
        self._history.append(f"{self._node_id} refuses")
        return succeed(None)

    def resume(self) -> Deferred[None]:
        if self.error is not None:
            return fail(self.error)
        self._history.append(f"{self._node_id} accepts")
        return succeed(None)


class Groups:
    def shard_for(self, group_id: str) -> int:
        return len(group_id)

    def waits_for(self, group_id: str) -> WaitsFor | None:
        member = Who("c-1", "c", "/127.0.0.1")
        stable = WaitsFor(
            state="Stable",
            generation=1,
            protocol_type="consumer",
            protocol="range",
            leader="c-1",
            members=[member],
            because="",
            began_ms=None,
            until_ms=None,
            to_join=[],
            to_join_first=[],
            to_sync=[],
        )
        return stable if group_id == "g" else None


class World:
    """Three brokers. Topic t has replicas on 1 and 2, on 2 and 1, on 3 and 1; topic alone has its only one on
    3."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        config = Config(brokers=3, offsets_topic_num_partitions=9)
        self.cluster = Cluster(self.store.metadata, self.store.log, config)
        result(self.cluster.start())
        assignments = [(0, (1, 2)), (1, (2, 1)), (2, (3, 1))]
        result(self.cluster.create_topics([NewTopic("t", assignments=assignments)]))
        result(self.cluster.create_topics([NewTopic("alone", assignments=[(0, (3,))])]))
        self.history: list[str] = []
        self.cluster.watch_leaders(lambda moves: self.history.append(f"{len(moves)} moved"))
        self.listeners = {node_id: Listener(node_id, self.history) for node_id in (1, 2, 3)}
        self.steering = BrokerSteering(self.cluster, Groups(), self.listeners)

    def leaders(self, topic: str = "t") -> list[int]:
        return [partition.leader for partition in self.cluster.topics[topic].partitions]

    def refused(self, deferred: Deferred[Any]) -> str:
        with pytest.raises(SteeringError) as refused:
            result(deferred)
        return str(refused.value)
