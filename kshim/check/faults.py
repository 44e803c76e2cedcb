"""What is wrong, and where."""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """`where` is a topic-partition, with an offset where there is one, or what else is damaged."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"
