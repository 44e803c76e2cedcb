"""The codes and filters in requests about access control lists (KIP-140)."""

from __future__ import annotations

from typing import Protocol

from kshim.callers import Refused
from kshim.cluster.acl import AclFilter

UNKNOWN = 0
"""How a client reads a code that it does not know; no request may send it."""


class _Filter(Protocol):
    @property
    def resource_type_filter(self) -> int: ...
    @property
    def resource_name_filter(self) -> str | None: ...
    @property
    def pattern_type_filter(self) -> int: ...
    @property
    def principal_filter(self) -> str | None: ...
    @property
    def host_filter(self) -> str | None: ...
    @property
    def operation(self) -> int: ...
    @property
    def permission_type(self) -> int: ...


def require_known(*codes: int) -> None:
    """Raise Refused if a code is UNKNOWN: Apache Kafka treats such a request as unreadable."""
    if UNKNOWN in codes:
        raise Refused("an access control list with a code that is UNKNOWN")


def new_filter(wanted: _Filter) -> AclFilter:
    """The filter of a request. Raises Refused."""
    require_known(
        wanted.resource_type_filter, wanted.pattern_type_filter, wanted.operation, wanted.permission_type
    )
    return AclFilter(
        wanted.resource_type_filter,
        wanted.resource_name_filter,
        wanted.pattern_type_filter,
        wanted.principal_filter,
        wanted.host_filter,
        wanted.operation,
        wanted.permission_type,
    )
