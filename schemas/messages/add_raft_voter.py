"""AddRaftVoter (80): add a controller to the voters of the quorum (KIP-853).

v0 is flexible already; v1 ack_when_committed (KIP-1186).
"""

from uuid import UUID

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, boolean, int16, int32, nullable_string, string, uint16, uuid


@entity
class Listener:
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)


@message(api_key=ApiKey.ADD_RAFT_VOTER, versions=range(0, 2), flexible=0)
class AddRaftVoterRequest:
    cluster_id: str | None = field(nullable_string)
    timeout_ms: int = field(int32)
    voter_id: int = field(int32)
    voter_directory_id: UUID = field(uuid)
    listeners: tuple[Listener, ...] = field(array(Listener))
    ack_when_committed: bool = field(boolean, since=1, default=True)


@message(api_key=ApiKey.ADD_RAFT_VOTER, versions=range(0, 2), flexible=0)
class AddRaftVoterResponse:
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)
