"""Changes of passwords for SCRAM: Kafka's refusals, and the stored form of credentials.

Pure. Kafka answers each user of a request once. So it refuses a user with two changes, even if they are of
two mechanisms.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

from kshim.authentication.scram_credential import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramCredential,
    ScramMechanism,
)
from kshim.cluster.checks import Refusal
from schemas.error_code import ErrorCode

User = tuple[str, ScramMechanism]
"""A user's name, and a mechanism. A user has one password for each mechanism."""

TWICE = Refusal(ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
NO_NAME = Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
NO_MECHANISM = Refusal(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
TOO_FEW = Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
TOO_MANY = Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
NO_PASSWORD = Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Salted password must not be empty")
NO_USER = Refusal(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")


class Deletion(NamedTuple):
    """A request to remove a password."""

    name: str
    mechanism: int
    """A mechanism's number, or any other that a client sent."""


class Upsertion(NamedTuple):
    """A request to set a password. The client sends only its salted form."""

    name: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes

    def credential(self, mechanism: ScramMechanism) -> ScramCredential:
        """The credential to keep for the user."""
        from kshim.authentication.scram_keys import new_credential

        return new_credential(mechanism, self.salted_password, self.salt, self.iterations)

    def __repr__(self) -> str:
        return f"Upsertion(name={self.name!r})"


ScramChange = Deletion | Upsertion
Outcomes = Mapping[str, Refusal | None]
"""A refusal, or None for success, by user name."""


def refuse_all(changes: Iterable[ScramChange], known: Container[User]) -> Outcomes:
    """A refusal, or None for success, by user name.

    changes: the deletions come first. known: the users that have a password.
    """
    outcomes: dict[str, Refusal | None] = {}
    for change in changes:
        if change.name not in outcomes:
            outcomes[change.name] = _refusal(change, known)
        elif outcomes[change.name] is None:
            outcomes[change.name] = TWICE
    return outcomes


def _refusal(change: ScramChange, known: Container[User]) -> Refusal | None:
    mechanism = ScramMechanism.numbered(change.mechanism)
    if not change.name:
        return NO_NAME
    if mechanism is None:
        return NO_MECHANISM
    if isinstance(change, Deletion):
        return None if (change.name, mechanism) in known else NO_USER
    if change.iterations < MIN_ITERATIONS:
        return TOO_FEW
    if change.iterations > MAX_ITERATIONS:
        return TOO_MANY
    return None if change.salted_password else NO_PASSWORD


# ---- stored


def stored_key(user: User) -> bytes:
    """A key of bounded length for a user, whose name may be long."""
    import hashlib

    name, mechanism = user
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return b"%d/%s" % (mechanism.number, digest.encode())


def encode_credential(user: User, credential: ScramCredential) -> bytes:
    """The stored value of a user's credential."""
    name, mechanism = user
    keys = (credential.salt, credential.stored_key, credential.server_key)
    return json.dumps([name, mechanism.value, *(key.hex() for key in keys), credential.iterations]).encode()


def decode_credential(stored: bytes) -> tuple[User, ScramCredential]:
    name, mechanism, *keys, iterations = json.loads(stored)
    salt, stored_key, server_key = map(bytes.fromhex, keys)
    return (name, ScramMechanism(mechanism)), ScramCredential(salt, stored_key, server_key, iterations)
