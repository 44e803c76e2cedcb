"""The histories, by subject. Each names the cases of the coordinator's list that it covers."""

from __future__ import annotations

from integration.differential.histories import (
    groups,
    heartbeat,
    joining,
    leaving,
    offsets,
    rejoining,
    static,
    syncing,
    timing,
    transactions,
)

HISTORIES = [
    *joining.HISTORIES,
    *timing.HISTORIES,
    *rejoining.HISTORIES,
    *static.HISTORIES,
    *syncing.HISTORIES,
    *heartbeat.HISTORIES,
    *leaving.HISTORIES,
    *groups.HISTORIES,
    *offsets.HISTORIES,
    *transactions.HISTORIES,
]
