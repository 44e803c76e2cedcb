"""Stories of administrators who give users passwords for SCRAM. At its end each restores the first state."""

from __future__ import annotations

from integration.differential.stories.admin_talk import Admin, story
from schemas.api_key import ApiKey
from schemas.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from schemas.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName

SHA_256, SHA_512 = 1, 2
Change = ScramCredentialDeletion | ScramCredentialUpsertion


def put(
    name: str,
    mechanism: int = SHA_256,
    iterations: int = 4096,
    salt: bytes = b"salt",
    salted_password: bytes = b"salted",
) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=iterations,
        salt=salt,
        salted_password=salted_password,
    )


def remove(name: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(*changes: Change) -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest(
        deletions=tuple(each for each in changes if isinstance(each, ScramCredentialDeletion)),
        upsertions=tuple(each for each in changes if isinstance(each, ScramCredentialUpsertion)),
    )


def describe(*names: str) -> DescribeUserScramCredentialsRequest:
    return DescribeUserScramCredentialsRequest(users=tuple(UserName(name=name) for name in names))


@story(ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
def passwords_of_users(admin: Admin) -> None:
    alice, bob = admin.topic("ä=,\n"), admin.topic("b" * 300)
    admin.change(alter(put(alice), put(bob, SHA_512, 16384)))
    admin.look(describe(alice, bob))
    admin.change(alter(put(alice, SHA_512, 8192)))
    admin.look(describe(alice))
    admin.look(describe())
    admin.look(DescribeUserScramCredentialsRequest(users=None))
    admin.look(describe(alice, alice, bob))
    admin.look(describe(alice, admin.topic("nobody"), ""))
    admin.change(alter(put(alice, SHA_256, 5000), remove(bob, SHA_512)))
    admin.look(describe(alice, bob))
    admin.change(alter(remove(alice)))
    admin.change(alter(remove(alice, SHA_512)))
    admin.look(describe(alice))
    admin.look(describe())
    admin.change(alter())


@story(ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
def passwords_that_are_refused(admin: Admin) -> None:
    user = admin.topic("u")
    for mechanism in (-1, 0, 3, 127):
        admin.change(alter(put(user, mechanism)))
        admin.change(alter(remove(user, mechanism)))
    for iterations in (-1, 0, 4095, 16385, 2**31 - 1):
        admin.change(alter(put(user, iterations=iterations)))
    admin.change(alter(put("")))
    admin.change(alter(remove("")))
    admin.change(alter(put("", 9, 1)))
    admin.change(alter(put(user, 9, 1)))
    admin.change(alter(remove(user)))
    admin.change(alter(put(user), put(user, SHA_512)))
    admin.change(alter(put(user), put(user), put(user)))
    admin.change(alter(put(user, 9), put(user)))
    admin.change(alter(put(user), put(user, 9)))
    admin.change(alter(remove(user), put(user)))
    admin.change(alter(put(user, salt=b"")))
    admin.look(describe(user))
    admin.change(alter(remove(user), remove(user)))
    admin.change(alter(remove(user), put(user)))
    admin.change(alter(remove(user), remove(user, SHA_512)))
    admin.change(alter(remove(user)))
    admin.look(describe(user))


@story(ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
def passwords_without_bytes(admin: Admin) -> None:
    user = admin.topic("u")
    admin.change(alter(put(user, salted_password=b"")), meant="D-no-salted-password")
    admin.look(describe(user))
