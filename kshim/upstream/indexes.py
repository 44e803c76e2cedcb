"""The port of each upstream broker: the first port plus the broker's index, which is kept over restarts.

Brokers get indexes in the order in which they are first seen. No index is given to a second broker: a client
that knows a broker's port from yesterday reaches that broker or nobody.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


class WrongUpstream(Exception):
    """The data directory cannot be used for this upstream. str() is one line for the user."""


FILE = "upstream.json"


class Indexes:
    """The brokers' indexes, by node id."""

    def __init__(self, directory: Path | None) -> None:
        """directory: where the indexes are kept; None keeps them in memory."""
        self._path = directory and directory / FILE
        self._cluster_id = ""
        self._indexes: dict[int, int] = {}

    def open(self, cluster_id: str) -> None:
        """Read the indexes kept for this cluster. Raises WrongUpstream."""
        self._cluster_id = cluster_id
        if self._path is None or not self._path.exists():
            return
        try:
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            known_id, pairs = str(kept["cluster_id"]), kept["brokers"].items()
            indexes = {int(node_id): int(index) for node_id, index in pairs}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise WrongUpstream(f"{self._path}: cannot be read: {error}") from None
        if known_id != cluster_id:
            raise WrongUpstream(
                f"{self._path}: this data directory is for the cluster {known_id}, "
                f"and the upstream is {cluster_id}: use another --data-dir"
            )
        self._indexes = indexes

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield each broker's node id and index."""
        return iter(self._indexes.items())

    def add(self, node_id: int) -> int:
        """Return a broker's index; give a new broker the next one, and keep it on disk. Raises OSError."""
        index = self._indexes.get(node_id)
        if index is None:
            index = max(self._indexes.values(), default=-1) + 1
            with_it = {**self._indexes, node_id: index}
            self._keep(with_it)
            self._indexes = with_it
        return index

    def _keep(self, indexes: dict[int, int]) -> None:
        if self._path is None:
            return
        text = json.dumps({"cluster_id": self._cluster_id, "brokers": indexes}, indent=1)
        beside = self._path.with_suffix(".new")
        try:
            beside.unlink(missing_ok=True)  # so that a link that somebody else put there is not followed
            with beside.open("x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
        except OSError:
            with suppress(OSError):
                beside.unlink()
            raise
