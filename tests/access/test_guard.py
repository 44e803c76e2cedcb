"""Rules for all APIs: the caller's principal, what is kept, what the log says, what it may cost."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from kshim.callers import Refused
from kshim.callers.principal import ANONYMOUS
from kshim.cluster.acl import Acl, AclFilter, AclOperation, AclResource, Pattern, PatternType, Permission
from kshim.network.dispatch import answer
from kshim.testing.wire import payload
from kshim.turns import Turn
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.registry import VERSIONS, decode_response
from tests.access.world import ADMIN, World
from tests.api.harness import advance, batch, collect, create, result

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
ONE = MetadataRequest(topics=(MetadataRequestTopic(name="one"),), allow_auto_topic_creation=False)


def acl(
    user: str,
    name: str = "one",
    operation: AclOperation = AclOperation.READ,
    permission: Permission = Permission.ALLOW,
    host: str = "*",
) -> Acl:
    pattern = Pattern(AclResource.TOPIC, name, PatternType.LITERAL)
    return Acl(pattern, f"User:{user}", host, operation, permission)


@pytest.fixture
def world() -> World:
    world = World(acl("alice"))
    create(world.broker, "one")
    return world


def error(world: World, user: str, host: str = "10.0.0.7") -> int:
    """The error of the topic `one`."""
    (topic,) = world.ask(user, ONE, 12, host=host).topics
    assert isinstance(topic.error_code, int)
    return topic.error_code


def test_who_did_not_authenticate_is_anonymous(world: World) -> None:
    nobody = replace(world.client("x"), principal=ANONYMOUS)
    assert world.answer(nobody, ONE, 12).topics[0].error_code == DENIED
    world.allow(acl("ANONYMOUS"))
    assert world.answer(nobody, ONE, 12).topics[0].error_code == ErrorCode.NONE


def test_an_acl_may_be_for_one_host(world: World) -> None:
    world.allow(acl("bob", host="10.0.0.8"))
    assert error(world, "bob", "10.0.0.8") == ErrorCode.NONE
    assert error(world, "bob", "10.0.0.9") == DENIED


def test_kept_replies_are_for_one_principal_and_host(world: World) -> None:
    world.broker.arrivals.asked(world.client("x"), names_any=True)
    world.broker.arrivals.came(world.client("x"))  # else no reply is kept
    for _ in range(3):
        assert error(world, ADMIN) == error(world, "alice") == ErrorCode.NONE
        assert error(world, "bob") == DENIED
    assert len(world.broker.replies._replies) == 2


def test_a_new_acl_counts_for_the_next_request(world: World) -> None:
    world.broker.arrivals.asked(world.client("x"), names_any=True)
    world.broker.arrivals.came(world.client("x"))
    assert error(world, "alice") == ErrorCode.NONE
    world.allow(acl("*", "one", AclOperation.ALL, Permission.DENY))
    assert error(world, "alice") == DENIED


def test_a_reply_that_is_made_while_acls_are_deleted_is_not_kept(world: World) -> None:
    world.broker.arrivals.asked(world.client("x"), names_any=True)
    world.broker.arrivals.came(world.client("x"))
    acls = world.broker.cluster.acls
    assert acls is not None
    world.allow(acl("alice", "other"))
    seen: list[int] = []

    async def ask_meanwhile(_: int) -> None:
        seen.append(error(world, "alice"))

    filters = [AclFilter(1, name, 1, None, None, 1, 1) for name in ("other", "one")]
    result(acls.delete(filters, ask_meanwhile))
    assert seen[-2:] == [ErrorCode.NONE, DENIED], "the ACL of the topic goes last"
    assert error(world, "alice") == DENIED


@pytest.mark.parametrize("version", [v for v in VERSIONS[ApiKey.FIND_COORDINATOR] if v >= 1])
def test_a_coordinator_without_rights_creates_no_topic(world: World, version: int) -> None:
    request = FindCoordinatorRequest(key="tx", key_type=1, coordinator_keys=("tx", "ty"))
    answer = world.ask("bob", request, version)
    denied = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if version < 4:
        assert answer.error_code == denied
    else:
        assert [each.error_code for each in answer.coordinators] == [denied, denied]
    assert "__transaction_state" not in world.broker.cluster.topics


def refusals(caplog: pytest.LogCaptureFixture, level: int = logging.WARNING) -> list[str]:
    return [
        each.getMessage()
        for each in caplog.records
        if "is denied" in each.getMessage() and each.levelno >= level
    ]


def test_the_log_says_who_was_refused_what(world: World, caplog: pytest.LogCaptureFixture) -> None:
    error(world, "bob")
    line = "User:bob is denied DESCRIBE on TOPIC one from host 10.0.0.7, for Metadata"
    assert refusals(caplog) == [line]
    error(world, "bob")
    assert refusals(caplog) == [line], "it says so once"
    error(world, "bob", "10.0.0.8")
    assert len(refusals(caplog)) == 2


def test_many_refusals_make_one_line(world: World, caplog: pytest.LogCaptureFixture) -> None:
    topics = tuple(MetadataRequestTopic(name=f"topic-{number}") for number in range(50))
    world.ask("bob", MetadataRequest(topics=topics), 12)
    (line,) = refusals(caplog)
    topics_told = "topic-0, topic-1, topic-2 and 47 more"
    assert line == f"User:bob is denied DESCRIBE on TOPIC {topics_told} from host 10.0.0.7, for Metadata"


def test_what_is_left_out_of_a_list_is_not_in_the_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    assert world.ask("bob", MetadataRequest(topics=None), 12).topics == ()
    assert not refusals(caplog)


def test_a_refusal_that_cannot_be_told_closes_the_connection(world: World) -> None:
    def produce(*names: str) -> Any:
        data = (PartitionProduceData(index=0, records=batch()),)
        topics = tuple(TopicProduceData(name=name, partition_data=data) for name in names)
        request = ProduceRequest(acks=0, timeout_ms=1000, topic_data=topics)
        return result(answer(world.broker, payload(9, request, "c", 7), world.client("bob"), Turn()))

    create(world.broker, "two")
    world.allow(acl("bob", "two", AclOperation.WRITE))
    assert produce("two") is None
    with pytest.raises(Refused):
        produce("one")
    with pytest.raises(Refused):
        produce("one", "two")
    partition = world.broker.cluster.topics["two"].partitions[0].partition_no
    assert world.broker.log.offsets(partition).log_end_offset == 2, "what may be written is written"


def test_a_topic_of_a_session_that_may_no_longer_be_read(world: World) -> None:
    partition = FetchPartition(partition=0, partition_max_bytes=1000)
    first = FetchRequest(
        max_bytes=1000, session_epoch=0, topics=(FetchTopic(topic="one", partitions=(partition,)),)
    )
    begun = world.ask("alice", first, 12)
    assert begun.responses[0].partitions[0].error_code == ErrorCode.NONE
    world.allow(acl("alice", "one", AclOperation.READ, Permission.DENY))
    again = FetchRequest(max_bytes=1000, session_id=begun.session_id, session_epoch=1)
    for epoch in (1, 2):
        answer = world.ask("alice", replace(again, session_epoch=epoch), 12)
        assert answer.responses, answer
        assert answer.responses[0].partitions[0].error_code == DENIED


def test_a_request_of_many_topics_gives_way(world: World) -> None:
    partition = (ListOffsetsPartition(timestamp=-1),)
    names = [f"topic-{number}" for number in range(5_000)]
    request = ListOffsetsRequest(
        topics=tuple(ListOffsetsTopic(name=name, partitions=partition) for name in names)
    )
    turn = Turn()
    seen = collect(answer(world.broker, payload(6, request, "c", 7), world.client("bob"), turn))
    assert not seen
    assert turn.is_alone
    while not seen:
        advance(world.broker)
    topics = decode_response(ApiKey.LIST_OFFSETS, 6, bytes(seen[0]))[1].topics
    assert [topic.name for topic in sorted(topics, key=lambda topic: names.index(topic.name))] == names
    assert {each.error_code for topic in topics for each in topic.partitions} == {DENIED}
