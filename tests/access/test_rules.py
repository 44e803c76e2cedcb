"""Each API lets pass what is allowed, and refuses the rest; the facts are Apache Kafka 4.2's.

The requests, and what is just enough for them, are those of the matrix that both servers are asked
(`integration/differential/acls`).
"""

from __future__ import annotations

from typing import Any

import pytest

from integration.differential.acls import cases
from integration.differential.acls.cases import OTHER, SHARED, Case, Cell
from integration.differential.acls.matrix import Row, acls, plain, rows
from kshim.access.guard import guarded
from kshim.access.table import TABLE
from kshim.api.api_versions import ANNOUNCED
from kshim.cluster.acl import Acl, Pattern
from kshim.network.dispatch import API
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from schemas.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from schemas.messages.init_producer_id import InitProducerIdRequest
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from tests.access.world import ADMIN, World, errors_in
from tests.api.harness import create

REFUSED = {code for code in ErrorCode if code.name.endswith("AUTHORIZATION_FAILED")}
WITHOUT_A_TRACE = {
    "api-versions": "everybody may ask",
    "sync-group-without-protocol": "it is refused for another reason",
}
"""The cases in which nothing depends on ACLs."""
IMPLIED_IS_ENOUGH = {
    "metadata-of-all",
    "find-coordinator-of-a-reader",
    "describe-groups-of-a-reader",
    "describe-configs-of-who-may-alter",
    "describe-cluster-of-who-may-alter",
}
"""The cases in which an ACL is more than just enough, to show that it implies what is needed."""
INTERNAL = "add-partitions-to-txn-internal"
"""Nobody may add internal topics."""
SEEN_IN = {
    "metadata-without-describe-cluster-kafka-cluster": range(8, 11),
    "create-topics-without-describe_configs-topic-own": range(5, 100),
    "add-partitions-to-txn-internal-without-write-topic-__consumer_offsets": range(0),
    "add-partitions-to-txn-internal-describe-for-write-topic": range(0),
    "create-topics-any-without-describe_configs-topic-own": range(5, 100),
}
"""The versions in which the answer tells whether an ACL is there, if not all do."""


@pytest.fixture(scope="module")
def world() -> World:
    """Everything that the cases are about."""
    world = World()
    for name in (SHARED, OTHER, *(_own(row, version) for row, version in CELLS if row.case.makes)):
        create(world.broker, name)
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topics = tuple(OffsetCommitRequestTopic(name=name, partitions=(partition,)) for name in (SHARED, OTHER))
    assert not list(errors_in(world.ask(ADMIN, OffsetCommitRequest(group_id="committed", topics=topics), 8)))
    begin(world)
    world.allow(*(_acl(each) for row in rows() for each in acls(row)))
    return world


def begin(world: World) -> None:
    """Begin a transaction."""
    find: Any = cases.made(_request(ApiKey.FIND_COORDINATOR), {"key": "begun", "key_type": 1}, ANY_CELL)
    world.ask(ADMIN, find, 3)
    new = InitProducerIdRequest(transactional_id="begun", transaction_timeout_ms=600_000)
    producer = world.ask(ADMIN, new, 4)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="begun",
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=(AddPartitionsToTxnTopic(name=SHARED, partitions=(0,)),),
    )
    assert not list(errors_in(world.ask(ADMIN, request, 3)))


ANY_CELL = Cell("", 0, {})
CELLS = [(row, version) for row in rows() for version in row.case.each_version()]


def _request(api_key: ApiKey) -> Any:
    return cases.MESSAGES[api_key][0]


def _own(row: Row, version: int) -> str:
    return Cell(row.user, version, {}).own


def _acl(each: Any) -> Acl:
    pattern = Pattern(each.resource_type, each.resource_name, each.resource_pattern_type)
    return Acl(pattern, each.principal, each.host, each.operation, each.permission_type)


def told(world: World, row: Row, version: int) -> Any:
    """The answer to a row's user, without the names of users."""
    ids = {topic.name: topic.topic_id for topic in world.broker.cluster.topics.values()}
    answer = world.ask(row.user, row.case.request(Cell(row.user, version, ids)), version)
    return answer if answer is None or isinstance(answer, str) else repr(plain(answer)).replace(row.user, "u")


def choices(case: Case) -> dict[str, Row]:
    return {row.choice: row for row in rows() if row.case is case}


def test_every_api_has_its_rules() -> None:
    assert set(TABLE) >= set(ANNOUNCED)
    assert {case.api_key for case in cases.CASES} == set(ANNOUNCED) - {
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
    }


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.name)
def test_each_acl_counts(world: World, case: Case) -> None:
    """A user with just enough ACLs is answered in another way than a user who lacks one of them."""
    by_choice = choices(case)
    for version in case.each_version():
        enough = told(world, by_choice.get("enough", by_choice["nothing"]), version)
        for choice, row in by_choice.items():
            if choice == "enough":
                continue
            answer = told(world, row, version)
            assert "our fault" not in str(answer)
            seen = case.name not in WITHOUT_A_TRACE and version in SEEN_IN.get(str(row), range(100))
            if "-for-" in choice and case.name in IMPLIED_IS_ENOUGH:
                continue
            assert (answer != enough) is seen, f"{row} v{version}: {answer}"


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.name)
def test_super_users_are_refused_nothing(world: World, case: Case) -> None:
    if case.name == INTERNAL:
        return
    if OTHER not in world.broker.cluster.topics:  # he has deleted it
        create(world.broker, OTHER)
    for version in case.each_version():
        ids = {topic.name: topic.topic_id for topic in world.broker.cluster.topics.values()}
        answer = world.ask(ADMIN, case.request(Cell("admins", version, ids)), version)
        assert REFUSED.isdisjoint(errors_in(answer)), answer


def test_nobody_sets_passwords_without_a_right(world: World) -> None:
    """Also if the request removes none."""
    new = {"mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"s" * 32}
    upsertions = tuple(ScramCredentialUpsertion(name=name, **new) for name in (ADMIN, "eve", ADMIN))
    deletions = (ScramCredentialDeletion(name="bob", mechanism=1),)
    before = dict(world.broker.cluster.scram_users.credentials)
    for request, users in (
        (AlterUserScramCredentialsRequest(upsertions=upsertions), [ADMIN, "eve"]),
        (AlterUserScramCredentialsRequest(upsertions=upsertions, deletions=deletions), [ADMIN, "bob", "eve"]),
    ):
        results = world.ask("eve", request).results
        assert [each.user for each in results] == users
        assert {each.error_code for each in results} == {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    assert world.broker.cluster.scram_users.credentials == before


def test_a_refused_request_that_names_nothing_is_not_performed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def perform(*_: object) -> None:
        raise AssertionError("performed")

    api_key = ApiKey.OFFSET_COMMIT
    monkeypatch.setitem(API[api_key].__dict__, "guarded", guarded(api_key, perform))
    assert world.ask("eve", OffsetCommitRequest(group_id="committed"), 8) == OffsetCommitResponse()
