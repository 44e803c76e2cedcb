"""Stories of administrators about topics, leaders and ACLs; each runs at every version of its API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from integration.differential.stories.admin import ELR, TEXT, create, made, new, partitions
from integration.differential.stories.admin_talk import NO_ID, Admin, story
from schemas.api_key import ApiKey
from schemas.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from schemas.messages.create_acls import AclCreation, CreateAclsRequest
from schemas.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from schemas.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from schemas.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from schemas.messages.describe_acls import DescribeAclsRequest
from schemas.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from schemas.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from schemas.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from schemas.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic

NEVER_AN_ID = UUID(int=4711)


# ---- topics


@story(ApiKey.CREATE_TOPICS)
def topics_created(admin: Admin) -> None:
    name = admin.topic
    good = [
        new(name("plain"), 3),
        new(name("default"), -1, -1),
        new(name("assigned"), -1, -1, [(1, [1]), (0, [1])]),
        new(
            name("configured"), 1, 1, cleanup_policy="compact,delete", retention_ms=" 5 ", preallocate="TRUE"
        ),
    ]
    for topic in good:
        admin.change(create(topic, validate_only=True), meant=ELR if admin.version >= 5 else "")
    admin.change(create(*good), meant=ELR if admin.version >= 5 else "")
    admin.change(create(good[0], validate_only=True))
    admin.change(create(good[0], good[1]))
    bad = [
        new(""),
        new("."),
        new(".."),
        new("a b"),
        new("x" * 250),
        new("__cluster_metadata"),
        new(name("b"), 0),
        new(name("b"), -2),
        new(name("b"), 10_001),
        new(name("b"), 1, 0),
        new(name("b"), 1, -2),
        new(name("b"), 1, 2),
        new(name("b"), -1, 2),
        new(name("b"), 1, -1, [(0, [1])]),
        new(name("b"), -1, 1, [(0, [1])]),
        new(name("b"), -1, -1, [(0, [])]),
        new(name("b"), -1, -1, [(0, [2])]),
        new(name("b"), -1, -1, [(0, [1, 1])]),
        new(name("b"), -1, -1, [(0, [1]), (0, [1])]),
        new(name("b"), -1, -1, [(1, [1])]),
        new(name("b"), no_such="1"),
        new(name("b"), retention_ms="x"),
        new(name("b"), retention_ms=None),
        new(name("b"), cleanup_policy="x"),
    ]
    for topic in bad:
        admin.change(create(topic))
        admin.change(create(topic, validate_only=True))
    admin.change(create(new(name("d")), new(name("d"), 2), new("a b")))
    admin.change(create())
    made(admin, new(name("a.b")))
    admin.change(create(new(name("a_b"))))
    names = [topic.name for topic in good]
    admin.look(partitions(*names, name("b"), name("d"), name("a_b")), version=0)


@story(ApiKey.CREATE_TOPICS)
def partitions_of_one_request(admin: Admin) -> None:
    """They count together, and with them what else the controller would have to write."""
    name = admin.topic
    for topics in (
        [new(name("a"), 6000), new(name("b"), 6000)],
        [new("!bad", 5), new(name("a"), 6000), new(name("b"), 6000)],
        [new(name("a"), -5), new(name("b"), 10_001)],
        [new(name("a"), 10_000)],
        [new(name("a"), 9_999, retention_ms="5"), new(name("b"), 0)],
    ):
        admin.change(create(*topics, validate_only=True))
    twice = [new(name("a"), 6000), new(name("a"), 6000), new(name("c"))]
    admin.change(create(*twice, validate_only=True), meant=ELR if admin.version >= 5 else "")


@story(ApiKey.DELETE_TOPICS)
def topics_deleted(admin: Admin) -> None:
    a, b, nope = admin.topic("a"), admin.topic("b"), admin.topic("nope")
    made(admin, new(a), new(b))

    def delete(*names: str) -> DeleteTopicsRequest:
        states = tuple(DeleteTopicState(name=name) for name in names)
        return DeleteTopicsRequest(topics=states, topic_names=names, timeout_ms=10_000)

    admin.change(delete(nope))
    admin.change(delete(""))
    admin.change(delete("a b"))
    admin.change(delete(a, a, nope))
    admin.look(partitions(a, b), version=0)
    admin.change(delete(a, nope))
    admin.look(partitions(a, b), version=0)
    admin.change(delete(a))
    admin.change(delete())


@story(ApiKey.DELETE_TOPICS)
def topics_named_twice(admin: Admin) -> None:
    """From v6 on an entry has a name or an id, not both."""
    a, nope = admin.topic("a"), admin.topic("nope")
    made(admin, new(a))
    bad: Sequence[Sequence[tuple[str | None, UUID]]] = [
        [(None, NO_ID)],
        [(a, NEVER_AN_ID)],
        [(None, NEVER_AN_ID)],
        [(nope, NO_ID)],
        [(a, NO_ID)] * 2,
    ]
    for entries in bad if admin.version >= 6 else bad[-1:]:
        for times in (1, 2, 3) if len(entries) == 1 else (1,):
            states = tuple(DeleteTopicState(name=name, topic_id=id_) for name, id_ in entries) * times
            names = tuple(name for name, _ in entries if name is not None)
            admin.change(DeleteTopicsRequest(topics=states, topic_names=names, timeout_ms=10_000))
            admin.look(partitions(a), version=0)


@story(ApiKey.CREATE_PARTITIONS)
def partitions_created(admin: Admin) -> None:
    t, nope = admin.topic("t"), admin.topic("nope")
    made(admin, new(t, 2))

    def grow(
        name: str, count: int, assignments: Sequence[Sequence[int]] | None = None
    ) -> CreatePartitionsTopic:
        given = None
        if assignments is not None:
            given = tuple(CreatePartitionsAssignment(broker_ids=tuple(ids)) for ids in assignments)
        return CreatePartitionsTopic(name=name, count=count, assignments=given)

    def ask(*topics: CreatePartitionsTopic, validate_only: bool = False) -> None:
        admin.change(CreatePartitionsRequest(topics=topics, timeout_ms=10_000, validate_only=validate_only))
        admin.look(partitions(t), version=0)

    bad = [
        grow(nope, 3),
        grow("", 3),
        grow(t, 2),
        grow(t, 1),
        grow(t, 0),
        grow(t, -1),
        grow(t, 4, []),
        grow(t, 4, [[1]]),
        grow(t, 4, [[1], [1], [1]]),
        grow(t, 4, [[2], [1]]),
        grow(t, 4, [[1, 1], [1]]),
        grow(t, 4, [[], [1]]),
    ]
    for topic in bad:
        ask(topic, validate_only=True)
        ask(topic)
    ask(grow(t, 3), grow(t, 4))
    ask(grow(t, 4), validate_only=True)
    ask(grow(t, 4), grow(nope, 4))
    ask(grow(t, 6, [[1], [1]]))
    ask()


@story(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
def pages_of_partitions(admin: Admin) -> None:
    a, b, nope = admin.topic("a"), admin.topic("b"), admin.topic("nope")
    made(admin, new(a, 3), new(b, 2))
    for names in ([a], [a, nope, b], [a, a], ["a b"], [nope, "a b"]):
        admin.look(partitions(*names))
    for limit in (-1, 0, 1, 2, 3, 4, 5):
        admin.look(partitions(b, a, limit=limit))
    for cursor in ((a, 0), (a, 2), (a, 3), (a, 9), (b, 0), (b, 1), (a, -1), (nope, 0), ("", 0), ("zz", 0)):
        admin.look(partitions(b, a, limit=2, cursor=cursor))
        admin.look(partitions(limit=1, cursor=("zz", cursor[1])))


@story(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
def partitions_of_odd_topics(admin: Admin) -> None:
    a, b = admin.topic("a"), admin.topic("b")
    made(admin, new(a, 2), new(b, 2))
    for names in ([""], [a, ""], [a, "", a, "__consumer_offsets", ""], [a, a, b]):
        for cursor in (None, ("", 0), ("", -1), (a, 0), (b, -1), ("zz", 0)):
            admin.look(partitions(*names, cursor=cursor))


@story(ApiKey.METADATA)
def metadata_of_odd_topics(admin: Admin) -> None:
    """From v10 on a request has a field for topic ids, from v12 on the server uses it."""
    a, b, nope = admin.topic("a"), admin.topic("b"), admin.topic("nope")
    made(admin, new(a, 2), new(b))

    def of(*topics: tuple[str | None, UUID], **more: bool) -> None:
        if admin.version >= 10 or all(name is not None for name, _ in topics):
            named = tuple(MetadataRequestTopic(name=name, topic_id=id_) for name, id_ in topics)
            admin.look(MetadataRequest(topics=named, allow_auto_topic_creation=False, **more))

    a_id, b_id = admin.topic_id(a), admin.topic_id(b)
    of((a, NO_ID), (nope, NO_ID), (a, NO_ID), ("", NO_ID), ("a b", NO_ID))
    for id_ in (a_id, NEVER_AN_ID):
        for name in (None, a, b, nope, ""):
            of((name, id_))
            of((name, id_), (b, NO_ID))
    of((None, a_id), (None, b_id), (None, a_id), (None, NEVER_AN_ID), (None, NEVER_AN_ID))
    of((None, a_id), (None, NO_ID))
    of((None, NO_ID))
    of(
        (None, NO_ID),
        (a, NO_ID),
        ("__consumer_offsets", NO_ID),
        (None, NO_ID),
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )


# ---- leaders


def elect(
    election_type: int, *wanted: tuple[str, Sequence[int]], all_partitions: bool = False
) -> ElectLeadersRequest:
    topics = tuple(TopicPartitions(topic=name, partitions=tuple(which)) for name, which in wanted)
    return ElectLeadersRequest(
        election_type=election_type,
        topic_partitions=None if all_partitions else topics,
        timeout_ms=10_000,
    )


@story(ApiKey.ELECT_LEADERS)
def elections(admin: Admin) -> None:
    t, nope = admin.topic("t"), admin.topic("nope")
    made(admin, new(t, 3))
    for election_type in (0, 1, 2, 7, -1):
        admin.change(elect(election_type, (t, (0, 1, 1)), (nope, (0,))))
        admin.change(elect(election_type, (t, (0,)), (t, ()), (t, (2, 0, 9, -1)), ("", (0,)), ("a b", ())))
        admin.change(elect(election_type))
    for election_type in (2, -1):  # below v1 there is no type, and so no error
        if admin.version >= 1:
            admin.change(elect(election_type, all_partitions=True))


@story(ApiKey.ALTER_PARTITION_REASSIGNMENTS)
def reassignments(admin: Admin) -> None:
    t, nope = admin.topic("t"), admin.topic("nope")
    made(admin, new(t, 3))

    def to(*wanted: tuple[str, int, Sequence[int] | None], allow: bool = True) -> None:
        topics = tuple(
            ReassignableTopic(
                name=name,
                partitions=(
                    ReassignablePartition(
                        partition_index=index, replicas=None if replicas is None else tuple(replicas)
                    ),
                ),
            )
            for name, index, replicas in wanted
        )
        unnamed = any(name == nope or index > 2 or replicas is None for name, index, replicas in wanted)
        admin.change(
            AlterPartitionReassignmentsRequest(
                timeout_ms=10_000, allow_replication_factor_change=allow, topics=topics
            ),
            meant=TEXT if unnamed else "",
        )

    for allow in (True, False):
        to(allow=allow)
        to((t, 0, [1]), (t, 0, [1]), (t, 1, []), (t, 2, [2]), (t, 2, [1, 1]), (t, 0, [1, 2]), allow=allow)
        to((t, 9, [1]), (nope, 0, [1]), (t, 0, None), allow=allow)


@story(ApiKey.LIST_PARTITION_REASSIGNMENTS)
def reassignments_listed(admin: Admin) -> None:
    t, nope = admin.topic("t"), admin.topic("nope")
    made(admin, new(t))
    for names in ([], [t], [nope, t, t]):
        topics = tuple(
            ListPartitionReassignmentsTopics(name=name, partition_indexes=(0, 9)) for name in names
        )
        admin.look(ListPartitionReassignmentsRequest(timeout_ms=10_000, topics=topics))
    admin.look(ListPartitionReassignmentsRequest(timeout_ms=10_000, topics=None))


# ---- access control lists


def _codes() -> Iterator[dict[str, int]]:
    """Resource type, pattern type, operation and permission: in each variant one of them is odd."""
    good = {"resource": 2, "pattern": 3, "operation": 2, "permission": 3}
    yield good
    for name in good:
        for odd in (0, 1, 99, -1):
            yield {**good, name: odd}


@story(ApiKey.CREATE_ACLS)
def rules_made(admin: Admin) -> None:
    for codes in _codes():
        rule = AclCreation(
            resource_type=codes["resource"],
            resource_name="t",
            resource_pattern_type=codes["pattern"],
            principal="User:a",
            host="*",
            operation=codes["operation"],
            permission_type=codes["permission"],
        )
        admin.change(CreateAclsRequest(creations=(rule,)))


def _rule_filter(codes: dict[str, int]) -> dict[str, Any]:
    return {
        "resource_type_filter": codes["resource"],
        "resource_name_filter": "t",
        "pattern_type_filter": codes["pattern"],
        "principal_filter": None,
        "host_filter": None,
        "operation": codes["operation"],
        "permission_type": codes["permission"],
    }


@story(ApiKey.DELETE_ACLS)
def rules_deleted(admin: Admin) -> None:
    for codes in _codes():
        admin.change(DeleteAclsRequest(filters=(DeleteAclsFilter(**_rule_filter(codes)),)))


@story(ApiKey.DESCRIBE_ACLS)
def rules_described(admin: Admin) -> None:
    for codes in _codes():
        admin.change(DescribeAclsRequest(**_rule_filter(codes)))


# ---- log directories, quotas


@story(ApiKey.DESCRIBE_LOG_DIRS)
def log_dirs(admin: Admin) -> None:
    a, b, nope = admin.topic("a"), admin.topic("b"), admin.topic("nope")
    made(admin, new(a, 3), new(b))

    def of(*topics: tuple[str, Sequence[int]]) -> DescribeLogDirsRequest:
        return DescribeLogDirsRequest(
            topics=tuple(
                DescribableLogDirTopic(topic=name, partitions=tuple(which)) for name, which in topics
            )
        )

    admin.look(of((a, (0, 1, 2)), (b, (0,))))
    admin.look(DescribeLogDirsRequest(topics=None))
    admin.look(of())
    admin.look(of((a, ())))
    admin.look(of((a, (0, 7)), (nope, (0,))))
    admin.look(of((a, (0,)), (a, (1,)), (a, (0,))))


@story(ApiKey.DESCRIBE_CLIENT_QUOTAS)
def client_quotas(admin: Admin) -> None:
    exact, default, specified = range(3)
    filters: Sequence[Sequence[tuple[str, int, str | None]]] = [
        [],
        [("user", exact, "x")],
        [("user", default, None), ("client-id", specified, None)],
        [("ip", exact, "127.0.0.1")],
        [("nope", specified, None)],
        [("", specified, None)],
        [("user", 5, None)],
        [("user", exact, None)],
        [("user", default, "x")],
        [("user", specified, "x")],
        [("user", specified, None), ("user", specified, None)],
        [("ip", specified, None), ("user", specified, None)],
    ]
    for components in filters:
        for strict in (False, True):
            data = tuple(
                ComponentData(entity_type=entity_type, match_type=match_type, match=match)
                for entity_type, match_type, match in components
            )
            admin.look(DescribeClientQuotasRequest(components=data, strict=strict))
