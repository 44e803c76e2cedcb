"""PLAIN: right passwords, and the answers to wrong ones."""

from __future__ import annotations

import pytest

from kshim.authentication.mechanism import Answer, AuthenticationFailed, Login
from kshim.authentication.plain import FOR_ANOTHER, NO_PASSWORD, NO_USER, WRONG, Plain

PASSWORDS = {"alice": "wonderland", "größe": "pässwörd", "empty": ""}


@pytest.mark.parametrize(
    ("token", "name"),
    [("\0alice\0wonderland", "alice"), ("alice\0alice\0wonderland", "alice"), ("\0größe\0pässwörd", "größe")],
)
def test_who_knows_the_password_comes_in(token: str, name: str) -> None:
    assert Plain(PASSWORDS).step(token.encode(), 0) == Answer(b"", Login(name))


@pytest.mark.parametrize(
    ("token", "told"),
    [
        (b"\0alice\0wonder", WRONG),
        (b"\0alice\0wonderlands", WRONG),
        (b"\0nobody\0wonderland", WRONG),
        (b"\0Alice\0wonderland", WRONG),
        (b"\0\xff\0\xff", WRONG),
        (b"\0empty\0", NO_PASSWORD),
        (b"\0alice\0", NO_PASSWORD),
        (b"\0\0wonderland", NO_USER),
        (b"bob\0alice\0wonderland", FOR_ANOTHER),
        (b"bob\0alice\0wrong", WRONG),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0alice\0wonderland\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
    ],
)
def test_others_do_not(token: bytes, told: str) -> None:
    with pytest.raises(AuthenticationFailed) as failed:
        Plain(PASSWORDS).step(token, 0)
    assert failed.value.message == told
    assert "wonder" not in str(failed.value)
