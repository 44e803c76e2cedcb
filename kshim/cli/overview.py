"""The rows about groups that `kshim groups` and `kshim top` show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kshim.recorder.scores import remarks
from kshim.recorder.story import listed, seconds

if TYPE_CHECKING:
    from kshim.control.overview import ListedGroup, ListedGroups


TITLES = ("Group", "State", "Members", "Lag", "Rebalances in 10 min", "Last rebalance", "Remarks")


def row(group: ListedGroup, now_ms: int) -> Sequence[str]:
    """The cells of one group's row, in the order of TITLES."""
    return (
        group["group_id"],
        group["state"],
        str(group["members"]),
        "-" if group["lag"] is None else f"{group['lag']:,}",
        "-" if group["scores"] is None else str(group["scores"]["rebalances"]),
        last_rebalance(group, now_ms),
        "; ".join(_remarks(group, now_ms)),
    )


def missing(known: ListedGroups) -> list[str]:
    """One line for each kshim whose groups are missing in the list."""
    return [
        f"the kshim at {each['kshim']} {each['why']}; its groups are missing here"
        for each in known.get("silent", ())
    ]


def last_rebalance(group: ListedGroup, now_ms: int) -> str:
    """How long ago the group's last rebalance ended, and its cause."""
    last = group["last"]
    return "-" if last is None else f"{_ago(now_ms - last['ended_ms'])} ago: {last['cause']}"


def _remarks(group: ListedGroup, now_ms: int) -> list[str]:
    """Remarks about what deserves a look now."""
    found = [] if group["scores"] is None else remarks(group["scores"])
    if not group["because"] or group["began_ms"] is None:
        return found
    waits = f", waits for {listed(group['waits_for'], most=2)}" if group["waits_for"] else ""
    return [f"rebalances for {seconds(now_ms - group['began_ms'])}{waits}", *found]


def _ago(ms: int) -> str:
    for unit, unit_ms in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000)):
        if ms >= unit_ms:
            return f"{ms // unit_ms} {unit}"
    return f"{max(ms, 0) // 1000} s"
