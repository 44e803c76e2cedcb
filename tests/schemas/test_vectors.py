"""Frames recorded between real clients and Apache Kafka 4.2.0 are decoded, and encoded again.

`vectors` has them in hex, with the meaning of each byte.
"""

import re
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.header import RequestHeader
from schemas.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from schemas.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from schemas.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from schemas.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from schemas.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from schemas.registry import decode_request, decode_response, encode_request, encode_response

VECTORS = Path(__file__).parent / "vectors"

GOLDEN = UUID("5081a2dd-0d1e-4809-867f-9043505429c0")
MEMBER_ID = "console-consumer-c420dfe3-f2eb-4167-8444-6fec981fbdd9"
OLD_MEMBER_ID = "app-8c7564b2-27ff-4261-8f28-5aa92552b9c5"
GOLDEN_SUBSCRIPTION_V0 = bytes.fromhex("0000 00000001 0006676f6c64656e 00000000")
GOLDEN_SUBSCRIPTION_V3 = bytes.fromhex("0003 00000001 0006676f6c64656e ffffffff 00000000 ffffffff ffff")
STICKY_SUBSCRIPTION_V3 = bytes.fromhex(
    "0003 00000001 0006676f6c64656e 00000004 ffffffff 00000000 ffffffff ffff"
)
GOLDEN_ASSIGNMENT = bytes.fromhex("0003 00000001 0006676f6c64656e 00000002 00000000 00000001 ffffffff")
HELLO = bytes.fromhex(  # a record batch; its leader epoch comes after these 12 bytes
    "02c93cbbf0000000000000000001a1fd13545a000001a1fd13545a00000000000003e8"
    "0000000000000000000116000000010a68656c6c6f00"
)
BROKER = MetadataResponseBroker(node_id=1, host="127.0.0.1", port=19620)
NOTHING_COMMITTED: dict[str, Any] = {"committed_offset": -1, "committed_leader_epoch": -1, "metadata": ""}
ALONE: dict[str, Any] = {"leader_id": 1, "replica_nodes": (1,), "isr_nodes": (1,)}


def header(
    key: ApiKey, version: int, correlation_id: int, client_id: str = "console-consumer"
) -> RequestHeader:
    return RequestHeader(api_key=key, api_version=version, correlation_id=correlation_id, client_id=client_id)


REQUESTS = {
    "api_versions_request_v4": (
        header(ApiKey.API_VERSIONS, 4, 1, "kafka-python-producer-3"),
        ApiVersionsRequest(client_software_name="kafka-python", client_software_version="3.0.12"),
    ),
    "fetch_request_v18": (
        header(ApiKey.FETCH, 18, 11),
        FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=50 << 20,
            session_id=0,
            session_epoch=0,
            topics=(
                FetchTopic(
                    topic_id=GOLDEN,
                    partitions=tuple(
                        FetchPartition(partition=index, current_leader_epoch=0, partition_max_bytes=1 << 20)
                        for index in range(2)
                    ),
                ),
            ),
        ),
    ),
    "join_group_request_v2": (
        header(ApiKey.JOIN_GROUP, 2, 2, "app"),
        JoinGroupRequest(
            group_id="g-(0, 11)",
            session_timeout_ms=30000,
            rebalance_timeout_ms=300000,
            protocol_type="consumer",
            protocols=(
                JoinGroupRequestProtocol(name="range", metadata=GOLDEN_SUBSCRIPTION_V0),
                JoinGroupRequestProtocol(name="roundrobin", metadata=GOLDEN_SUBSCRIPTION_V0),
            ),
        ),
    ),
    "join_group_request_v9": (
        header(ApiKey.JOIN_GROUP, 9, 6),
        JoinGroupRequest(
            group_id="golden-group",
            session_timeout_ms=45000,
            rebalance_timeout_ms=300000,
            member_id=MEMBER_ID,
            protocol_type="consumer",
            protocols=(
                JoinGroupRequestProtocol(name="range", metadata=GOLDEN_SUBSCRIPTION_V3),
                JoinGroupRequestProtocol(name="cooperative-sticky", metadata=STICKY_SUBSCRIPTION_V3),
            ),
            reason=f"need to re-join with the given member-id: {MEMBER_ID}",
        ),
    ),
    "leave_group_request_v5": (
        header(ApiKey.LEAVE_GROUP, 5, 25),
        LeaveGroupRequest(
            group_id="golden-group",
            members=(MemberIdentity(member_id=MEMBER_ID, reason="the consumer is being closed"),),
        ),
    ),
    "offset_commit_request_v3": (
        header(ApiKey.OFFSET_COMMIT, 3, 5, "app"),
        OffsetCommitRequest(
            group_id="g-(0, 11)",
            generation_id_or_member_epoch=1,
            member_id=OLD_MEMBER_ID,
            topics=(
                OffsetCommitRequestTopic(
                    name="golden",
                    partitions=(
                        OffsetCommitRequestPartition(partition_index=1, committed_offset=0),
                        OffsetCommitRequestPartition(partition_index=0, committed_offset=2),
                    ),
                ),
            ),
        ),
    ),
    "offset_commit_request_v9": (
        header(ApiKey.OFFSET_COMMIT, 9, 23),
        OffsetCommitRequest(
            group_id="golden-group",
            generation_id_or_member_epoch=1,
            member_id=MEMBER_ID,
            topics=(
                OffsetCommitRequestTopic(
                    name="golden",
                    partitions=(
                        OffsetCommitRequestPartition(partition_index=1, committed_offset=0),
                        OffsetCommitRequestPartition(
                            partition_index=0, committed_offset=1, committed_leader_epoch=0
                        ),
                    ),
                ),
            ),
        ),
    ),
    "produce_request_v13": (
        header(ApiKey.PRODUCE, 13, 6, "console-producer"),
        ProduceRequest(
            acks=-1,
            timeout_ms=1500,
            topic_data=(
                TopicProduceData(
                    topic_id=GOLDEN,
                    partition_data=(
                        PartitionProduceData(
                            index=0,
                            records=bytes.fromhex("0000000000000000 0000003d ffffffff") + HELLO,
                        ),
                    ),
                ),
            ),
        ),
    ),
    "sync_group_request_v5": (
        header(ApiKey.SYNC_GROUP, 5, 7),
        SyncGroupRequest(
            group_id="golden-group",
            generation_id=1,
            member_id=MEMBER_ID,
            protocol_type="consumer",
            protocol_name="range",
            assignments=(SyncGroupRequestAssignment(member_id=MEMBER_ID, assignment=GOLDEN_ASSIGNMENT),),
        ),
    ),
}

RESPONSES = {
    "api_versions_response_v0_unsupported": (
        7,
        ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=(ApiVersion(api_key=18, min_version=0, max_version=5),),
        ),
    ),
    "fetch_response_v18": (
        11,
        FetchResponse(
            session_id=78988067,
            responses=(
                FetchableTopicResponse(
                    topic_id=GOLDEN,
                    partitions=(
                        PartitionData(
                            partition_index=0,
                            high_watermark=1,
                            last_stable_offset=1,
                            log_start_offset=0,
                            aborted_transactions=None,
                            records=bytes.fromhex("0000000000000000 0000003d 00000000") + HELLO,
                        ),
                        PartitionData(
                            partition_index=1,
                            high_watermark=0,
                            last_stable_offset=0,
                            log_start_offset=0,
                            aborted_transactions=None,
                            records=b"",
                        ),
                    ),
                ),
            ),
        ),
    ),
    "find_coordinator_response_v6": (
        0,
        FindCoordinatorResponse(
            coordinators=(Coordinator(key="golden-group", node_id=1, host="127.0.0.1", port=19620),)
        ),
    ),
    "join_group_response_v2": (
        2,
        JoinGroupResponse(
            generation_id=1,
            protocol_name="range",
            leader=OLD_MEMBER_ID,
            member_id=OLD_MEMBER_ID,
            members=(JoinGroupResponseMember(member_id=OLD_MEMBER_ID, metadata=GOLDEN_SUBSCRIPTION_V0),),
        ),
    ),
    "join_group_response_v9": (
        6,
        JoinGroupResponse(
            generation_id=1,
            protocol_type="consumer",
            protocol_name="range",
            leader=MEMBER_ID,
            member_id=MEMBER_ID,
            members=(JoinGroupResponseMember(member_id=MEMBER_ID, metadata=GOLDEN_SUBSCRIPTION_V3),),
        ),
    ),
    "join_group_response_v9_member_id_required": (
        5,
        JoinGroupResponse(
            error_code=ErrorCode.MEMBER_ID_REQUIRED,
            generation_id=-1,
            protocol_type=None,
            protocol_name=None,
            member_id=MEMBER_ID,
        ),
    ),
    "metadata_response_v4": (
        2,
        MetadataResponse(
            brokers=(BROKER,),
            cluster_id="4rIGNJzVRKaYRMYOz-3S_w",
            controller_id=1,
            topics=(
                MetadataResponseTopic(
                    name="golden",
                    partitions=(
                        MetadataResponsePartition(partition_index=1, **ALONE),
                        MetadataResponsePartition(partition_index=0, **ALONE),
                    ),
                ),
            ),
        ),
    ),
    "metadata_response_v13": (
        2,
        MetadataResponse(
            brokers=(BROKER,),
            cluster_id="4rIGNJzVRKaYRMYOz-3S_w",
            controller_id=1,
            topics=(
                MetadataResponseTopic(
                    name="__consumer_offsets",
                    topic_id=UUID("d8dd10b1-6941-4412-84e0-ca38995cd640"),
                    is_internal=True,
                    partitions=(MetadataResponsePartition(partition_index=0, leader_epoch=2, **ALONE),),
                ),
            ),
        ),
    ),
    "offset_fetch_response_v9": (
        8,
        OffsetFetchResponse(
            groups=(
                OffsetFetchResponseGroup(
                    group_id="golden-group",
                    topics=(
                        OffsetFetchResponseTopics(
                            name="golden",
                            partitions=(
                                OffsetFetchResponsePartitions(partition_index=1, **NOTHING_COMMITTED),
                                OffsetFetchResponsePartitions(partition_index=0, **NOTHING_COMMITTED),
                            ),
                        ),
                    ),
                ),
            )
        ),
    ),
}


def frame(name: str) -> bytes:
    """The bytes of a vector; # begins a comment."""
    text = (VECTORS / f"{name}.txt").read_text(encoding="utf-8")
    return bytes.fromhex(re.sub("#.*", "", text))


def key_and_version(name: str) -> tuple[ApiKey, int]:
    """The API key and version, which a response does not contain."""
    found = re.match(r"(\w+)_response_v(\d+)", name)
    assert found
    return ApiKey[found[1].upper()], int(found[2])


def test_every_vector_has_its_test() -> None:
    assert {path.stem for path in VECTORS.iterdir()} == {*REQUESTS, *RESPONSES}


@pytest.mark.parametrize("name", REQUESTS)
def test_request(name: str) -> None:
    assert decode_request(frame(name)) == REQUESTS[name]
    assert encode_request(*REQUESTS[name]) == frame(name)


@pytest.mark.parametrize("name", RESPONSES)
def test_response(name: str) -> None:
    key, version = key_and_version(name)
    correlation_id, response = RESPONSES[name]
    assert decode_response(key, version, frame(name)) == (correlation_id, response)
    assert encode_response(key, version, correlation_id, response) == frame(name)
