"""Short names for members. Their ids end in a UUID, which people cannot compare at a glance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kshim.coordination.groups.rebalance_record import Who

ID_CHARACTERS = 8


def short_names(members: Iterable[Who]) -> Mapping[str, str]:
    """Return a unique name for each member, by member id: its instance id, else its client id.

    Members that would share a name get the beginning of their member ids instead, or all of it if need be.
    """
    plain = {each.member_id: each.group_instance_id or each.client_id for each in members}
    alike: dict[str, list[str]] = {}
    for member_id, name in plain.items():
        alike.setdefault(name, []).append(member_id)
    found: dict[str, str] = {}
    for name, member_ids in alike.items():
        found |= {member_ids[0]: name} if name and len(member_ids) == 1 else _longer(name, member_ids)
    return {member_id: found[member_id] for member_id in plain}


def _longer(name: str, member_ids: Sequence[str]) -> dict[str, str]:
    """Unique names for members that would all be called `name`, by member id. O(members)."""
    beginning = len(name) + 1 + ID_CHARACTERS if name else ID_CHARACTERS
    counts = Counter(member_id[:beginning] for member_id in member_ids)
    return {
        member_id: member_id[:beginning] if counts[member_id[:beginning]] == 1 else member_id
        for member_id in member_ids
    }
