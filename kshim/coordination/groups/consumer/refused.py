"""A request that is refused: an error and, mostly, a message, both of Kafka's."""

from __future__ import annotations

from schemas.error_code import ErrorCode

LONGEST_SHOWN = 10_000
"""How many characters of a group id a message may repeat; the message is at most 32767 bytes long."""


class Refused(Exception):
    """Raised before anything has changed."""

    def __init__(self, error: ErrorCode, message: str | None = None) -> None:
        super().__init__(error, message)
        self.error = error
        self.message = message
