"""The line about a group's other side."""

from __future__ import annotations

import pytest

from kshim.upstream.elsewhere import other_side
from kshim.upstream.there import GroupThere, MemberThere
from schemas.error_code import ErrorCode


def there(members: int, state: str = "Stable", error: ErrorCode = ErrorCode.NONE) -> GroupThere:
    return GroupThere(
        "orders", state, [MemberThere("m", f"c{n}", "/10.0.0.7") for n in range(members)], error
    )


GIVE = "Both sides read the same partitions: give all members the same address."


@pytest.mark.parametrize(
    ("theirs", "known", "line"),
    [
        (there(0, "Empty"), True, ""),
        (there(0, "Dead"), True, ""),
        (there(0, "", ErrorCode.COORDINATOR_NOT_AVAILABLE), True, ""),
        (there(0, "", ErrorCode.COORDINATOR_NOT_AVAILABLE), False, ""),
        (there(0, "Dead"), False, ""),
        (there(1), True, f"It also has 1 member at the upstream itself: c0 at /10.0.0.7. {GIVE}"),
        (
            there(2),
            True,
            f"It also has 2 members at the upstream itself: c0 at /10.0.0.7, c1 at /10.0.0.7. {GIVE}",
        ),
        (
            there(1),
            False,
            "group orders is Stable at the upstream, and not known here: `kshim adopt orders` copies its "
            "offsets to kshim",
        ),
    ],
)
def test_a_line(theirs: GroupThere, line: str, *, known: bool) -> None:
    assert other_side(theirs, is_known=known) == line


def test_of_many_members_some_are_named() -> None:
    assert " c4 at /10.0.0.7 and others. Both" in other_side(there(9), is_known=True)
