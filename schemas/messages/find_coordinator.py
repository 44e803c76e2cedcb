"""FindCoordinator (10): find the broker that coordinates a group or a transactional id.

v1 key_type (KIP-98), throttle_time_ms and error_message; v3 flexible; v4 many keys in one request (KIP-699);
v5 TRANSACTION_ABORTABLE (KIP-890); v6 share groups (KIP-932).

key_type: 0 group, 1 transaction, 2 share. An entry in error has node_id -1, host "" and port -1.
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, int8, int16, int32, nullable_string, string


@message(api_key=ApiKey.FIND_COORDINATOR, versions=range(0, 7), flexible=3)
class FindCoordinatorRequest:
    key: str = field(string, until=3)
    key_type: int = field(int8, since=1)
    coordinator_keys: tuple[str, ...] = field(array(string), since=4)


@entity
class Coordinator:
    key: str = field(string)
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)


@message(api_key=ApiKey.FIND_COORDINATOR, versions=range(0, 7), flexible=3)
class FindCoordinatorResponse:
    throttle_time_ms: int = field(int32, since=1)
    error_code: int = field(int16, until=3)
    error_message: str | None = field(nullable_string, since=1, until=3)
    node_id: int = field(int32, until=3)
    host: str = field(string, until=3)
    port: int = field(int32, until=3)
    coordinators: tuple[Coordinator, ...] = field(array(Coordinator), since=4)
