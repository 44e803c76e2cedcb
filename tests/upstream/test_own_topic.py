"""kshim's own topic: whatever would change it is refused, the rest of such a request goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from kshim.callers import Refused
from kshim.turns import Turn
from kshim.upstream.own_topic import GUARDED, WHY, OwnTopic, split
from kshim.upstream.table import PASSED, TABLE, Way
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.header import RequestHeader
from schemas.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from schemas.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource
from schemas.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from schemas.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from schemas.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from schemas.messages.create_topics import CreatableTopic, CreateTopicsRequest
from schemas.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from schemas.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from schemas.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
)
from schemas.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from schemas.messages.incremental_alter_configs import AlterConfigsResource as IncrementalResource
from schemas.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from schemas.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from schemas.registry import (
    MESSAGES,
    VERSIONS,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from tests.api.harness import later, result
from tests.upstream.front_world import World

OWN_ID = UUID(int=5 << 64 | 3)
OTHER_ID = UUID(int=6 << 64 | 4)
OWN, OTHER = ("groups", OWN_ID), ("orders", OTHER_ID)

Name = tuple[str, UUID]
EVERY_TOPIC: dict[ApiKey, Callable[[list[Name], int], Any]] = {
    ApiKey.PRODUCE: lambda names, version: ProduceRequest(
        acks=-1,
        topic_data=tuple(
            TopicProduceData(
                **({"topic_id": topic_id} if version >= 13 else {"name": name}),
                partition_data=(PartitionProduceData(index=1, records=b"r" * 100),),
            )
            for name, topic_id in names
        ),
    ),
    ApiKey.CREATE_TOPICS: lambda names, _: CreateTopicsRequest(
        topics=tuple(CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name, _ in names)
    ),
    ApiKey.DELETE_TOPICS: lambda names, version: (
        DeleteTopicsRequest(topics=tuple(DeleteTopicState(name=name) for name, _ in names))
        if version >= 6
        else DeleteTopicsRequest(topic_names=tuple(name for name, _ in names))
    ),
    ApiKey.DELETE_RECORDS: lambda names, _: DeleteRecordsRequest(
        topics=tuple(
            DeleteRecordsTopic(name=name, partitions=(DeleteRecordsPartition(partition_index=1, offset=-1),))
            for name, _ in names
        )
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: lambda names, version: (
        AddPartitionsToTxnRequest(
            transactions=tuple(
                AddPartitionsToTxnTransaction(
                    transactional_id=name, topics=(AddPartitionsToTxnTopic(name=name, partitions=(1,)),)
                )
                for name, _ in names
            )
        )
        if version >= 4
        else AddPartitionsToTxnRequest(
            v3_and_below_topics=tuple(
                AddPartitionsToTxnTopic(name=name, partitions=(1,)) for name, _ in names
            )
        )
    ),
    ApiKey.WRITE_TXN_MARKERS: lambda names, _: WriteTxnMarkersRequest(
        markers=tuple(
            WritableTxnMarker(
                producer_id=number, topics=(WritableTxnMarkerTopic(name=name, partition_indexes=(1,)),)
            )
            for number, (name, _) in enumerate(names)
        )
    ),
    ApiKey.ALTER_CONFIGS: lambda names, _: AlterConfigsRequest(
        resources=tuple(AlterConfigsResource(resource_type=2, resource_name=name) for name, _ in names)
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: lambda names, _: AlterReplicaLogDirsRequest(
        dirs=tuple(
            AlterReplicaLogDir(path="/d", topics=(AlterReplicaLogDirTopic(name=name, partitions=(1,)),))
            for name, _ in names
        )
    ),
    ApiKey.CREATE_PARTITIONS: lambda names, _: CreatePartitionsRequest(
        topics=tuple(CreatePartitionsTopic(name=name, count=9) for name, _ in names)
    ),
    ApiKey.ELECT_LEADERS: lambda names, _: ElectLeadersRequest(
        topic_partitions=tuple(TopicPartitions(topic=name, partitions=(1,)) for name, _ in names)
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: lambda names, _: IncrementalAlterConfigsRequest(
        resources=tuple(IncrementalResource(resource_type=2, resource_name=name) for name, _ in names)
    ),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: lambda names, _: AlterPartitionReassignmentsRequest(
        topics=tuple(
            ReassignableTopic(name=name, partitions=(ReassignablePartition(partition_index=1),))
            for name, _ in names
        )
    ),
}
"""By API: a request that names topics, of one partition each."""

LEAVES_TOPICS_ALONE = {
    *(ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA, ApiKey.OFFSET_FOR_LEADER_EPOCH),
    *(ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE),
    *(ApiKey.DESCRIBE_CONFIGS, ApiKey.DESCRIBE_LOG_DIRS, ApiKey.DESCRIBE_TOPIC_PARTITIONS),
    *(ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.DESCRIBE_PRODUCERS, ApiKey.LIST_CONFIG_RESOURCES),
    *(ApiKey.FIND_COORDINATOR, ApiKey.API_VERSIONS, ApiKey.DESCRIBE_CLUSTER, ApiKey.DESCRIBE_QUORUM),
    *(ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.LIST_TRANSACTIONS, ApiKey.INIT_PRODUCER_ID, ApiKey.END_TXN),
    *(ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS, ApiKey.UNREGISTER_BROKER),
    *(ApiKey.DESCRIBE_CLIENT_QUOTAS, ApiKey.ALTER_CLIENT_QUOTAS, ApiKey.UPDATE_FEATURES),
    *(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS),
    *(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY),
    *(ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER, ApiKey.UNREGISTER_CONTROLLER),
    ApiKey.ADD_OFFSETS_TO_TXN,  # names a group; kshim names the topic
}
"""What else passes: it reads, or has nothing to do with a topic's records or settings."""

CASES = [
    (api_key, version)
    for api_key in EVERY_TOPIC
    for version in VERSIONS[api_key]
    if version in PASSED[api_key]
]


@pytest.fixture
def world() -> World:
    world = World()
    topic = MetadataResponseTopic(name=OWN[0], topic_id=OWN_ID)
    world.own.learn(MetadataResponse(topics=(topic,)))
    return world


def test_each_api_that_passes_is_known_to_change_topics_or_not_to() -> None:
    passing = {key for key, entry in TABLE.items() if entry.way in (Way.FORWARDED, Way.REWRITTEN)}
    assert passing == GUARDED.keys() | LEAVES_TOPICS_ALONE
    assert not GUARDED.keys() & LEAVES_TOPICS_ALONE
    assert GUARDED.keys() == EVERY_TOPIC.keys()


def refused_in(key: ApiKey, version: int, response: Any) -> dict[str | UUID, ErrorCode]:
    """The error of each topic's, transaction's or producer's result."""
    found: dict[str | UUID, ErrorCode] = {}

    def errors(entry: Any, name: Any) -> None:
        for field in ("error_code", "partition_error_code"):
            if hasattr(entry, field):
                found[name] = ErrorCode(getattr(entry, field))
        for field in ("partition_responses", "partitions", "partition_result", "results_by_partition"):
            for each in getattr(entry, field, ()):
                errors(each, name)
        for each in (*getattr(entry, "topics", ()), *getattr(entry, "topic_results", ())):
            errors(each, name_of(each))

    def name_of(entry: Any) -> Any:
        names = (getattr(entry, each, "") for each in ("name", "topic", "topic_name", "resource_name"))
        return next(filter(None, names), getattr(entry, "topic_id", ""))

    answered = GUARDED[key].answered
    if key is ApiKey.ADD_PARTITIONS_TO_TXN and version >= 4:
        answered = "results_by_transaction"
    for entry in getattr(response, answered):
        errors(entry, name_of(entry))
    return found


ERRORS = {
    ApiKey.CREATE_TOPICS: ErrorCode.TOPIC_ALREADY_EXISTS,
    ApiKey.ADD_PARTITIONS_TO_TXN: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
}


@pytest.mark.parametrize(("key", "version"), CASES)
def test_what_would_change_it_is_refused(world: World, key: ApiKey, version: int) -> None:
    response = world.ask(key, version, EVERY_TOPIC[key]([OWN], version))
    by_id = key is ApiKey.PRODUCE and version >= 13
    error = ERRORS.get(key, ErrorCode.INVALID_TOPIC_EXCEPTION)
    assert refused_in(key, version, response) == {OWN[by_id]: error}
    assert not world.passage.sent


@pytest.mark.parametrize(("key", "version"), CASES)
def test_other_topics_pass_as_they_are(world: World, key: ApiKey, version: int) -> None:
    world.send(key, version, EVERY_TOPIC[key]([OTHER, ("groups-2", OTHER_ID)], version))
    (sent,) = world.passage.sent
    assert decode_request(sent)[1] == decoded(key, version, [OTHER, ("groups-2", OTHER_ID)])


def decoded(key: ApiKey, version: int, names: list[Name]) -> Any:
    header = RequestHeader(api_key=key, api_version=version, correlation_id=7, client_id="c")
    return decode_request(encode_request(header, EVERY_TOPIC[key](names, version)))[1]


@pytest.mark.parametrize(("key", "version"), CASES)
def test_the_rest_of_a_request_goes_on(world: World, key: ApiKey, version: int) -> None:
    answer = later(world.send(key, version, EVERY_TOPIC[key]([OTHER, OWN], version)))
    if key is ApiKey.ADD_PARTITIONS_TO_TXN and version < 4:
        response = decode_response(key, version, bytes(result(answer)))[1]
        assert not world.passage.sent
        assert refused_in(key, version, response) == {
            OTHER[0]: ErrorCode.OPERATION_NOT_ATTEMPTED,
            OWN[0]: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        }
        return
    (sent,) = world.passage.sent
    assert decode_request(sent)[1] == decoded(key, version, [OTHER])
    assert world.passage.is_read == [True]
    assert not answer.called
    world.passage.promise.answer_alone(encode_response(key, version, 7, MESSAGES[key][1]()))
    response = decode_response(key, version, bytes(result(answer)))[1]
    by_id = key is ApiKey.PRODUCE and version >= 13
    error = ERRORS.get(key, ErrorCode.INVALID_TOPIC_EXCEPTION)
    assert refused_in(key, version, response) == {OWN[by_id]: error}


def test_it_is_not_deleted_by_its_id_either(world: World) -> None:
    request = DeleteTopicsRequest(topics=(DeleteTopicState(topic_id=OWN_ID),))
    (found,) = world.ask(ApiKey.DELETE_TOPICS, 6, request).responses
    assert (found.name, found.topic_id, found.error_message) == (*OWN, WHY)


@pytest.mark.parametrize("version", [9, 13])
@pytest.mark.parametrize("names", [[OWN], [OTHER, OWN]])
def test_a_write_that_wants_no_answer_closes_the_connection(
    world: World, version: int, names: list[Name]
) -> None:
    """Kafka closes it where such a write fails, too."""
    request = replace(EVERY_TOPIC[ApiKey.PRODUCE](names, version), acks=0)
    with pytest.raises(Refused, match="writes to groups, which only kshim does"):
        world.send(ApiKey.PRODUCE, version, request)
    assert not world.passage.sent


def test_a_record_that_only_contains_the_name_passes(world: World) -> None:
    data = tuple(
        TopicProduceData(name=name, partition_data=(PartitionProduceData(index=0, records=b"groups"),))
        for name in ("orders", "bills")
    )
    world.send(ApiKey.PRODUCE, 9, ProduceRequest(acks=1, topic_data=data))
    assert len(world.passage.sent) == 1


def test_what_cannot_be_read_and_may_name_it_is_refused(world: World) -> None:
    header = b"\0\x14\0\1\0\0\0\7\xff\xff"
    with pytest.raises(Refused, match="cannot be read"):
        world.front.answer(world.here, header + b"\0\0\0\x02\0\6groups", world.client, Turn())
    assert not world.passage.sent


def test_configs_of_a_broker_of_that_name_are_not_its(world: World) -> None:
    own = OwnTopic("1")
    request = AlterConfigsRequest(resources=(AlterConfigsResource(resource_type=4, resource_name="1"),))
    assert split(ApiKey.ALTER_CONFIGS, 2, request, own) is None


def test_leaders_of_all_partitions_are_elected(world: World) -> None:
    assert split(ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest(topic_partitions=None), world.own) is None


def test_one_that_the_upstream_does_not_have_is_known_by_its_name_alone() -> None:
    own = OwnTopic("groups")
    unknown = MetadataResponseTopic(name="groups", error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    own.learn(MetadataResponse(topics=(unknown,)))
    assert own.is_named("groups")
    assert not own.is_named("", UUID(int=0))
    assert not own.is_first(b"")
    assert not own.may_be_in(bytes(20))


def test_it_is_internal(world: World) -> None:
    """Clients that subscribe to patterns leave internal topics out."""
    topics = tuple(MetadataResponseTopic(name=name) for name in ("a", OWN[0], "b"))
    told = world.forwarded(ApiKey.METADATA, 12, MetadataRequest(), MetadataResponse(topics=topics))
    assert [topic.is_internal for topic in told.topics] == [False, True, False]
    described = tuple(DescribeTopicPartitionsResponseTopic(name=name) for name in ("a", OWN[0]))
    answer = DescribeTopicPartitionsResponse(topics=described)
    told = world.forwarded(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, DescribeTopicPartitionsRequest(topics=()), answer
    )
    assert [topic.is_internal for topic in told.topics] == [False, True]
