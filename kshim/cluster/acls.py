"""The ACLs of a cluster: durable before they are in force, and then for the next request of anybody."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from kshim.cluster.acl import (
    Acl,
    AclFilter,
    PatternType,
    decode_acl,
    encode_acl,
    refuse_acl,
    refuse_filter,
    stored_key,
)
from kshim.cluster.authorizer import Authorizer
from kshim.cluster.checks import Refusal
from kshim.cluster.keys import ACL
from kshim.cluster.writer import Changes, Writer
from schemas.error_code import ErrorCode
from schemas.message import TooManyElements

if TYPE_CHECKING:
    from kshim.storage.interfaces import Metadata

Pause = Callable[[int], Awaitable[None]]
"""Takes what a step may have cost, in microseconds; others may be served before it goes on."""

MOST_AT_ONCE = 10_000
"""ACLs that one request makes or deletes, as in Kafka."""
MOST_FOUND = 1_000_000
"""ACLs that all filters of a request find, those counted again that several find."""
NEW_ACL_US, SHOWN_ACL_US, FILTER_US = 20, 20, 5
SEARCHED_AT_ONCE, SEARCH_US = 1_000, 1_500

TOO_MANY = Refusal(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
TOO_MANY_REMOVED = Refusal(
    ErrorCode.INVALID_REQUEST, f"Cannot remove more than {MOST_AT_ONCE} acls in a single delete operation."
)


class Acls:
    """All ACLs, and the authorizer that goes by them."""

    def __init__(self, writer: Writer, authorizer: Authorizer) -> None:
        self._writer = writer
        self.authorizer = authorizer
        self._all: dict[Acl, None] = {}  # exactly the durable ones
        self._by_name: dict[str, dict[Acl, None]] = {}
        """The same ACLs by the names of their patterns."""

    def read(self, metadata: Metadata) -> None:
        for _, value in metadata.items(ACL):
            self._show(decode_acl(value))

    async def find(self, wanted: AclFilter, pause: Pause) -> list[Acl]:
        """The ACLs that a filter finds."""
        candidates = self._candidates(wanted)
        found: list[Acl] = []
        for first in range(0, len(candidates), SEARCHED_AT_ONCE):
            some = candidates[first : first + SEARCHED_AT_ONCE]
            await pause(SEARCH_US * len(some) // SEARCHED_AT_ONCE)
            found += filter(wanted.finds, some)
        return found

    def _candidates(self, wanted: AclFilter) -> list[Acl]:
        """The ACLs among which are all that a filter finds."""
        if wanted.name is None or wanted.pattern_type == PatternType.MATCH:
            return list(self._all)
        return list(self._by_name.get(wanted.name, ()))

    def create(self, acls: Sequence[Acl], pause: Pause) -> Deferred[list[Refusal | None]]:
        """Make each ACL or refuse it, in one durable write; one that exists is made already.

        Fires with a refusal, or None for success, for each. Errbacks StorageError; then none was made.
        """
        return Deferred.fromCoroutine(self._create(acls, pause))

    async def _create(self, acls: Sequence[Acl], pause: Pause) -> list[Refusal | None]:
        if len(acls) > MOST_AT_ONCE:
            return [TOO_MANY] * len(acls)
        outcome: list[Refusal | None] = []
        wanted: dict[Acl, tuple[bytes, bytes]] = {}
        for acl in acls:
            await pause(NEW_ACL_US)
            outcome.append(refuse_acl(acl))
            if outcome[-1] is None:
                wanted[acl] = ACL + stored_key(acl), encode_acl(acl)
        if wanted:
            await self._writer.run(self._add, wanted, pause)
        return outcome

    async def _add(self, wanted: Mapping[Acl, tuple[bytes, bytes]], pause: Pause) -> None:
        """Store and show the ACLs that do not exist."""
        made = {acl: stored for acl, stored in wanted.items() if acl not in self._all}
        if made:
            changes: Changes = dict(made.values())
            await self._writer.put(changes)
            for acl in made:
                self._show(acl)
                await pause(SHOWN_ACL_US)

    def delete(self, filters: Sequence[AclFilter], pause: Pause) -> Deferred[list[list[Acl] | Refusal]]:
        """Delete what each filter finds, in one durable write. Fires with the ACLs, or why none was deleted,
        for each. Errbacks StorageError, or TooManyElements if they find more than MOST_FOUND together; then
        none was deleted.

        Other changes are made while the filters are searched for.
        """
        return Deferred.fromCoroutine(self._delete(filters, pause))

    async def _delete(self, filters: Sequence[AclFilter], pause: Pause) -> list[list[Acl] | Refusal]:
        by_filter: dict[AclFilter, list[Acl] | Refusal] = {}
        gone: dict[Acl, bytes] = {}
        left = MOST_FOUND
        for wanted in filters:
            await pause(FILTER_US)
            found = by_filter.get(wanted)
            is_new = found is None
            if found is None:
                found = by_filter[wanted] = refuse_filter(wanted) or await self.find(wanted, pause)
            if isinstance(found, Refusal):
                continue
            left -= len(found)
            if left < 0:
                raise TooManyElements
            for acl in found if is_new else found[:1]:
                if len(gone) >= MOST_AT_ONCE:
                    return [TOO_MANY_REMOVED] * len(filters)
                if acl not in gone:
                    await pause(NEW_ACL_US)
                    gone[acl] = ACL + stored_key(acl)
        removed = await self._writer.run(self._remove, gone, pause) if gone else gone
        if len(removed) < len(gone):  # others have removed some meanwhile
            for wanted, found in by_filter.items():
                if not isinstance(found, Refusal):
                    by_filter[wanted] = list(filter(removed.__contains__, found))
        return [by_filter[wanted] for wanted in filters]

    async def _remove(self, wanted: Mapping[Acl, bytes], pause: Pause) -> Collection[Acl]:
        """Remove the ACLs that exist, and return these."""
        gone = {acl: key for acl, key in wanted.items() if acl in self._all}
        if gone:
            await self._writer.put(dict.fromkeys(gone.values()))
        for acl in gone:
            del self._all[acl]
            named = self._by_name[acl.pattern.name]
            del named[acl]
            if not named:
                del self._by_name[acl.pattern.name]
            self.authorizer.remove(acl)
            await pause(SHOWN_ACL_US)
        return gone

    def _show(self, acl: Acl) -> None:
        self._all[acl] = None
        self._by_name.setdefault(acl.pattern.name, {})[acl] = None
        self.authorizer.add(acl)
