"""The line about a group's other side."""

from __future__ import annotations

import pytest

from kshim.upstream.elsewhere import other_side
from schemas.error_code import ErrorCode
from schemas.messages.describe_groups import DescribedGroup, DescribedGroupMember


def described(members: int, state: str = "Stable", error: ErrorCode = ErrorCode.NONE) -> DescribedGroup:
    named = (DescribedGroupMember(client_id=f"c{n}", client_host="/10.0.0.7") for n in range(members))
    return DescribedGroup(group_id="orders", group_state=state, members=tuple(named), error_code=error)


GIVE = "Both sides read the same partitions: give all members the same address."


@pytest.mark.parametrize(
    ("theirs", "known", "line"),
    [
        (described(0, "Empty"), True, ""),
        (described(0, "Dead"), True, ""),
        (described(0, "", ErrorCode.COORDINATOR_NOT_AVAILABLE), True, ""),
        (described(0, "", ErrorCode.COORDINATOR_NOT_AVAILABLE), False, ""),
        (described(0, "Dead"), False, ""),
        (described(1), True, f"It also has 1 member at the upstream itself: c0 at /10.0.0.7. {GIVE}"),
        (
            described(2),
            True,
            f"It also has 2 members at the upstream itself: c0 at /10.0.0.7, c1 at /10.0.0.7. {GIVE}",
        ),
        (
            described(1),
            False,
            "group orders is Stable at the upstream, and not known here: `kshim adopt orders` copies its "
            "offsets to kshim",
        ),
    ],
)
def test_a_line(theirs: DescribedGroup, line: str, *, known: bool) -> None:
    assert other_side(theirs, is_known=known) == line


def test_of_many_members_some_are_named() -> None:
    assert " c4 at /10.0.0.7 and others. Both" in other_side(described(9), is_known=True)
