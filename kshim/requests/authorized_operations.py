"""Bit masks of what a caller may do (KIP-430): everything, since there is no authorizer.

Bit n stands for Kafka's AclOperation n. Kafka's own default, the smallest int32, means "not asked for"; some
clients mistake it for a mask and fail.
"""

from __future__ import annotations

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION = 3, 4, 5, 6, 7, 8, 9
DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 10, 11, 12


def _mask(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = _mask(READ, WRITE, CREATE, DESCRIBE, DELETE, ALTER, DESCRIBE_CONFIGS, ALTER_CONFIGS)
CLUSTER_OPERATIONS = _mask(
    CREATE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE, ALTER, DESCRIBE
)
GROUP_OPERATIONS = _mask(READ, DESCRIBE, DELETE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
