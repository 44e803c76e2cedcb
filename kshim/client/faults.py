"""The mistakes and refusals that end a command, and the retriable errors that do not."""

from __future__ import annotations

from collections.abc import Collection

from schemas.error_code import ErrorCode


class ClientError(Exception):
    """The cluster cannot do what was asked. str() is one line for the user."""


class Unreachable(ClientError):
    """A broker cannot be reached, or its connection was lost."""


class Unanswered(Unreachable):
    """A broker closed a connection without an answer, as one does that wants TLS or a login."""


class Refused(ClientError):
    """A broker refused a request. `error_code` is Kafka's error code."""

    def __init__(self, operation: str, error_code: int, message: str | None = None) -> None:
        super().__init__(f"{operation}: {error_name(error_code)}{f': {message}' if message else ''}")
        self.error_code = error_code

    @property
    def is_retriable(self) -> bool:
        """True if the same request may succeed later."""
        return is_retriable(self.error_code)


def check(operation: str, error_code: int, message: str | None = None) -> None:
    """Raise Refused unless the error code is NONE."""
    if error_code != ErrorCode.NONE:
        raise Refused(operation, error_code, message)


def error_name(error_code: int) -> str:
    """Kafka's name of an error; the number of one that is not known."""
    try:
        return ErrorCode(error_code).name
    except ValueError:
        return f"error {error_code}"


def is_retriable(error_code: int) -> bool:
    """True for an error that Kafka calls retriable."""
    try:
        return ErrorCode(error_code).retriable
    except ValueError:
        return False


def did_you_mean(name: str, known: Collection[str]) -> str:
    """Return "; did you mean …?" with the names that are most like `name`; empty if none is."""
    from difflib import get_close_matches

    near = get_close_matches(name, sorted(known), 3)
    return f"; did you mean {' or '.join(near)}?" if near else ""
