"""The interface of what decides which operations a client may perform: ACLs here, or another cluster."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol


class Decisions(Protocol):
    """Decides at once. principal: such as User:alice. host: the client's, as text."""

    @property
    def version(self) -> Hashable:
        """Changes with the decisions; one that is cached elsewhere counts for one version."""

    def cost_us(self, resource_type: int, name: str) -> int:
        """The longest time that a decision about a resource may take, in microseconds."""

    def allows(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> bool:
        """True if `principal` may perform one operation on a resource from `host`."""

    def allows_any(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """True if `principal` may perform the operation on some resource of this type."""

    def operations(self, principal: str, host: str, resource_type: int, name: str) -> int:
        """The bits of all operations that `principal` may perform on a resource from `host`."""
