"""AlterUserScramCredentials and DescribeUserScramCredentials."""

from __future__ import annotations

from typing import Any

import pytest

from kshim.answering import Broker
from kshim.api import alter_user_scram_credentials as altering
from kshim.api.alter_user_scram_credentials import alter_user_scram_credentials
from kshim.api.describe_user_scram_credentials import describe_user_scram_credentials
from schemas.error_code import ErrorCode
from schemas.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from schemas.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from tests.api.harness import HeldStore, advance, ask, collect, context, new_broker

DONE = ("NONE", None)


def put(name: str, mechanism: int = 1, iterations: int = 4096) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"salted"
    )


def remove(name: str, mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(broker: Broker, *changes: Any) -> dict[str, tuple[str, str | None]]:
    request = AlterUserScramCredentialsRequest(
        deletions=tuple(each for each in changes if isinstance(each, ScramCredentialDeletion)),
        upsertions=tuple(each for each in changes if isinstance(each, ScramCredentialUpsertion)),
    )
    results = ask(alter_user_scram_credentials, broker, request, 0).results
    assert len(results) == len({each.user for each in results})
    return {each.user: (ErrorCode(each.error_code).name, each.error_message) for each in results}


def described(broker: Broker, *names: str) -> dict[str, Any]:
    users = tuple(UserName(name=name) for name in names) or None
    answer = ask(describe_user_scram_credentials, broker, DescribeUserScramCredentialsRequest(users=users), 0)
    return {
        each.user: ErrorCode(each.error_code).name
        if each.error_code
        else [(info.mechanism, info.iterations) for info in each.credential_infos]
        for each in answer.results
    }


def test_passwords_are_set_described_and_removed() -> None:
    broker = new_broker()
    assert alter(broker, put("bob", 2, 8192), put("alice", 2)) == {"bob": DONE, "alice": DONE}
    assert alter(broker, put("alice")) == {"alice": DONE}
    assert described(broker) == {"alice": [(1, 4096), (2, 4096)], "bob": [(2, 8192)]}
    assert described(broker, "bob", "nobody") == {"bob": [(2, 8192)], "nobody": "RESOURCE_NOT_FOUND"}
    assert described(broker, "bob", "bob") == {"bob": "DUPLICATE_RESOURCE"}
    assert alter(broker, remove("alice", 2), put("carol")) == {"alice": DONE, "carol": DONE}
    assert described(broker, "alice") == {"alice": [(1, 4096)]}


def test_each_user_is_refused_alone() -> None:
    broker = new_broker()
    outcome = alter(broker, put("alice"), put("bob", 3), put("carol"), put("carol", 2), remove("nobody"))
    assert {user: error for user, (error, _) in outcome.items()} == {
        "alice": "NONE",
        "bob": "UNSUPPORTED_SASL_MECHANISM",
        "carol": "DUPLICATE_RESOURCE",
        "nobody": "RESOURCE_NOT_FOUND",
    }
    assert described(broker) == {"alice": [(1, 4096)]}


def test_many_users_are_altered_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(altering, "USERS_AT_ONCE", 3)
    broker = new_broker()
    names = [f"user{number}" for number in range(10)]
    request = AlterUserScramCredentialsRequest(upsertions=(*map(put, names), put("user0", 2)))
    answers = collect(alter_user_scram_credentials(broker, context(0), request))
    for _ in names:
        advance(broker)
    (answer,) = answers
    assert [each.user for each in answer.results if not each.error_code] == names[1:]
    assert set(described(broker)) == set(names[1:])


def test_a_password_that_cannot_be_stored_is_not_set() -> None:
    store = HeldStore()
    broker = new_broker(store)
    request = AlterUserScramCredentialsRequest(deletions=(), upsertions=(put("alice"),))
    answers = collect(alter_user_scram_credentials(broker, context(0), request))
    assert (answers, described(broker)) == ([], {})
    store.writes[0].fail()
    (answer,) = answers
    assert answer.results[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert described(broker) == {}


def test_a_request_does_not_show_the_password() -> None:
    request = AlterUserScramCredentialsRequest(upsertions=(put("alice"),))
    assert "alice" in repr(request)
    assert "salted'" not in repr(request)
