"""What all mechanisms have in common: how one exchange of tokens goes on, succeeds and fails."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Login(NamedTuple):
    """Who has authenticated."""

    name: str
    expires_ms: int | None = None
    """When its token ends, in milliseconds since 1970; None if it has no end."""


class Answer(NamedTuple):
    """A token for the client."""

    token: bytes
    login: Login | None = None
    """Set with the last token."""


class Mechanism(Protocol):
    """One exchange with one client. After an exception, or an answer with a login, it is over."""

    user: str
    """Whom the client says to be; empty as long as it has not said."""

    def step(self, token: bytes, now_ms: int) -> Answer:
        """Answer a token. Raises AuthenticationFailed, Unreadable."""
        ...


class AuthenticationFailed(Exception):
    """The client may not come in; str() is the reason for the log, without secrets."""

    def __init__(self, why: str, told: str = "") -> None:
        super().__init__(why)
        self.told = told
        """What the client is told, in Kafka's words; if empty, that its credentials are invalid."""


def text_of(token: bytes, most_bytes: int) -> str:
    """A token as text. Raises AuthenticationFailed for one that no client sends: to look for patterns in it
    would keep others waiting.
    """
    if len(token) > most_bytes:
        raise AuthenticationFailed(f"its token has more than {most_bytes} bytes")
    return token.decode("utf-8", "replace")


class Unreadable(Exception):
    """Kafka closes the connection of who sends this, without an answer; str() says why, without secrets."""


def check_authorization_id(asked: str, name: str, told: str) -> None:
    """Let nobody act for another: raise AuthenticationFailed."""
    if asked and asked != name:
        raise AuthenticationFailed("it asks to act for another user", told)
