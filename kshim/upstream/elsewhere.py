"""Reports a group's other side: it may have members at the upstream, or exist only there."""

from __future__ import annotations

from kshim.control.commands import Command
from kshim.control.long import Long
from kshim.upstream.there import GroupThere, describe_there
from kshim.upstream.upstream_groups import UpstreamGroups

MOST_MEMBERS = 5


def with_other_side(why: Command, upstream: UpstreamGroups, *, passes_consumers: bool) -> Command:
    """Return the command `why` with `elsewhere` added to its answer: a line, or an empty string.

    passes_consumers: True if groups of the consumer protocol are the upstream's.
    """

    async def run(group_id: str) -> Long:
        answer = why.run(group_id)
        assert isinstance(answer, Long)
        (there,) = await describe_there(upstream, (group_id,))
        is_known = answer.facts["now"] is not None
        elsewhere = other_side(there, is_known=is_known, passes_consumers=passes_consumers)
        return answer._replace(facts={**answer.facts, "elsewhere": elsewhere})

    return Command(run, why.types)


def other_side(there: GroupThere, *, is_known: bool, passes_consumers: bool = False) -> str:
    """Describe the upstream's group of this name in a line; empty if there is nothing to say."""
    count = len(there.members)
    if not is_known:
        if not there.exists:
            return ""
        if there.is_consumer and passes_consumers:
            return (
                f"group {there.group_id} is {there.state} at the upstream, which serves the groups of the "
                "consumer protocol: kshim passes them on (upstream.groups.protocols)"
            )
        return (
            f"group {there.group_id} is {there.state} at the upstream, and not known here: "
            f"`kshim adopt {there.group_id}` copies its offsets to kshim"
        )
    if not count:
        return ""
    shown = [f"{each.client_id or each.member_id} at {each.client_host}" for each in there.members]
    names = ", ".join(shown[:MOST_MEMBERS]) + (" and others" if count > MOST_MEMBERS else "")
    members = "1 member" if count == 1 else f"{count} members"
    return (
        f"It also has {members} at the upstream itself: {names}. Both sides read the same partitions: give "
        "all members the same address."
    )
