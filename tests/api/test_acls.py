"""DescribeAcls, CreateAcls, DeleteAcls, DescribeUserScramCredentials on a broker without an authorizer.

The facts are Apache Kafka 4.2's.
"""

from __future__ import annotations

from typing import Any

import pytest

from kshim.api.create_acls import create_acls
from kshim.api.delete_acls import delete_acls
from kshim.api.describe_acls import describe_acls
from kshim.api.describe_user_scram_credentials import describe_user_scram_credentials
from kshim.requests import Refused
from schemas.error_code import ErrorCode
from schemas.messages.create_acls import AclCreation, CreateAclsRequest
from schemas.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from schemas.messages.describe_acls import DescribeAclsRequest
from schemas.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from tests.api.harness import ask, new_broker

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
