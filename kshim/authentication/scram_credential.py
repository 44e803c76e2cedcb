"""The stored credential of a user for SCRAM (RFC 5802): two keys, from which the password cannot be computed.

The server never sees the password. A client that sets one sends the salted password, and the server keeps
only the two keys made from it. `scram_keys` computes them; a server without users never imports it.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 16384
"""Kafka's limits for the iterations of a new credential."""


class ScramMechanism(Enum):
    """A mechanism. Its value is its name; requests use its `number` (KIP-554)."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"

    @property
    def hash_name(self) -> str:
        """The name of the hash in hashlib, such as "sha256"."""
        return self.name.replace("_", "").lower()

    @property
    def number(self) -> int:
        return list(ScramMechanism).index(self) + 1

    @classmethod
    def numbered(cls, number: int) -> ScramMechanism | None:
        """The mechanism with that number; None if there is none."""
        return next((each for each in cls if each.number == number), None)


class ScramCredential(NamedTuple):
    """The credential of one user for one mechanism."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return "ScramCredential()"
