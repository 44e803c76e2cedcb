"""`kshim check`: whether all that a data directory holds is whole, and what exactly is damaged."""

from kshim.check.command import check

__all__ = ["check"]
