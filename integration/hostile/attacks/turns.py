"""Requests about many things.

The server answers them in slices, so that other clients get turns in between.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

from integration.hostile.attack import MB, Attack, Bounds, Volley
from integration.hostile.requests import TIMEOUT_MS, TOPIC, answers, create_topic, new_topic, producer_id
from kshim.cluster.acl import AclOperation, AclResource, PatternType, Permission
from kshim.testing.wire import Wire, framed
from schemas.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from schemas.messages.create_acls import AclCreation, CreateAclsRequest
from schemas.messages.create_topics import CreateTopicsRequest
from schemas.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from schemas.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from schemas.messages.delete_topics import DeleteTopicsRequest
from schemas.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from schemas.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from schemas.messages.end_txn import EndTxnRequest
from schemas.messages.incremental_alter_configs import AlterConfigsResource, IncrementalAlterConfigsRequest
from schemas.messages.leave_group import LeaveGroupRequest, MemberIdentity
from schemas.messages.list_transactions import ListTransactionsRequest
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

TOPICS, PARTITIONS = 5, 9_000
"""Together 45,000 partitions. One request may create 10,000."""
NAMES = 98_000
DENIED_NAMES = 90_000
GROUPS = 70_000
PREFIX_LENGTHS = 240
LONGEST_NAME = 249
CREATED_ACLS = 9_000
FILTERS = 12_000
TOPIC_RESOURCE = 2
MOST_STRING_BYTES = 32_767
ADMINISTRATOR, NOBODY = "User:ANONYMOUS", "User:nobody"
WITH_ACLS = (
    "--set",
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "--set",
    "allow.everyone.if.no.acl.found=true",
)


# ---- many partitions


def _create_partitions(wire: Wire) -> list[str]:
    names = [f"{TOPIC}-{number}" for number in range(TOPICS)]
    for name in names:
        create_topic(wire, name, PARTITIONS)
    return names


def _end_txn(wire: Wire) -> Sequence[Volley]:
    names = _create_partitions(wire)
    number, epoch = producer_id(wire, "wide")

    def add(topics: Iterable[AddPartitionsToTxnTopic]) -> bytes:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="wide",
            v3_and_below_producer_id=number,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=tuple(topics),
        )
        return framed(3, request)

    indexes = tuple(range(PARTITIONS))
    everything = add(AddPartitionsToTxnTopic(name=name, partitions=indexes) for name in names)
    one_by_one = [add([AddPartitionsToTxnTopic(name=names[0], partitions=(index,))]) for index in range(50)]
    nearly_all = add(AddPartitionsToTxnTopic(name=name, partitions=indexes[50:]) for name in names)
    end = framed(
        3, EndTxnRequest(transactional_id="wide", producer_id=number, producer_epoch=epoch, committed=True)
    )
    return [
        Volley(label="AddPartitionsToTxn, all but 50 of each", frames=[nearly_all]),
        Volley(label="AddPartitionsToTxn, 50 of one partition", frames=one_by_one),
        Volley(label="AddPartitionsToTxn, all", frames=[everything]),
        Volley(label="EndTxn", frames=[end], hold_s=5),
    ]


def _delete_records(wire: Wire) -> Sequence[Volley]:
    names = _create_partitions(wire)
    partitions = tuple(
        DeleteRecordsPartition(partition_index=index, offset=-1) for index in range(PARTITIONS)
    )
    request = DeleteRecordsRequest(
        topics=tuple(DeleteRecordsTopic(name=name, partitions=partitions) for name in names),
        timeout_ms=TIMEOUT_MS,
    )
    return [Volley(label="DeleteRecords", frames=[framed(2, request)], hold_s=2)]


# ---- many names


def _many_names(wire: Wire) -> Sequence[Volley]:
    create_topic(wire)
    number, epoch = producer_id(wire, "names")
    names = [f"{TOPIC}-{number}" for number in range(NAMES)]
    identities = tuple(MemberIdentity(member_id=name) for name in names)
    add = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="names",
        v3_and_below_producer_id=number,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=tuple(
            AddPartitionsToTxnTopic(name=name, partitions=(0,)) for name in names[: NAMES // 2]
        ),
    )
    altered = tuple(AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name) for name in names)
    described = tuple(
        DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name) for name in names
    )
    topics = tuple(TopicRequest(name=name) for name in names)
    requests: dict[str, tuple[int, Any]] = {
        "AddPartitionsToTxn": (3, add),
        "IncrementalAlterConfigs": (1, IncrementalAlterConfigsRequest(resources=altered)),
        "DescribeConfigs": (4, DescribeConfigsRequest(resources=described)),
        "DescribeTopicPartitions": (0, DescribeTopicPartitionsRequest(topics=topics)),
        "LeaveGroup": (5, LeaveGroupRequest(group_id="no-group", members=identities)),
    }
    return [
        Volley(label=label, frames=[framed(version, request)] * 2)
        for label, (version, request) in requests.items()
    ]


# ---- many groups


def _delete_topics(wire: Wire) -> Sequence[Volley]:
    create_topic(wire)
    create_topic(wire, "gone")
    create_topic(wire, "gone-with-offsets")

    def commit(group_id: str, topic: str) -> bytes:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        topics = (OffsetCommitRequestTopic(name=topic, partitions=(partition,)),)
        return framed(2, OffsetCommitRequest(group_id=group_id, topics=topics))

    answers(wire, [commit(f"group-{number}", TOPIC) for number in range(GROUPS)], in_flight=500)
    answers(wire, [commit(f"group-{number}", "gone-with-offsets") for number in range(GROUPS)], in_flight=500)
    return [
        Volley(
            label=f"DeleteTopics {name}",
            frames=[framed(3, DeleteTopicsRequest(topic_names=(name,), timeout_ms=TIMEOUT_MS))],
            hold_s=2,
        )
        for name in ("gone", "gone-with-offsets")
    ]


# ---- ACLs


def _acl(
    principal: str, resource: AclResource, name: str, pattern: PatternType, operation: AclOperation
) -> AclCreation:
    return AclCreation(
        resource_type=resource,
        resource_name=name,
        resource_pattern_type=pattern,
        principal=principal,
        host="*",
        operation=operation,
        permission_type=Permission.ALLOW,
    )


def _create_acls(wire: Wire, acls: Iterable[AclCreation]) -> None:
    cluster = [
        _acl(ADMINISTRATOR, AclResource.CLUSTER, "kafka-cluster", PatternType.LITERAL, operation)
        for operation in (AclOperation.ALTER, AclOperation.DESCRIBE)
    ]
    response = wire.ask(3, CreateAclsRequest(creations=(*acls, *cluster)))
    assert not any(result.error_code for result in response.results), response.results[0]


def _denied_names(wire: Wire) -> Sequence[Volley]:
    _create_acls(wire, [_acl(NOBODY, AclResource.TOPIC, "denied", PatternType.PREFIXED, AclOperation.ALL)])
    names = [f"denied-{number}" for number in range(DENIED_NAMES)]
    created = CreateTopicsRequest(topics=tuple(map(new_topic, names)), timeout_ms=TIMEOUT_MS)
    described = DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name) for name in names
        )
    )
    return [
        Volley(label="CreateTopics", frames=[framed(4, created)] * 2),
        Volley(label="DescribeConfigs", frames=[framed(4, described)] * 2),
        Volley(label="Metadata", frames=[_metadata(names)] * 2),
    ]


def _metadata(names: Iterable[str]) -> bytes:
    topics = tuple(MetadataRequestTopic(name=name) for name in names)
    return framed(9, MetadataRequest(topics=topics, allow_auto_topic_creation=False))


def _acl_prefixes(wire: Wire) -> Sequence[Volley]:
    """Create ACLs with prefixes of many lengths: each name is compared with a prefix of each length."""
    _create_acls(
        wire,
        (
            _acl(NOBODY, AclResource.TOPIC, "x" * length, PatternType.PREFIXED, AclOperation.ALL)
            for length in range(1, PREFIX_LENGTHS + 1)
        ),
    )
    names = [f"{number:05}".rjust(LONGEST_NAME, "x") for number in range(3_000)]
    strangers = [f"{number:05}".rjust(LONGEST_NAME, "y") for number in range(30_000)]
    return [
        Volley(
            label=label,
            frames=[_metadata(some)],
        )
        for label, some in (("names with all prefixes", names), ("names without", strangers))
    ]


def _acl_filters(wire: Wire) -> Sequence[Volley]:
    def acls(kind: str) -> list[AclCreation]:
        return [
            _acl(NOBODY, AclResource.TOPIC, f"{kind}-{number}", PatternType.LITERAL, AclOperation.READ)
            for number in range(CREATED_ACLS)
        ]

    _create_acls(wire, acls("stored"))
    nothing = DeleteAclsFilter(
        resource_type_filter=AclResource.TOPIC,
        resource_name_filter="no such name",
        pattern_type_filter=PatternType.LITERAL,
        principal_filter=None,
        host_filter=None,
        operation=AclOperation.ANY,
        permission_type=Permission.ANY,
    )
    everything = DeleteAclsFilter(
        resource_type_filter=AclResource.TOPIC,
        resource_name_filter=None,
        pattern_type_filter=PatternType.ANY,
        principal_filter=None,
        host_filter=None,
        operation=AclOperation.READ,
        permission_type=Permission.ANY,
    )
    requests = {
        "CreateAcls": (3, CreateAclsRequest(creations=tuple(acls("more")))),
        "DeleteAcls, nothing": (3, DeleteAclsRequest(filters=(nothing,) * FILTERS)),
        "DeleteAcls, everything": (3, DeleteAclsRequest(filters=(everything,) * 20)),
    }
    return [
        Volley(label=label, frames=[framed(version, request)])
        for label, (version, request) in requests.items()
    ]


# ---- aside


def _patterns(wire: Wire) -> Sequence[Volley]:
    """Send patterns that take long to match, aside.

    The victim also sends requests that are answered aside.
    """
    chance = random.Random(1)
    producer_id(wire, "".join(chance.choices("ab", k=MOST_STRING_BYTES)))
    frame = framed(2, ListTransactionsRequest(transactional_id_pattern="[ab]*a[ab]{999}" * 3))
    return [Volley(label="ListTransactions", frames=[frame] * 2, connections=20)]


ATTACKS = (
    Attack(
        name="end-wide-transaction",
        what=f"a transaction of {TOPICS * PARTITIONS:,} partitions",
        arm=_end_txn,
        bounds=Bounds(kept_bytes=100 * MB),  # the end of each partition remains, and its producer
    ),
    Attack(
        name="delete-wide-records",
        what=f"DeleteRecords of {TOPICS * PARTITIONS:,} partitions",
        arm=_delete_records,
    ),
    Attack(name="many-names", what=f"requests with {NAMES:,} names", arm=_many_names),
    Attack(
        name="delete-topics-of-groups",
        what=f"DeleteTopics beside {GROUPS:,} groups with offsets",
        arm=_delete_topics,
    ),
    Attack(
        name="denied-names",
        what=f"requests with {DENIED_NAMES:,} names that ACLs deny",
        arm=_denied_names,
        options=WITH_ACLS,
    ),
    Attack(
        name="acl-prefixes",
        what=f"topics are asked for where ACLs have prefixes of {PREFIX_LENGTHS} lengths",
        arm=_acl_prefixes,
        options=WITH_ACLS,
    ),
    Attack(
        name="acl-filters",
        what=f"ACLs are made and deleted, with {FILTERS:,} filters, beside {CREATED_ACLS:,} ACLs",
        arm=_acl_filters,
        options=WITH_ACLS,
    ),
    Attack(
        name="slow-patterns",
        what="20 clients have patterns matched while another one's answers are made aside",
        arm=_patterns,
        asks_wide=True,
    ),
)
