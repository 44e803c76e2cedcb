"""DescribeAcls, CreateAcls, DeleteAcls, with and without an authorizer; DescribeUserScramCredentials.

The facts are Apache Kafka 4.2's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kshim.answering import Broker
from kshim.api.create_acls import create_acls
from kshim.api.delete_acls import delete_acls
from kshim.api.describe_acls import describe_acls
from kshim.api.describe_user_scram_credentials import describe_user_scram_credentials
from kshim.callers import Refused
from kshim.cluster import acls
from kshim.configs.access import STANDARD_AUTHORIZER
from kshim.storage.memory import MemoryStore
from schemas.error_code import ErrorCode
from schemas.messages.create_acls import AclCreation, CreateAclsRequest
from schemas.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from schemas.messages.describe_acls import DescribeAclsRequest
from schemas.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from tests.api.harness import HeldStore, advance, ask, collect, context, new_broker

ANY = {"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}
REFUSED = (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")


def test_there_are_no_acls() -> None:
    request = DescribeAclsRequest(
        resource_type_filter=1, resource_name_filter=None, pattern_type_filter=1, **ANY
    )
    answer = ask(describe_acls, new_broker(), request, 3)
    assert answer.error_code == ErrorCode.SECURITY_DISABLED
    assert (answer.error_message, answer.resources) == ("No Authorizer is configured on the broker", ())


@pytest.mark.parametrize("unknown", range(4))
def test_acls_that_say_unknown_cannot_be_read(unknown: int) -> None:
    codes = [2, 3, 2, 3]
    codes[unknown] = 0
    resource, pattern, operation, permission = codes
    rest = {"operation": operation, "permission_type": permission}
    filters: dict[str, Any] = {
        "resource_type_filter": resource,
        "resource_name_filter": "t",
        "pattern_type_filter": pattern,
        "principal_filter": None,
        "host_filter": None,
        **rest,
    }
    creation = AclCreation(
        resource_type=resource,
        resource_name="t",
        resource_pattern_type=pattern,
        principal="User:a",
        host="*",
        **rest,
    )
    requests: list[tuple[Any, Any]] = [
        (describe_acls, DescribeAclsRequest(**filters)),
        (delete_acls, DeleteAclsRequest(filters=(DeleteAclsFilter(**filters),))),
        (create_acls, CreateAclsRequest(creations=(creation,))),
    ]
    for function, request in requests:
        with pytest.raises(Refused):
            ask(function, new_broker(), request, 3)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_none_can_be_made_or_deleted(count: int) -> None:
    broker = new_broker()
    creation = AclCreation(
        resource_type=2, resource_name="t", principal="User:a", host="*", operation=3, permission_type=3
    )
    created = ask(create_acls, broker, CreateAclsRequest(creations=(creation,) * count), 3)
    assert [(each.error_code, each.error_message) for each in created.results] == [REFUSED] * count
    everything = DeleteAclsFilter(
        resource_type_filter=1, resource_name_filter=None, pattern_type_filter=1, **ANY
    )
    deleted = ask(delete_acls, broker, DeleteAclsRequest(filters=(everything,) * count), 3)
    assert [(each.error_code, each.error_message) for each in deleted.filter_results] == [REFUSED] * count
    assert all(each.matching_acls == () for each in deleted.filter_results)


@pytest.mark.parametrize(
    ("users", "expected"),
    [
        (None, {}),
        ((), {}),
        (("a", ""), {"a": ErrorCode.RESOURCE_NOT_FOUND, "": ErrorCode.RESOURCE_NOT_FOUND}),
        (("a", "a", "b"), {"a": ErrorCode.DUPLICATE_RESOURCE, "b": ErrorCode.RESOURCE_NOT_FOUND}),
    ],
)
def test_no_user_has_a_password(users: tuple[str, ...] | None, expected: dict[str, ErrorCode]) -> None:
    named = None if users is None else tuple(UserName(name=user) for user in users)
    request = DescribeUserScramCredentialsRequest(users=named)
    answer = ask(describe_user_scram_credentials, new_broker(), request, 0)
    assert (answer.error_code, answer.error_message) == (0, "")
    assert {result.user: result.error_code for result in answer.results} == expected


# ---- with an authorizer


ALL = DescribeAclsRequest(resource_type_filter=1, resource_name_filter=None, pattern_type_filter=1, **ANY)
ALICE = "User:alice"
Row = tuple[int, str, int, str, str, int, int]
"""Resource type, name, pattern type, principal, host, operation, permission."""
READS: Row = (2, "orders", 3, ALICE, "*", 3, 3)
WRITES: Row = (2, "or", 4, ALICE, "10.0.0.1", 4, 3)
DENIED: Row = (3, "*", 3, "User:*", "*", 2, 2)


def creation(row: Row) -> AclCreation:
    kind, name, pattern, principal, host, operation, permission = row
    return AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=pattern,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )


def make(broker: Broker, *rows: Row) -> list[tuple[int, str | None]]:
    """Make ACLs; the error and message of each."""
    answer = ask(create_acls, broker, CreateAclsRequest(creations=tuple(map(creation, rows))), 3)
    return [(each.error_code, each.error_message) for each in answer.results]


def found(broker: Broker, **fields: Any) -> set[Row]:
    """The ACLs that a filter finds; without fields, all."""
    answer = ask(describe_acls, broker, replace(ALL, **fields), 3)
    assert answer.error_code == ErrorCode.NONE
    return {
        (
            of.resource_type,
            of.resource_name,
            of.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for of in answer.resources
        for acl in of.acls
    }


def deleted(broker: Broker, *filters: dict[str, Any]) -> list[set[Row]]:
    request = DeleteAclsRequest(filters=tuple(new_filter(**fields) for fields in filters))
    answer = ask(delete_acls, broker, request, 3)
    assert all(each.error_code == ErrorCode.NONE for each in answer.filter_results)
    return [
        {
            (
                each.resource_type,
                each.resource_name,
                each.pattern_type,
                each.principal,
                each.host,
                each.operation,
                each.permission_type,
            )
            for each in of.matching_acls
        }
        for of in answer.filter_results
    ]


def new_filter(**fields: Any) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        **{"resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1, **ANY} | fields
    )


def guarded_broker(store: Any = None) -> Broker:
    return new_broker(store, authorizer_class_name=STANDARD_AUTHORIZER)


def test_acls_are_made_once_found_and_deleted() -> None:
    broker = guarded_broker()
    done = (ErrorCode.NONE, "")
    assert make(broker, READS, WRITES, READS) == [done] * 3
    assert make(broker, READS, DENIED) == [done] * 2
    assert found(broker) == {READS, WRITES, DENIED}
    assert deleted(broker, {"host_filter": "10.0.0.1"}, {"resource_type_filter": 2}) == [
        {WRITES},
        {READS, WRITES},
    ]
    assert found(broker) == {DENIED}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {READS, WRITES, DENIED}),
        ({"resource_type_filter": 2}, {READS, WRITES}),
        ({"resource_type_filter": 7}, set()),
        ({"resource_name_filter": "orders"}, {READS}),
        ({"resource_name_filter": "orders", "pattern_type_filter": 2}, {READS, WRITES, DENIED}),
        ({"resource_name_filter": "orders", "pattern_type_filter": 4}, set()),
        ({"resource_name_filter": "or", "pattern_type_filter": 4}, {WRITES}),
        ({"pattern_type_filter": 3}, {READS, DENIED}),
        ({"principal_filter": ALICE}, {READS, WRITES}),
        ({"principal_filter": "User:*"}, {DENIED}),
        ({"host_filter": "*"}, {READS, DENIED}),
        ({"operation": 3}, {READS}),
        ({"operation": 2}, {DENIED}),
        ({"permission_type": 2}, {DENIED}),
    ],
)
def test_what_a_filter_finds(fields: dict[str, Any], expected: set[Row]) -> None:
    broker = guarded_broker()
    make(broker, READS, WRITES, DENIED)
    assert found(broker, **fields) == expected
    assert deleted(broker, fields) == [expected]
    assert found(broker) == {READS, WRITES, DENIED} - expected


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            (4, "cluster", 3, ALICE, "*", 3, 3),
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
        ((2, "", 3, ALICE, "*", 3, 3), "Invalid empty resource name"),
        ((99, "t", 3, ALICE, "*", 3, 3), "Invalid resourceType UNKNOWN"),
        ((2, "t", 99, ALICE, "*", 3, 3), "Invalid patternType UNKNOWN"),
        ((2, "t", 3, ALICE, "*", 99, 3), "Invalid operation UNKNOWN"),
        ((2, "t", 3, ALICE, "*", 3, 99), "Invalid permissionType UNKNOWN"),
        (
            (2, "t", 3, "alice", "*", 3, 3),
            "Could not parse principal from `alice` (no colon is present separating the principal type from "
            "the principal name)",
        ),
    ],
)
def test_an_acl_that_is_wrong_is_refused_alone(row: Row, message: str) -> None:
    broker = guarded_broker()
    assert make(broker, row, READS) == [(ErrorCode.INVALID_REQUEST, message), (ErrorCode.NONE, "")]
    assert found(broker) == {READS}


@pytest.mark.parametrize(
    "row",
    [
        (1, "t", 3, ALICE, "*", 3, 3),
        (2, "t", 1, ALICE, "*", 3, 3),
        (2, "t", 2, ALICE, "*", 3, 3),
        (2, "t", 3, ALICE, "*", 1, 3),
        (2, "t", 3, ALICE, "*", 3, 1),
    ],
)
def test_all_fails_with_an_acl_that_only_filters_can_be(row: Row) -> None:
    broker = guarded_broker()
    assert make(broker, row, READS) == [(ErrorCode.UNKNOWN_SERVER_ERROR, None)] * 2
    assert found(broker) == set()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"resource_type_filter": 99}, "Unknown patternFilter."),
        ({"pattern_type_filter": 99}, "Unknown patternFilter."),
        ({"operation": 99}, "Unknown entryFilter."),
        ({"permission_type": 99}, "Unknown entryFilter."),
    ],
)
def test_a_filter_of_unknown_codes_deletes_nothing(fields: dict[str, Any], message: str) -> None:
    broker = guarded_broker()
    make(broker, READS)
    request = DeleteAclsRequest(filters=(new_filter(**fields),))
    (result,) = ask(delete_acls, broker, request, 3).filter_results
    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_REQUEST, message)
    assert found(broker) == {READS}


def test_acls_are_there_after_a_restart() -> None:
    store = MemoryStore()
    broker = guarded_broker(store)
    make(broker, READS, WRITES, DENIED)
    deleted(broker, {"principal_filter": "User:*"})
    again = guarded_broker(store)
    assert found(again) == {READS, WRITES}
    assert again.authorizer is not None
    assert again.authorizer.allows(ALICE, "10.0.0.1", 4, 2, "orders")


def test_what_could_not_be_stored_is_not_in_force() -> None:
    store = HeldStore()
    broker = guarded_broker(store)
    made = collect(create_acls(broker, context(3), CreateAclsRequest(creations=(creation(READS),))))
    assert not made
    assert broker.authorizer is not None
    assert not broker.authorizer.allows(ALICE, "10.0.0.1", 3, 2, "orders")
    store.fail()
    assert made[0].results[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert found(broker) == set()


def test_many_acls_are_made_and_searched_in_slices() -> None:
    broker = guarded_broker()
    rows = [(2, f"topic-{number}", 3, ALICE, "*", 3, 3) for number in range(3_000)]
    request = CreateAclsRequest(creations=tuple(map(creation, rows)))
    made = collect(create_acls(broker, context(3), request))
    assert not made, "others have their turn first"
    while not made:
        advance(broker)
    asked = context(3)
    searched = collect(delete_acls(broker, asked, DeleteAclsRequest(filters=(new_filter(),) * 3)))
    assert not searched
    assert asked.turn.is_alone
    while not searched:
        advance(broker)
    assert [len(each.matching_acls) for each in searched[0].filter_results] == [3_000] * 3


def test_more_acls_than_kafka_takes_at_once() -> None:
    broker = guarded_broker()
    request = CreateAclsRequest(creations=(creation(READS),) * 10_001)
    (answer,) = collect(create_acls(broker, context(3), request))
    assert {each.error_code for each in answer.results} == {ErrorCode.POLICY_VIOLATION}
    assert found(broker) == set()


@pytest.mark.parametrize(
    ("filters", "is_refused"),
    [(("a-0", "a-1"), False), ((None, "b"), False), ((None,), True), (("a-0", None, "none"), True)],
)
def test_more_acls_than_kafka_deletes_at_once(
    monkeypatch: pytest.MonkeyPatch, filters: tuple[str | None, ...], is_refused: bool
) -> None:
    """A filter that finds one more makes the whole request fail; one that finds none does not."""
    monkeypatch.setattr(acls, "MOST_AT_ONCE", 2)
    broker = guarded_broker()
    rows: list[Row] = [(2, f"a-{number}", 3, ALICE, "*", 3, 3) for number in range(2 + is_refused)]
    for row in rows:
        make(broker, row)
    request = DeleteAclsRequest(filters=tuple(new_filter(resource_name_filter=name) for name in filters))
    answer = ask(delete_acls, broker, request, 3)
    message = "Cannot remove more than 10000 acls in a single delete operation."
    expected = (ErrorCode.INVALID_REQUEST, message) if is_refused else (ErrorCode.NONE, None)
    assert {(each.error_code, each.error_message) for each in answer.filter_results} == {expected}
    assert found(broker) == (set(rows) if is_refused else set())


def test_a_filter_that_finds_again_what_fills_the_request() -> None:
    """So Kafka counts: what is found once the request is full makes it fail, even if it was found before."""
    broker = guarded_broker()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(acls, "MOST_AT_ONCE", 1)
        make(broker, READS)
        answer = ask(delete_acls, broker, DeleteAclsRequest(filters=(new_filter(),) * 2), 3)
    assert {each.error_code for each in answer.filter_results} == {ErrorCode.INVALID_REQUEST}


def test_deletions_that_find_too_much_are_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acls, "MOST_FOUND", 3)
    broker = guarded_broker()
    make(broker, READS, WRITES)
    with pytest.raises(Refused, match="DeleteAcls finds more than"):
        ask(delete_acls, broker, DeleteAclsRequest(filters=(new_filter(),) * 2), 3)
    assert found(broker) == {READS, WRITES}


def test_other_changes_are_made_while_acls_are_searched_for() -> None:
    """ACLs that another request deletes meanwhile count as its own; ACLs that it makes meanwhile stay."""
    broker = guarded_broker()
    make(broker, READS, WRITES)
    filters = (
        new_filter(principal_filter=ALICE),
        *(new_filter(resource_name_filter="no") for _ in range(5_000)),
    )
    searching = collect(delete_acls(broker, context(3), DeleteAclsRequest(filters=filters)))
    assert not searching
    assert deleted(broker, {"resource_name_filter": "orders"}) == [{READS}]
    make(broker, DENIED)
    while not searching:
        advance(broker)
    first, *others = searching[0].filter_results
    assert [each.resource_name for each in first.matching_acls] == ["or"]
    assert not any(each.matching_acls for each in others)
    assert found(broker) == {DENIED}
