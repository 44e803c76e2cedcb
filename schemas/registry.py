"""Which messages and versions exist: THE table, and the way from a frame to a message and back.

A frame is what follows the four bytes of size: a header and a body, and nothing behind it. Give it as
`bytes`: anything else is copied once. The code for a version is written when it is first used.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from schemas.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from schemas.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from schemas.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from schemas.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from schemas.api_key import ApiKey
from schemas.api_versions import ApiVersionsRequest, ApiVersionsResponse
from schemas.compiled import Decoder, Encoder, decoder, encoder, overfull
from schemas.create_acls import CreateAclsRequest, CreateAclsResponse
from schemas.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from schemas.create_topics import CreateTopicsRequest, CreateTopicsResponse
from schemas.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from schemas.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from schemas.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from schemas.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from schemas.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from schemas.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse
from schemas.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from schemas.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from schemas.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from schemas.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from schemas.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from schemas.describe_topic_partitions import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse
from schemas.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from schemas.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from schemas.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from schemas.end_txn import EndTxnRequest, EndTxnResponse
from schemas.fetch import FetchRequest, FetchResponse
from schemas.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from schemas.header import RequestHeader, ResponseHeader, request_header_version, response_header_version
from schemas.heartbeat import HeartbeatRequest, HeartbeatResponse
from schemas.incremental_alter_configs import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from schemas.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from schemas.join_group import JoinGroupRequest, JoinGroupResponse
from schemas.leave_group import LeaveGroupRequest, LeaveGroupResponse
from schemas.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from schemas.list_groups import ListGroupsRequest, ListGroupsResponse
from schemas.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from schemas.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from schemas.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from schemas.message import MalformedMessage, definition
from schemas.metadata import MetadataRequest, MetadataResponse
from schemas.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from schemas.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from schemas.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from schemas.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from schemas.produce import ProduceRequest, ProduceResponse
from schemas.sync_group import SyncGroupRequest, SyncGroupResponse
from schemas.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from schemas.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

MESSAGES: Final[dict[ApiKey, tuple[Any, Any]]] = {
    ApiKey.PRODUCE: (ProduceRequest, ProduceResponse),
    ApiKey.FETCH: (FetchRequest, FetchResponse),
    ApiKey.LIST_OFFSETS: (ListOffsetsRequest, ListOffsetsResponse),
    ApiKey.METADATA: (MetadataRequest, MetadataResponse),
    ApiKey.OFFSET_COMMIT: (OffsetCommitRequest, OffsetCommitResponse),
    ApiKey.OFFSET_FETCH: (OffsetFetchRequest, OffsetFetchResponse),
    ApiKey.FIND_COORDINATOR: (FindCoordinatorRequest, FindCoordinatorResponse),
    ApiKey.JOIN_GROUP: (JoinGroupRequest, JoinGroupResponse),
    ApiKey.HEARTBEAT: (HeartbeatRequest, HeartbeatResponse),
    ApiKey.LEAVE_GROUP: (LeaveGroupRequest, LeaveGroupResponse),
    ApiKey.SYNC_GROUP: (SyncGroupRequest, SyncGroupResponse),
    ApiKey.DESCRIBE_GROUPS: (DescribeGroupsRequest, DescribeGroupsResponse),
    ApiKey.LIST_GROUPS: (ListGroupsRequest, ListGroupsResponse),
    ApiKey.API_VERSIONS: (ApiVersionsRequest, ApiVersionsResponse),
    ApiKey.CREATE_TOPICS: (CreateTopicsRequest, CreateTopicsResponse),
    ApiKey.DELETE_TOPICS: (DeleteTopicsRequest, DeleteTopicsResponse),
    ApiKey.DELETE_RECORDS: (DeleteRecordsRequest, DeleteRecordsResponse),
    ApiKey.INIT_PRODUCER_ID: (InitProducerIdRequest, InitProducerIdResponse),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse),
    ApiKey.ADD_PARTITIONS_TO_TXN: (AddPartitionsToTxnRequest, AddPartitionsToTxnResponse),
    ApiKey.ADD_OFFSETS_TO_TXN: (AddOffsetsToTxnRequest, AddOffsetsToTxnResponse),
    ApiKey.END_TXN: (EndTxnRequest, EndTxnResponse),
    ApiKey.WRITE_TXN_MARKERS: (WriteTxnMarkersRequest, WriteTxnMarkersResponse),
    ApiKey.TXN_OFFSET_COMMIT: (TxnOffsetCommitRequest, TxnOffsetCommitResponse),
    ApiKey.DESCRIBE_ACLS: (DescribeAclsRequest, DescribeAclsResponse),
    ApiKey.CREATE_ACLS: (CreateAclsRequest, CreateAclsResponse),
    ApiKey.DELETE_ACLS: (DeleteAclsRequest, DeleteAclsResponse),
    ApiKey.DESCRIBE_CONFIGS: (DescribeConfigsRequest, DescribeConfigsResponse),
    ApiKey.ALTER_CONFIGS: (AlterConfigsRequest, AlterConfigsResponse),
    ApiKey.DESCRIBE_LOG_DIRS: (DescribeLogDirsRequest, DescribeLogDirsResponse),
    ApiKey.CREATE_PARTITIONS: (CreatePartitionsRequest, CreatePartitionsResponse),
    ApiKey.DELETE_GROUPS: (DeleteGroupsRequest, DeleteGroupsResponse),
    ApiKey.ELECT_LEADERS: (ElectLeadersRequest, ElectLeadersResponse),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (
        ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsResponse,
    ),
    ApiKey.OFFSET_DELETE: (OffsetDeleteRequest, OffsetDeleteResponse),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (DescribeClientQuotasRequest, DescribeClientQuotasResponse),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (
        DescribeUserScramCredentialsRequest,
        DescribeUserScramCredentialsResponse,
    ),
    ApiKey.DESCRIBE_CLUSTER: (DescribeClusterRequest, DescribeClusterResponse),
    ApiKey.DESCRIBE_PRODUCERS: (DescribeProducersRequest, DescribeProducersResponse),
    ApiKey.DESCRIBE_TRANSACTIONS: (DescribeTransactionsRequest, DescribeTransactionsResponse),
    ApiKey.LIST_TRANSACTIONS: (ListTransactionsRequest, ListTransactionsResponse),
    ApiKey.LIST_CONFIG_RESOURCES: (ListConfigResourcesRequest, ListConfigResourcesResponse),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse),
}


def _versions(request: Any) -> range:
    versions = definition(request).versions
    assert versions is not None
    return versions


VERSIONS: Final[dict[ApiKey, range]] = {key: _versions(request) for key, (request, _) in MESSAGES.items()}


class UnsupportedVersion(MalformedMessage):
    """A request whose API, or version of it, is not in the table. `header`: its header, read as v1."""

    def __init__(self, header: RequestHeader) -> None:
        api = _name(header.api_key)
        super().__init__("unsupported", api=api, version=header.api_version, field="api_version", offset=2)
        self.header = header


def _name(api_key: int) -> str:
    return ApiKey(api_key).name if api_key in ApiKey.__members__.values() else f"api key {api_key}"


_decoders: dict[bytes, tuple[Decoder, Decoder]] = {}  # key: the first four bytes of a frame


def _request_decoders(start: bytes) -> tuple[Decoder, Decoder] | None:
    """The decoders of header and body for a request that begins with these four bytes."""
    api_key, version = int.from_bytes(start[:2], signed=True), int.from_bytes(start[2:], signed=True)
    if len(start) < 4 or version not in VERSIONS.get(api_key, ()):  # type: ignore[call-overload]
        return None
    request = MESSAGES[ApiKey(api_key)][0]
    header_version = request_header_version(definition(request).is_flexible(version))
    found = _decoders[start] = decoder(RequestHeader, header_version), decoder(request, version)
    return found


def decode_request_header(frame: bytes | memoryview) -> tuple[RequestHeader, int]:
    """The header of a request, and where its body begins.

    Of a request that is not in the table, the part is read that all header versions share.
    Raises MalformedMessage.
    """
    frame = bytes(frame)
    found = _decoders.get(frame[:4]) or _request_decoders(frame[:4])
    return (found[0] if found else decoder(RequestHeader, 1))(frame, 0)


def decode_request(frame: bytes | memoryview) -> tuple[RequestHeader, Any]:
    """Header and body of a request.

    Raises UnsupportedVersion for an API or version that is not in the table, and MalformedMessage for a
    header that cannot be read and for a body that does not fill its frame exactly.
    """
    frame = bytes(frame)
    found = _decoders.get(frame[:4]) or _request_decoders(frame[:4])
    if found is None:
        raise UnsupportedVersion(decoder(RequestHeader, 1)(frame, 0)[0])
    header, offset = found[0](frame, 0)
    request, end = found[1](frame, offset)
    if end != len(frame):
        raise overfull(type(request), header.api_version, frame, end)
    return header, request


def encode_response(api_key: int, api_version: int, correlation_id: int, response: Any) -> bytes:
    """A response with its header. Raises ValueError for a value that this version cannot carry."""
    encode, header_end = _response_encoder(api_key, api_version)
    return encode(response, correlation_id.to_bytes(4, signed=True) + header_end)


@cache
def _response_encoder(api_key: int, version: int) -> tuple[Encoder, bytes]:
    """The encoder of the body, and what the header has behind the correlation id."""
    response = MESSAGES[ApiKey(api_key)][1]
    has_tags = response_header_version(api_key, definition(response).is_flexible(version))
    return encoder(response, version), b"\0" * has_tags


def encode_request(header: RequestHeader, request: Any) -> bytes:
    """A request with its header, as a client sends it. Raises ValueError."""
    cls: Any = type(request)
    is_flexible = definition(cls).is_flexible(header.api_version)
    head = encoder(RequestHeader, request_header_version(is_flexible))(header)
    return encoder(cls, header.api_version)(request, head)


def decode_response(api_key: int, api_version: int, frame: bytes | memoryview) -> tuple[int, Any]:
    """Correlation id and body of a response, as a client reads it. Raises MalformedMessage."""
    frame = bytes(frame)
    response = MESSAGES[ApiKey(api_key)][1]
    header_version = response_header_version(api_key, definition(response).is_flexible(api_version))
    header, offset = decoder(ResponseHeader, header_version)(frame, 0)
    body, end = decoder(response, api_version)(frame, offset)
    if end != len(frame):
        raise overfull(response, api_version, frame, end)
    return header.correlation_id, body
