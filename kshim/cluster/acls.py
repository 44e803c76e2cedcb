"""The ACLs of a cluster. A new ACL is durable first, and then in force for every later request."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
from kshim.cluster.pause import Pause
from kshim.cluster.writer import Changes, Writer
from schemas.error_code import ErrorCode
from schemas.message import TooManyElements

if TYPE_CHECKING:
    from kshim.storage.interfaces import Metadata

MOST_AT_ONCE = 10_000
"""Most ACLs that one request may make or delete, as in Kafka."""
MOST_FOUND = 1_000_000
"""Most ACLs that the filters of a request may find together. An ACL counts once for each filter."""
NEW_ACL_US, SHOWN_ACL_US, FILTER_US = 20, 20, 5
SEARCHED_AT_ONCE, SEARCH_US = 1_000, 1_500

TOO_MANY = Refusal(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
TOO_MANY_REMOVED = Refusal(
    ErrorCode.INVALID_REQUEST, f"Cannot remove more than {MOST_AT_ONCE} acls in a single delete operation."
)


class Acls:
    """All ACLs, and the authorizer that applies them."""

    def __init__(self, writer: Writer, authorizer: Authorizer) -> None:
        self._writer = writer
        self.authorizer = authorizer
        self._all: dict[Acl, None] = {}  # exactly the durable ones
        self._by_name: dict[str, dict[Acl, None]] = {}
        """All ACLs, by the name of their pattern."""

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
        """A list of ACLs that includes all that the filter finds, looked up by name where it has one."""
        if wanted.name is None or wanted.pattern_type == PatternType.MATCH:
            return list(self._all)
        return list(self._by_name.get(wanted.name, ()))

    def create(self, acls: Sequence[Acl], pause: Pause) -> Deferred[list[Refusal | None]]:
        """Make or refuse each ACL, in one durable write. An ACL that exists already counts as made.

        Fires with a list: for each ACL a refusal, or None for success. Errbacks StorageError; then no ACL
        was made.
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
        """Store the ACLs that do not exist yet, and put them into force."""
        made = {acl: stored for acl, stored in wanted.items() if acl not in self._all}
        if made:
            changes: Changes = dict(made.values())
            await self._writer.put(changes)
            for acl in made:
                self._show(acl)
                await pause(SHOWN_ACL_US)

    def delete(self, filters: Sequence[AclFilter], pause: Pause) -> Deferred[list[list[Acl] | Refusal]]:
        """Delete the ACLs that the filters find, in one durable write.

        Fires with a list: for each filter the ACLs that it found, or a refusal. Errbacks StorageError, or
        TooManyElements if the filters find more than MOST_FOUND together; then no ACL was deleted. Other
        changes may be made during the search.
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
        if len(removed) < len(gone):  # another request has removed some meanwhile
            for wanted, found in by_filter.items():
                if not isinstance(found, Refusal):
                    by_filter[wanted] = list(filter(removed.__contains__, found))
        return [by_filter[wanted] for wanted in filters]

    async def _remove(self, wanted: Mapping[Acl, bytes], pause: Pause) -> Collection[Acl]:
        """Remove those of `wanted` that still exist, and return them."""
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
