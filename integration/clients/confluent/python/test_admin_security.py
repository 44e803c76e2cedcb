"""AdminClient and security: neither server has an authorizer, and both keep passwords for SCRAM."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from integration.clients.confluent.python.clients import ANSWER_S, VERSION, outcome, outcomes
from integration.support.awaiting import wait_until

BINDING = AclBinding(
    ResourceType.TOPIC,
    "orders",
    ResourcePatternType.LITERAL,
    "User:bob",
    "*",
    AclOperation.READ,
    AclPermissionType.ALLOW,
)
ANY = AclBindingFilter(
    ResourceType.ANY,
    None,
    ResourcePatternType.ANY,
    None,
    None,
    AclOperation.ANY,
    AclPermissionType.ANY,
)
SHA_256 = ScramMechanism.SCRAM_SHA_256


def test_access_control_lists_without_an_authorizer(admin: AdminClient) -> None:
    assert outcomes(admin.create_acls([BINDING])) == {BINDING: "SECURITY_DISABLED"}
    assert outcome(admin.describe_acls(ANY)) == []  # librdkafka drops the response's error
    assert outcomes(admin.delete_acls([ANY])) == {ANY: "SECURITY_DISABLED"}


def test_passwords_of_nobody(admin: AdminClient) -> None:
    assert outcomes(admin.describe_user_scram_credentials(["nobody"])) == {"nobody": "RESOURCE_NOT_FOUND"}


@pytest.mark.skipif(VERSION < (2, 3), reason="in 2.2 it needs names")
def test_passwords_of_all(admin: AdminClient) -> None:
    assert outcome(admin.describe_user_scram_credentials()) == {}


def test_a_password_that_is_set(admin: AdminClient, topic: str) -> None:
    user = f"user-of-{topic}"
    upsertion = UserScramCredentialUpsertion(user, ScramCredentialInfo(SHA_256, 5000), b"secret")
    assert outcomes(admin.alter_user_scram_credentials([upsertion])) == {user: None}

    def iterations() -> list[int]:
        found = outcomes(admin.describe_user_scram_credentials([user]))[user]
        return [] if isinstance(found, str) else [info.iterations for info in found.scram_credential_infos]

    wait_until(lambda: iterations() == [5000], ANSWER_S, "the password is there")
    deletion = UserScramCredentialDeletion(user, SHA_256)
    assert outcomes(admin.alter_user_scram_credentials([deletion])) == {user: None}
    wait_until(lambda: iterations() == [], ANSWER_S, "the password is gone")
    assert outcomes(admin.alter_user_scram_credentials([deletion])) == {user: "RESOURCE_NOT_FOUND"}
