"""Reports a group's other side: it may have members at the upstream, or exist only there."""

from __future__ import annotations

from kshim.control.commands import Command
from kshim.control.long import Long
from kshim.upstream.upstream_groups import DESCRIBE, UpstreamGroups
from schemas.messages.describe_groups import DescribedGroup

DESCRIBED_IN = 5
MOST_MEMBERS = 5


def with_other_side(why: Command, upstream: UpstreamGroups) -> Command:
    """Return the command `why` with `elsewhere` added to its answer: a line, or an empty string."""

    async def run(group_id: str) -> Long:
        answer = why.run(group_id)
        assert isinstance(answer, Long)
        described: DescribedGroup = await upstream.ask(DESCRIBE, group_id, DESCRIBED_IN)
        elsewhere = other_side(described, is_known=answer.facts["now"] is not None)
        return answer._replace(facts={**answer.facts, "elsewhere": elsewhere})

    return Command(run, why.types)


def other_side(described: DescribedGroup, *, is_known: bool) -> str:
    """Describe the upstream's group of this name in a line; empty if there is nothing to say."""
    count = len(described.members)
    if not is_known:
        if described.error_code or described.group_state == "Dead":
            return ""
        return (
            f"group {described.group_id} is {described.group_state} at the upstream, and not known here: "
            f"`kshim adopt {described.group_id}` copies its offsets to kshim"
        )
    if not count:
        return ""
    shown = [f"{each.client_id or each.member_id} at {each.client_host}" for each in described.members]
    names = ", ".join(shown[:MOST_MEMBERS]) + (" and others" if count > MOST_MEMBERS else "")
    members = "1 member" if count == 1 else f"{count} members"
    return (
        f"It also has {members} at the upstream itself: {names}. Both sides read the same partitions: give "
        "all members the same address."
    )
