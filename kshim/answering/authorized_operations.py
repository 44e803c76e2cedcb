"""Bit masks of all that can be done with a resource (KIP-430): without an authorizer every caller may do it.

Bit n stands for Kafka's AclOperation n. Kafka's own default, the smallest int32, means "not asked for"; some
clients mistake it for a mask and fail.
"""

from __future__ import annotations

from kshim.cluster.acl import AclOperation


def _mask(names: str) -> int:
    return sum(1 << AclOperation[name] for name in names.split())


TOPIC_OPERATIONS = _mask("READ WRITE CREATE DESCRIBE DELETE ALTER DESCRIBE_CONFIGS ALTER_CONFIGS")
CLUSTER_OPERATIONS = _mask(
    "CREATE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS IDEMPOTENT_WRITE ALTER DESCRIBE"
)
GROUP_OPERATIONS = _mask("READ DESCRIBE DELETE DESCRIBE_CONFIGS ALTER_CONFIGS")
