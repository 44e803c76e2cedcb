"""Partition leadership: the error for a client that asks the wrong broker or knows another leader epoch.

A client sends the leader epoch that it knows (KIP-320). The answer with the error names the current leader
(KIP-951).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshim.cluster.topics import Partition
from schemas.error_code import ErrorCode

if TYPE_CHECKING:
    from kshim.storage.interfaces import Log

NO_EPOCH = -1
NO_OFFSET = -1


def fault_in_leadership(
    node_id: int,
    partition: Partition,
    current_leader_epoch: int = NO_EPOCH,
    *,
    any_replica: bool = False,
) -> ErrorCode:
    """The error for a client that asks broker `node_id` and knows `current_leader_epoch`.

    Returns NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH (the client is behind), UNKNOWN_LEADER_EPOCH (it is
    ahead), or NONE. A client that sends no epoch is not fenced. any_replica: the broker need not lead
    (KIP-392).
    """
    if node_id not in partition.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if current_leader_epoch not in (NO_EPOCH, partition.leader_epoch):
        is_behind = current_leader_epoch < partition.leader_epoch
        return ErrorCode.FENCED_LEADER_EPOCH if is_behind else ErrorCode.UNKNOWN_LEADER_EPOCH
    if partition.leader != node_id and not any_replica:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.NONE


def end_of_epoch(log: Log, partition: Partition, leader_epoch: int) -> tuple[int, int]:
    """Return the largest epoch up to `leader_epoch` with records in the log, and the offset at which it ends.

    Returns (-1, -1) if `leader_epoch` is -1, or above the current one. If it is older than all epochs in the
    log, returns `leader_epoch` itself and the offset at which the log begins (KIP-101, KIP-279).
    """
    if leader_epoch == NO_EPOCH or leader_epoch > partition.leader_epoch:
        return NO_EPOCH, NO_OFFSET
    if leader_epoch == partition.leader_epoch:
        return leader_epoch, log.offsets(partition.partition_no).log_end_offset
    boundary = log.epoch_boundary(partition.partition_no, leader_epoch)
    epoch = leader_epoch if boundary.epoch == NO_EPOCH else boundary.epoch
    return epoch, boundary.offset


def first_epoch(log: Log, partition: Partition) -> int:
    """The leader epoch of the first record, or the current one if there are no records."""
    if partition.leader_epoch == 0:  # then all records have it; a short cut, because consumers ask often
        return 0
    first = log.epoch_boundary(partition.partition_no, NO_EPOCH).next_epoch
    return partition.leader_epoch if first == NO_EPOCH else first
