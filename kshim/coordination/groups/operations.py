"""The function that decides each request about a group, by the type of the request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kshim.coordination.decision import Caller, Decision
from kshim.coordination.groups import shard_offsets
from kshim.coordination.groups.consumer.requests import DescribeConsumerGroup, MemberHeartbeat
from kshim.coordination.groups.refusals import DeleteGroup, DescribeGroup, StableOffsetFetch, WaitingHeartbeat
from kshim.coordination.groups.shard import Shard
from kshim.coordination.groups.steering_requests import ExpireMember, FenceMember, ForceRebalance
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest
from schemas.messages.leave_group import LeaveGroupRequest
from schemas.messages.offset_commit import OffsetCommitRequest
from schemas.messages.offset_delete import OffsetDeleteRequest
from schemas.messages.offset_fetch import OffsetFetchRequestGroup
from schemas.messages.sync_group import SyncGroupRequest
from schemas.messages.txn_offset_commit import TxnOffsetCommitRequest

Operation = Callable[[Shard, Caller, Any, int], Decision]

OPERATIONS: dict[type, Operation] = {
    JoinGroupRequest: Shard.join_group,
    SyncGroupRequest: Shard.sync_group,
    HeartbeatRequest: Shard.heartbeat,
    WaitingHeartbeat: Shard.heartbeat_that_waits,
    LeaveGroupRequest: Shard.leave_group,
    OffsetCommitRequest: shard_offsets.offset_commit,
    OffsetFetchRequestGroup: shard_offsets.offset_fetch,
    StableOffsetFetch: shard_offsets.stable_offset_fetch,
    TxnOffsetCommitRequest: shard_offsets.txn_offset_commit,
    OffsetDeleteRequest: shard_offsets.offset_delete,
    DescribeGroup: Shard.describe_group,
    DeleteGroup: Shard.delete_group,
    ForceRebalance: Shard.steer,
    ExpireMember: Shard.steer,
    FenceMember: Shard.steer,
    MemberHeartbeat: Shard.consumer_heartbeat,
    DescribeConsumerGroup: Shard.describe_consumer_group,
}
"""The function that answers each kind of request."""
