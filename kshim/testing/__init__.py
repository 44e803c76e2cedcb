"""Starts a kshim server, or a local Spark, for users' tests, as fast as possible.

`from kshim.testing import serving`. Each name is imported at first use, as pytest imports this package at
each start, for the plugin.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kshim.testing.asynchronous import AsyncKshim
    from kshim.testing.brokers import Refused
    from kshim.testing.cases import KshimTestCase
    from kshim.testing.cluster import Cluster, LeftBehind
    from kshim.testing.drawing import Schedule, schedules
    from kshim.testing.faults import AsyncFault, Fault
    from kshim.testing.groups import Group, Member, TopicPartition
    from kshim.testing.new_records import NewRecord
    from kshim.testing.quotas import AsyncQuota, Quota
    from kshim.testing.rebalances import Moved, Rebalance, Role
    from kshim.testing.records import Consumed, Position
    from kshim.testing.server import Kshim, NotStarted, serving
    from kshim.testing.tls import Tls
    from kshim.testing.tortures import PromiseBroken, Tortured, torture
    from kshim.testing.worker import Work
    from kshim.torture.unplayable import Unplayable

_MODULES = {
    "asynchronous": ("AsyncKshim",),
    "brokers": ("Refused",),
    "cases": ("KshimTestCase",),
    "cluster": ("Cluster", "LeftBehind"),
    "drawing": ("Schedule", "schedules"),
    "faults": ("AsyncFault", "Fault"),
    "groups": ("Group", "Member", "TopicPartition"),
    "new_records": ("NewRecord",),
    "quotas": ("AsyncQuota", "Quota"),
    "rebalances": ("Moved", "Rebalance", "Role"),
    "records": ("Consumed", "Position"),
    "server": ("Kshim", "NotStarted", "serving"),
    "tls": ("Tls",),
    "tortures": ("PromiseBroken", "Tortured", "Unplayable", "torture"),
    "worker": ("Work",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "AsyncFault",
    "AsyncKshim",
    "AsyncQuota",
    "Cluster",
    "Consumed",
    "Fault",
    "Group",
    "Kshim",
    "KshimTestCase",
    "LeftBehind",
    "Member",
    "Moved",
    "NewRecord",
    "NotStarted",
    "Position",
    "PromiseBroken",
    "Quota",
    "Rebalance",
    "Refused",
    "Role",
    "Schedule",
    "Tls",
    "TopicPartition",
    "Tortured",
    "Unplayable",
    "Work",
    "schedules",
    "serving",
    "torture",
]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
