"""A server over the local backend."""

from __future__ import annotations

from kshim.configs.config import Config
from kshim.server.local import LocalBackend, new_store
from kshim.server.parts import Parts
from kshim.server.server import Server
from kshim.storage.interfaces import Store
from kshim.storage.reactor import Reactor


def local_server(config: Config, reactor: Reactor, store: Store | None = None) -> Server:
    """store: used instead of the one that `config` names."""
    parts = Parts(config, reactor)
    return Server(parts, LocalBackend(parts, store or new_store(config, reactor)))
