"""Stores the users with passwords for SCRAM in the metadata of the cluster (KIP-554)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from kshim.authentication.scram_credential import MIN_ITERATIONS, ScramCredential, ScramMechanism
from kshim.cluster.keys import SCRAM_CREDENTIALS, SCRAM_SECRET
from kshim.cluster.scram_users import (
    Outcomes,
    ScramChange,
    Upsertion,
    User,
    decode_credential,
    encode_credential,
    refuse_all,
    stored_key,
)
from kshim.cluster.writer import Changes, Writer

if TYPE_CHECKING:
    from kshim.storage.interfaces import Metadata

_SECRET_BYTES = 32


class KnownUsers:
    """Users with passwords for SCRAM, to look up. Only keys derived from the passwords are kept.

    In front of an upstream there are none.
    """

    def __init__(self) -> None:
        self.credentials: dict[User, ScramCredential] = {}  # exactly the durable ones
        self._secret = b""
        self._iterations: dict[ScramMechanism, int] = {}

    def invented(self, name: str, mechanism: ScramMechanism) -> ScramCredential:
        """A credential for the unknown user `name`, with the commonest number of iterations.

        So a client cannot find out that the user does not exist.
        """
        from kshim.authentication.scram_keys import invented_credential

        if mechanism not in self._iterations:
            of_users = (each.iterations for (_, of), each in self.credentials.items() if of is mechanism)
            common = Counter(of_users).most_common(1)
            self._iterations[mechanism] = common[0][0] if common else MIN_ITERATIONS
        return invented_credential(mechanism, self._secret, name, self._iterations[mechanism])


class ScramUsers(KnownUsers):
    """The stored users, whose passwords may be altered."""

    def __init__(self, writer: Writer) -> None:
        super().__init__()
        self._writer = writer

    def read(self, metadata: Metadata) -> None:
        for _, value in metadata.items(SCRAM_CREDENTIALS):
            user, credential = decode_credential(value)
            self.credentials[user] = credential
        self._secret = metadata.get(SCRAM_SECRET) or b""

    def prepare(self, changes: Changes) -> None:
        """Add a new secret for `invented` to the first change of the cluster; no-op if one is stored."""
        if not self._secret:
            self._secret = os.urandom(_SECRET_BYTES)
            changes[SCRAM_SECRET] = self._secret

    def alter(self, changes: Sequence[ScramChange]) -> Deferred[Outcomes]:
        """Set and remove passwords in one durable write. Fires with a refusal, or None for success, by user.
        Errbacks StorageError; then nothing was changed.
        """
        return self._writer.run(self._alter, changes)

    async def _alter(self, changes: Sequence[ScramChange]) -> Outcomes:
        outcomes = refuse_all(changes, self.credentials)
        after: dict[User, ScramCredential | None] = {}
        for change in changes:
            mechanism = ScramMechanism.numbered(change.mechanism)
            if outcomes[change.name] is None and mechanism is not None:
                new = change.credential(mechanism) if isinstance(change, Upsertion) else None
                after[change.name, mechanism] = new
        if after:
            stored: Changes = {
                SCRAM_CREDENTIALS + stored_key(user): encode_credential(user, credential)
                if credential
                else None
                for user, credential in after.items()
            }
            await self._writer.put(stored)
            self._show(after)
        return outcomes

    def _show(self, after: Mapping[User, ScramCredential | None]) -> None:
        self._iterations.clear()
        for user, credential in after.items():
            if credential is None:
                del self.credentials[user]
            else:
                self.credentials[user] = credential
