"""A request that is refused: an error and, mostly, a message, both of Kafka's."""

from __future__ import annotations

from schemas.error_code import ErrorCode


class Refused(Exception):
    """Raised before anything has changed."""

    def __init__(self, error: ErrorCode, message: str | None = None) -> None:
        super().__init__(error, message)
        self.error = error
        self.message = message
