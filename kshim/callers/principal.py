"""A client's principal, as Kafka names it: "User:alice"."""

from __future__ import annotations

from typing import Final, NamedTuple

USER: Final = "User"


class Principal(NamedTuple):
    """A type, which is nearly always User, and a name (KafkaPrincipal)."""

    principal_type: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Principal:
        """ "User:alice"; the name may contain colons. Raises ValueError, in words for the user."""
        principal_type, colon, name = text.partition(":")
        if not (colon and principal_type and name):
            raise ValueError(f"{text}: expected TYPE:NAME, as in User:alice")
        return cls(principal_type, name)

    def __str__(self) -> str:
        return f"{self.principal_type}:{self.name}"


ANONYMOUS: Final = Principal(USER, "ANONYMOUS")
"""Whoever does not authenticate."""
