"""Bit masks of all that can be done with a resource (KIP-430): without an authorizer every caller may do it.

Bit n stands for Kafka's AclOperation n. Kafka's own default, the smallest int32, means "not asked for"; some
clients mistake it for a mask and fail.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol, TypeVar

from kshim.cluster.acl import AclOperation
from schemas.error_code import ErrorCode
from schemas.message import Structure


class _Group(Structure, Protocol):
    @property
    def error_code(self) -> int: ...


G = TypeVar("G", bound=_Group)


def _mask(names: str) -> int:
    return sum(1 << AclOperation[name] for name in names.split())


TOPIC_OPERATIONS = _mask("READ WRITE CREATE DESCRIBE DELETE ALTER DESCRIBE_CONFIGS ALTER_CONFIGS")
CLUSTER_OPERATIONS = _mask(
    "CREATE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS IDEMPOTENT_WRITE ALTER DESCRIBE"
)
GROUP_OPERATIONS = _mask("READ DESCRIBE DELETE DESCRIBE_CONFIGS ALTER_CONFIGS")


def with_group_operations(group: G) -> G:
    """A described group with the operations on it; unchanged if it could not be described."""
    if group.error_code != ErrorCode.NONE:
        return group
    return replace(group, authorized_operations=GROUP_OPERATIONS)
