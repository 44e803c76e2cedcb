"""The commands about users with passwords for SCRAM. The server never sees a password: the sender salts it
first, as clients of AlterUserScramCredentials do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from kshim.authentication.scram_credential import ScramMechanism
from kshim.cluster.scram_users import Deletion, ScramChange, Upsertion
from kshim.control.commands import Command, Commands, SteeringError

if TYPE_CHECKING:
    from kshim.cluster.scram import ScramUsers


class ListedUser(TypedDict):
    """A user's password for one mechanism."""

    user: str
    mechanism: str
    iterations: int


class UserSteering:
    """Carries out the commands of `kshim users`."""

    def __init__(self, users: ScramUsers) -> None:
        self._users = users

    def commands(self) -> Commands:
        return {
            "list-users": Command(self.list),
            "put-user": Command(self.put, (str, str, int, str, str)),
            "remove-user": Command(self.remove, (str, str)),
        }

    def list(self) -> list[ListedUser]:
        """One JSON value for each user and mechanism, sorted."""
        found: list[ListedUser] = [
            {"user": name, "mechanism": mechanism.value, "iterations": credential.iterations}
            for (name, mechanism), credential in self._users.credentials.items()
        ]
        return sorted(found, key=lambda each: (each["user"], each["mechanism"]))

    async def put(self, name: str, mechanism: str, iterations: int, salt: str, salted_password: str) -> None:
        """Set a password. salt, salted_password: in hex."""
        try:
            number = ScramMechanism(mechanism).number
            secrets = bytes.fromhex(salt), bytes.fromhex(salted_password)
        except ValueError:
            raise SteeringError("expected a mechanism, and a salt and a salted password in hex") from None
        await self._alter(Upsertion(name, number, iterations, *secrets))

    async def remove(self, name: str, mechanism: str) -> bool:
        """Remove a password. Return False if there was none."""
        found = next((each for each in ScramMechanism if each.value == mechanism), None)
        if found is None or (name, found) not in self._users.credentials:
            return False
        await self._alter(Deletion(name, found.number))
        return True

    async def _alter(self, change: ScramChange) -> None:
        refusal = (await self._users.alter([change]))[change.name]
        if refusal is not None:
            raise SteeringError(refusal.message or refusal.error_code.name)
