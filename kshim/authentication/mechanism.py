"""The common part of all mechanisms: the interface, results and exceptions of an exchange of tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import NamedTuple, Protocol


class Login(NamedTuple):
    """A user who has authenticated."""

    name: str
    expires_ms: int | None = None
    """The end of the user's token, in milliseconds since 1970; None if there is no end."""


class Answer(NamedTuple):
    """A token for the client."""

    token: bytes
    login: Login | None = None
    """Set in the last answer of a successful exchange."""


class Mechanism(Protocol):
    """One exchange with one client. It ends with an exception, or with an answer that has a login."""

    user: str
    """The name that the client claims; empty until the client has sent it."""

    def step(self, token: bytes, now_ms: int) -> Answer | Awaitable[Answer]:
        """Answer a token, at once or later. Raises AuthenticationFailed, Unreadable."""
        ...


class AuthenticationFailed(Exception):
    """The client is refused. str() is the reason for the log, without secrets."""

    def __init__(self, why: str, message: str = "") -> None:
        super().__init__(why)
        self.message = message
        """The message for the client, in Kafka's words; empty stands for "invalid credentials"."""


class NotEnabled(Exception):
    """The server that checks the tokens does not take the mechanism."""

    def __init__(self, enabled: Sequence[str]) -> None:
        super().__init__("the mechanism is not enabled")
        self.enabled = enabled
        """The mechanisms that it takes."""


def text_of(token: bytes, most_bytes: int) -> str:
    """Decode a token. Raises AuthenticationFailed if it is too long: to match it against patterns would make
    other clients wait. No honest client sends such a token.
    """
    if len(token) > most_bytes:
        raise AuthenticationFailed(f"its token has more than {most_bytes} bytes")
    return token.decode("utf-8", "replace")


class Unreadable(Exception):
    """A token for which Kafka closes the connection without an answer. str() says why, without secrets."""


def check_authorization_id(asked: str, name: str, message: str) -> None:
    """Raise AuthenticationFailed if the client asks to act for another user.

    asked: the requested authorization id, or empty. message: the message for the client.
    """
    if asked and asked != name:
        raise AuthenticationFailed("it asks to act for another user", message)
