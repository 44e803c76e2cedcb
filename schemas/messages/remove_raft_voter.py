"""RemoveRaftVoter (81): take a controller out of the voters of the quorum (KIP-853)."""

from uuid import UUID

from schemas.api_key import ApiKey
from schemas.message import field, message
from schemas.primitives import int16, int32, nullable_string, uuid


@message(api_key=ApiKey.REMOVE_RAFT_VOTER, versions=range(0, 1), flexible=0)
class RemoveRaftVoterRequest:
    cluster_id: str | None = field(nullable_string)
    voter_id: int = field(int32)
    voter_directory_id: UUID = field(uuid)


@message(api_key=ApiKey.REMOVE_RAFT_VOTER, versions=range(0, 1), flexible=0)
class RemoveRaftVoterResponse:
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)
