"""Users with passwords: what is refused, what is kept, and that unknown users look like most others."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kshim.authentication.scram_credential import ScramMechanism
from kshim.cluster.keys import SCRAM_SECRET
from kshim.cluster.scram import ScramUsers
from kshim.cluster.scram_users import (
    NO_MECHANISM,
    NO_NAME,
    NO_PASSWORD,
    NO_USER,
    TOO_FEW,
    TOO_MANY,
    TWICE,
    Deletion,
    ScramChange,
    Upsertion,
)
from kshim.cluster.writer import Writer
from kshim.storage.memory import MemoryMetadata

SHA_256, SHA_512 = ScramMechanism
LONG = "ü" * 5_000


def users(metadata: MemoryMetadata | None = None) -> ScramUsers:
    metadata = metadata or MemoryMetadata()
    writer = Writer(metadata)
    writer.start()
    made = ScramUsers(writer)
    made.read(metadata)
    return made


def upsertion(name: str, mechanism: int = 1, iterations: int = 4096, salted: bytes = b"salted") -> Upsertion:
    return Upsertion(name, mechanism, iterations, b"salt", salted)


def altered(made: ScramUsers, *changes: ScramChange) -> Any:
    results: list[Any] = []
    outcome: Deferred[Any] = made.alter(changes)
    outcome.addCallback(results.append)
    return results[0]


def test_a_password_is_kept_across_a_restart_and_can_be_removed() -> None:
    metadata = MemoryMetadata()
    made = users(metadata)
    assert altered(made, upsertion("alice"), upsertion(LONG, 2, 16384)) == {"alice": None, LONG: None}
    assert altered(made, upsertion("alice", 2)) == {"alice": None}
    again = users(metadata)
    assert again.credentials == made.credentials
    assert {user: each.iterations for user, each in again.credentials.items()} == {
        ("alice", SHA_256): 4096,
        ("alice", SHA_512): 4096,
        (LONG, SHA_512): 16384,
    }
    assert altered(again, Deletion("alice", 1), Deletion(LONG, 2)) == {"alice": None, LONG: None}
    assert list(users(metadata).credentials) == [("alice", SHA_512)]


def test_the_salted_password_is_not_kept() -> None:
    metadata = MemoryMetadata()
    altered(users(metadata), upsertion("alice", salted=b"the salted password"))
    assert not any(b"the salted password".hex().encode() in value for _, value in metadata.items(b""))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([upsertion("")], {"": NO_NAME}),
        ([upsertion("a", 0)], {"a": NO_MECHANISM}),
        ([upsertion("", 0), upsertion("b", 3)], {"": NO_NAME, "b": NO_MECHANISM}),
        ([upsertion("a", 1, 4095)], {"a": TOO_FEW}),
        ([upsertion("a", 1, 16385)], {"a": TOO_MANY}),
        ([upsertion("a"), upsertion("a", 2)], {"a": TWICE}),
        ([upsertion("a"), upsertion("a"), upsertion("a")], {"a": TWICE}),
        ([upsertion("a", 0), upsertion("a")], {"a": NO_MECHANISM}),
        ([Deletion("nobody", 1)], {"nobody": NO_USER}),
        ([Deletion("known", 2)], {"known": NO_USER}),
        ([Deletion("known", 1), upsertion("known")], {"known": TWICE}),
        ([Deletion("nobody", 1), upsertion("nobody")], {"nobody": NO_USER}),
        ([Deletion("", 1)], {"": NO_NAME}),
        ([upsertion("a", salted=b"")], {"a": NO_PASSWORD}),
    ],
)
def test_changes_that_are_refused(changes: list[ScramChange], expected: dict[str, Any]) -> None:
    made = users()
    altered(made, upsertion("known"))
    before = dict(made.credentials)
    assert altered(made, *changes) == expected
    assert made.credentials == before
    assert altered(made, *changes, upsertion("other"))["other"] is None


def test_an_unknown_user_has_as_many_iterations_as_most() -> None:
    made = users()
    assert made.invented("x", SHA_256).iterations == 4096
    altered(made, upsertion("a", 1, 8192), upsertion("b", 1, 8192), upsertion("c"), upsertion("d", 2, 5000))
    assert (made.invented("x", SHA_256).iterations, made.invented("x", SHA_512).iterations) == (8192, 5000)


def test_an_unknown_user_looks_the_same_after_a_restart() -> None:
    metadata = MemoryMetadata()
    changes: dict[bytes, bytes | None] = {}
    made = users(metadata)
    made.prepare(changes)
    metadata.put(changes)
    again = users(metadata)
    unchanged: dict[bytes, bytes | None] = {}
    again.prepare(unchanged)
    assert (list(changes), unchanged) == ([SCRAM_SECRET], {})
    assert again.invented("x", SHA_256) == made.invented("x", SHA_256)
