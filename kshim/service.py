"""The server's parts in their order: store, cluster, group coordinator, listener; stopped the other way
round.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, DeferredLock, inlineCallbacks
from twisted.internet.error import CannotListenError

from kshim import __version__
from kshim.addresses import Endpoint
from kshim.cluster import Cluster
from kshim.config import Config
from kshim.connection import Connections
from kshim.context import Broker
from kshim.dispatch import answer
from kshim.runtime import Runtime, new_coordinator
from kshim.storage.interfaces import StorageError, Store
from kshim.storage.journal import LogJournal

log = logging.getLogger(__name__)


class StartError(Exception):
    """The server cannot start. str() is one line for the user."""


class Server:
    """One broker: `start()` it once, `stop()` it once."""

    def __init__(self, config: Config, reactor: Any, store: Store | None = None) -> None:
        """reactor: where it listens, and its clock. store: instead of the one that the config names."""
        self._config = config
        self._reactor = reactor
        self._store = store or new_store(config, reactor)
        self._port: Any = None
        self._groups: Runtime | None = None
        self._connections: Connections | None = None
        self._stop_lock = DeferredLock()
        self._stopped = False

    @inlineCallbacks
    def start(self) -> Generator[Deferred[Any], Any, Endpoint]:
        """Fires with the address once connections are accepted. Errbacks StartError; then nothing is left
        open.
        """
        config = self._config
        try:
            self._store.open()
        except StorageError as error:
            raise StartError(str(error)) from error
        try:
            cluster = Cluster(self._store.metadata, self._store.log, config)
            yield cluster.start()
            if self._stopped:
                raise StartError("stopped before it was ready")
            self._groups = _new_groups(cluster, self._store, config, self._reactor)
            self._groups.start()
            broker = Broker(
                node_id=config.node_id,
                config=config,
                cluster=cluster,
                log=self._store.log,
                groups=self._groups,
                clock=self._reactor,
            )
            endpoint = self._listen(broker)
        except (StorageError, StartError) as error:
            yield self.stop()
            raise StartError(str(error)) from error
        log.info(
            "kshim %s: node %d of cluster %s at %s, data in %s",
            __version__,
            config.node_id,
            cluster.cluster_id,
            endpoint,
            config.log_dirs,
        )
        return endpoint

    def _listen(self, broker: Broker) -> Endpoint:
        config, listener = self._config, self._config.listeners
        self._connections = Connections(
            partial(answer, broker),
            self._reactor,
            max_request_bytes=config.socket_request_max_bytes,
            max_idle_ms=config.connections_max_idle_ms,
            advertised=config.advertised_listeners,
        )
        try:
            self._port = self._reactor.listenTCP(
                listener.port, self._connections, backlog=511, interface=listener.host
            )
        except CannotListenError as error:
            reason = getattr(error.socketError, "strerror", None) or error.socketError
            raise StartError(f"cannot listen at {listener}: {reason}") from error
        host = self._port.getHost()
        return Endpoint(host.host, host.port)

    def stop(self) -> Deferred[None]:
        """Accept nothing more, finish what is under way, close the store. Fires when done, every time."""
        return self._stop_lock.run(self._stop)

    @inlineCallbacks
    def _stop(self) -> Generator[Deferred[Any], Any, None]:
        if self._stopped:
            return
        self._stopped = True
        if self._port is not None:
            yield self._port.stopListening()
        if self._connections is not None:
            self._connections.drain()
        if self._groups is not None:
            self._groups.stop()
        yield self._store.close()
        if self._connections is not None:
            yield self._connections.close()


def new_store(config: Config, reactor: Any) -> Store:
    """The store that the configuration names; not yet opened."""
    if config.in_memory:
        from kshim.storage.memory import MemoryStore

        return MemoryStore()
    from kshim.storage.embedded import EmbeddedStore

    return EmbeddedStore(Path(config.log_dirs), reactor=reactor)


def _new_groups(cluster: Cluster, store: Store, config: Config, reactor: Any) -> Runtime:
    partitions = cluster.group_metadata_topic.partitions
    journal = LogJournal(store.log, [partition.partition_no for partition in partitions])
    return Runtime(new_coordinator(config, len(partitions)), journal, reactor)
