"""The ports of a server whose backend answers nothing."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

from kshim.cluster.broker_configs import broker_configs
from kshim.cluster.scram import KnownUsers
from kshim.cluster.settings import QuotaTable
from kshim.configs.reading import new_config
from kshim.server.parts import Parts
from kshim.server.ports import Ports
from tests.api.harness import new_broker


def new_ports(reactor: Any, **properties: str) -> tuple[Parts, Ports[Any]]:
    """properties: with "_" for "."."""
    given = {name.replace("_", "."): text for name, text in properties.items()}
    config, _ = new_config({"log.dirs": ":memory:"} | given)
    parts = Parts(config, reactor)
    backend: Any = SimpleNamespace(
        answer=lambda *_: None,
        quotas=QuotaTable(),
        users=KnownUsers(),
        relayed=None,
        broker_configs=partial(broker_configs, config),
    )
    return parts, Ports(parts, backend, new_broker())
