"""The ACLs of a cluster: durable before they are in force, and then for the next request of anybody."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from kshim.cluster.acl import Acl, AclFilter, decode_acl, encode_acl, refuse_acl, refuse_filter, stored_key
from kshim.cluster.authorizer import Authorizer
from kshim.cluster.checks import Refusal
from kshim.cluster.keys import ACL
from kshim.cluster.writer import Changes, Writer
from schemas.error_code import ErrorCode

if TYPE_CHECKING:
    from kshim.storage.interfaces import Metadata

Pause = Callable[[int], Awaitable[None]]
"""Takes what a step may have cost, in microseconds; others may be served before it goes on."""

MOST_AT_ONCE = 10_000
"""ACLs in one request, as in Kafka."""
NEW_ACL_US = 20
SEARCHED_AT_ONCE, SEARCH_US = 1_000, 1_500

TOO_MANY = Refusal(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")


class Acls:
    """All ACLs, and the authorizer that goes by them."""

    def __init__(self, writer: Writer, authorizer: Authorizer) -> None:
        self._writer = writer
        self.authorizer = authorizer
        self._all: dict[Acl, None] = {}  # exactly the durable ones

    def read(self, metadata: Metadata) -> None:
        for _, value in metadata.items(ACL):
            self._show(decode_acl(value))

    async def find(self, wanted: AclFilter, pause: Pause) -> list[Acl]:
        """The ACLs that a filter finds."""
        everything = list(self._all)
        found: list[Acl] = []
        for first in range(0, len(everything), SEARCHED_AT_ONCE):
            await pause(SEARCH_US)
            found += filter(wanted.finds, everything[first : first + SEARCHED_AT_ONCE])
        return found

    def create(self, acls: Sequence[Acl], pause: Pause) -> Deferred[list[Refusal | None]]:
        """Make each ACL or refuse it, in one durable write; one that exists is made already.

        Fires with a refusal, or None for success, for each. Errbacks StorageError; then none was made.
        """
        return self._writer.run(self._create, acls, pause)

    async def _create(self, acls: Sequence[Acl], pause: Pause) -> list[Refusal | None]:
        if len(acls) > MOST_AT_ONCE:
            return [TOO_MANY] * len(acls)
        outcome: list[Refusal | None] = []
        made: dict[Acl, bytes] = {}
        for acl in acls:
            await pause(NEW_ACL_US)
            outcome.append(refuse_acl(acl))
            if outcome[-1] is None and acl not in self._all and acl not in made:
                made[acl] = ACL + stored_key(acl)
        if made:
            changes: Changes = {key: encode_acl(acl) for acl, key in made.items()}
            await self._writer.put(changes)
            for acl in made:
                self._show(acl)
                await pause(NEW_ACL_US)
        return outcome

    def delete(self, filters: Sequence[AclFilter], pause: Pause) -> Deferred[list[list[Acl] | Refusal]]:
        """Delete what each filter finds, in one durable write. Fires with the ACLs, or why none was deleted,
        for each. Errbacks StorageError; then none was deleted.
        """
        return self._writer.run(self._delete, filters, pause)

    async def _delete(self, filters: Sequence[AclFilter], pause: Pause) -> list[list[Acl] | Refusal]:
        outcome: list[list[Acl] | Refusal] = []
        gone: dict[Acl, bytes] = {}
        for wanted in filters:
            refusal = refuse_filter(wanted)
            found = [] if refusal is not None else await self.find(wanted, pause)
            outcome.append(found if refusal is None else refusal)
            for acl in found:
                await pause(NEW_ACL_US)
                gone[acl] = ACL + stored_key(acl)
        if gone:
            await self._writer.put(dict.fromkeys(gone.values()))
            for acl in gone:
                del self._all[acl]
                self.authorizer.remove(acl)
                await pause(NEW_ACL_US)
        return outcome

    def _show(self, acl: Acl) -> None:
        self._all[acl] = None
        self.authorizer.add(acl)
