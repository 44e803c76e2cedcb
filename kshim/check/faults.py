"""A fault in a data directory: where it is, and what is wrong."""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """One fault. str() is its line in the output of `kshim check`."""

    where: str
    """A topic-partition, with the offset if it is known, or the name of another damaged part."""
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"
