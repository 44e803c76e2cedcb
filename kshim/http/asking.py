"""How pages ask a broker of this process."""

from __future__ import annotations

from typing import Any, Protocol

from schemas.api_key import ApiKey


class Ask(Protocol):
    """Asks a broker as a client that has not authenticated."""

    async def __call__(self, api_key: ApiKey, version: int, request: Any, host: str, node_id: int) -> Any:
        """Return the response of one broker."""
