"""The commands in front of an upstream that differ from a local server's. Imported at the first command.

Brokers, leaders and records belong to the upstream, so no command stops or moves them.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import maybeDeferred

from kshim.control.commands import Command, Commands
from kshim.control.coordinators import Coordinators
from kshim.control.members import MemberSteering
from kshim.upstream.adoption import Adoption
from kshim.upstream.elsewhere import with_other_side
from kshim.upstream.ends import Ends
from kshim.upstream.group_ends import GroupEnds
from kshim.upstream.here import Here
from kshim.upstream.offset_steering import UpstreamOffsetSteering
from kshim.upstream.topics import Topics
from kshim.upstream.upstream_groups import UpstreamGroups


def new_commands(
    common: Commands,
    here: Here,
    merged: Here,
    leader: Callable[[int], int],
    upstream_groups: UpstreamGroups,
    topics: Topics,
    ends: Ends,
    group_ends: GroupEnds,
) -> Commands:
    """Return the commands by name. merged: like `here`, but with the groups of both sides."""
    coordinators = Coordinators(here, leader)
    deletion = MemberSteering(Coordinators(merged, leader)).commands()["delete-group"]
    return {
        "groups": _after_look(group_ends, common["groups"]),
        "why": with_other_side(common["why"], upstream_groups),
        "delete-group": deletion,
        **UpstreamOffsetSteering(here.cluster, here.groups, coordinators, topics, ends).commands(),
        **Adoption(upstream_groups.coordinators, coordinators).commands(),
    }


def _after_look(group_ends: GroupEnds, command: Command) -> Command:
    """Wrap a command, so that it first asks for the current ends of partitions."""

    async def run(*arguments: object) -> object:
        await group_ends.look()
        return await maybeDeferred(command.run, *arguments)

    return Command(run, command.types)
