"""A server in front of an upstream, with stand-ins for the upstream's links and the groups' shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.defer import Deferred, fail, succeed

from kshim.configs.reading import new_config
from kshim.coordination.group_runtime import GroupRuntime
from kshim.server.parts import Parts
from kshim.server.server import Server
from kshim.storage.journal import LogJournal
from kshim.storage.memory import MemoryStore
from kshim.upstream.backend import UpstreamBackend
from kshim.upstream.interfaces import SeenShards
from kshim.upstream.link import Link, LinkError
from kshim.upstream.missing import OLDEST
from schemas.api_key import ApiKey
from schemas.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from tests.network.free_ports import Reactor
from tests.upstream.link_end import ADDRESS

BROKERS = (1, 2)


class Answering(Link):
    """Describes the cluster, and answers nothing else."""

    is_open = True
    answers = True
    running = BROKERS

    def ask(self, request: Any, **_: Any) -> Deferred[Any]:
        if not isinstance(request, MetadataRequest) or not self.answers:
            return fail(LinkError("no answer"))
        brokers = tuple(
            MetadataResponseBroker(node_id=each, host=f"10.0.0.{each}", port=9092) for each in self.running
        )
        return succeed(MetadataResponse(cluster_id="c", brokers=brokers))

    def close(self) -> None:
        self.is_open = False


class Shards:
    """One shard, which this process leads alone. It records what it is asked to do."""

    topic, group_id, partitions, record_bytes = "groups", "kshim", 1, 1000

    def __init__(self, reactor: Reactor, happened: list[str]) -> None:
        self.journal = LogJournal(MemoryStore().log, [0])
        self.fault = ""
        """Why no groups are served."""
        self._reactor = reactor
        self._happened = happened
        self._groups: GroupRuntime | None = None

    def prepare(self) -> Deferred[None]:
        self._happened.append("prepare")
        return succeed(None)

    def start(
        self,
        groups: GroupRuntime,
        addresses: Callable[[], Any],
        ports: Callable[[], Any],
        http: Callable[[], Any],
    ) -> Deferred[None]:
        self._groups = groups
        self.ports = ports
        self._happened.append(f"start at {addresses()['PLAINTEXT']}")
        return succeed(None)

    def stop(self) -> Deferred[None]:
        running = self._groups is not None and self._groups.is_running
        self._happened.append(f"stop; ports {self._reactor.open}, groups {'run' if running else 'stopped'}")
        return succeed(None)

    def may_answer(self, shard: int) -> bool:
        return True

    def why_not_ready(self) -> str:
        return self.fault

    def seen(self) -> SeenShards:
        return SeenShards(assigned=1, led=1, taken_over=3, lost=2, queued=4, lag_s=0.5, proof_age_s=0.1)

    def fellows(self) -> Sequence[Any]:
        return ()

    gone = fellows

    def tell(self) -> None:
        self._happened.append(f"tell of ports {self.ports()}")


class World:
    """A server over an `UpstreamBackend`."""

    def __init__(self, **properties: str) -> None:
        given = {name.replace("_", "."): text for name, text in properties.items()}
        self.reactor = Reactor(free=(5000,))
        self.happened: list[str] = []
        here = {"log.dirs": ":memory:", "listeners": "127.0.0.1:0"}
        bootstrap = {"upstream.bootstrap.servers": "10.0.0.1:9092"}
        self.parts = Parts(new_config(bootstrap | here | given)[0], self.reactor)
        self.shards = Shards(self.reactor, self.happened)
        shards: Any = self.shards
        self.backend = UpstreamBackend(self.parts, lambda *_: shards)
        self.link = Answering(self.reactor, ADDRESS, "kshim")
        self.link.versions = {ApiKey.METADATA: range(OLDEST.version + 1)}
        vars(self.backend._contact)["connect"] = lambda *_: succeed(self.link)
        self.server = Server(self.parts, self.backend)
