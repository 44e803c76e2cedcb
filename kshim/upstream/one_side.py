"""Keeps a group from having members at both sides, where kshim passes the consumer protocol on.

Members of the classic protocol are kshim's then, and those of the consumer protocol the upstream's. Both
would be given all partitions.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred

from kshim.coordination.groups.refusals import DescribeGroup
from kshim.upstream.here import own_context
from kshim.upstream.link import LinkError
from kshim.upstream.there import describe_there
from schemas.error_code import ErrorCode

if TYPE_CHECKING:
    from kshim.callers.once import Once
    from kshim.coordination.group_runtime import GroupRuntime
    from kshim.upstream.their_groups import TheirGroups
    from kshim.upstream.upstream_groups import UpstreamGroups

logger = logging.getLogger(__name__)


class UsedThere(Exception):
    """A group has members of the consumer protocol at the upstream."""


class OneSide:
    """Knows which side has a group."""

    def __init__(
        self, groups: GroupRuntime, upstream: UpstreamGroups, theirs: TheirGroups, once: Once
    ) -> None:
        """once: keeps log lines from being repeated."""
        self._groups = groups
        self._upstream = upstream
        self._theirs = theirs
        self._once = once

    def knows(self, group_id: str) -> bool | None:
        """Return True for a group that is kshim's, False for one that kshim does not have, and None if
        another process coordinates it, or its shard is loading.
        """
        return None if self.refusal(group_id) else self._groups.see(group_id) is not None

    def refusal(self, group_id: str) -> ErrorCode:
        """Return why this process does not answer for a group; NONE if it does."""
        return self._groups.refusal(own_context(), DescribeGroup(group_id))

    def before_classic_join(self, group_id: str, member_id: str) -> Deferred[None] | None:
        """Check that a group without members here has none at the upstream; None if that is known. Errbacks
        UsedThere, LinkError.
        """
        if not self._theirs.has_consumers or (member_id and group_id not in self._theirs):
            return None
        group = self._groups.see(group_id)
        if group is not None and group.members:
            return None
        return Deferred.fromCoroutine(self._check(group_id))

    async def _check(self, group_id: str) -> None:
        (there,) = await describe_there(self._upstream, (group_id,))
        if there.error and ErrorCode(there.error).retriable:
            raise LinkError(f"the upstream's group {group_id}: {ErrorCode(there.error).name}")
        if there.is_consumer and there.is_used:
            self._theirs.note(group_id)
            logger.log(
                self._once.level(("is there", group_id)),
                "group %s has members of the consumer protocol at the upstream, and members of the classic"
                " protocol are kshim's (upstream.groups.protocols): stop the former first",
                group_id,
            )
            raise UsedThere(group_id)
        self._theirs.forget(group_id)

    def is_taken(self, group_id: str) -> bool:
        """True if a member of the consumer protocol has gone to the upstream since the last check, and the
        group has no members here.
        """
        if not self._theirs.has_consumers or group_id not in self._theirs:
            return False
        group = self._groups.see(group_id)
        return group is None or not group.members
