"""Fencing of clients whose picture of a partition's leader is not ours (KIP-320)."""

from __future__ import annotations

from kshim.cluster import Partition
from schemas.error_code import ErrorCode

NO_EPOCH = -1


def fault_in_leader_epoch(partition: Partition, current_leader_epoch: int) -> ErrorCode:
    """What a client is told that believes the partition's leader epoch to be `current_leader_epoch`."""
    if current_leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if current_leader_epoch > partition.leader_epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE
