"""Short names for members: their ids end in a UUID that nobody can tell apart at a glance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kshim.coordination.groups.rebalance_record import Who

ID_CHARACTERS = 8


def short_names(members: Iterable[Who]) -> Mapping[str, str]:
    """A name for each member id that no other of these members has: its instance id, else its client id, if
    need be with the beginning of what makes its id its own.
    """
    plain = {each.member_id: each.group_instance_id or each.client_id for each in members}
    alike: dict[str, list[str]] = {}
    for member_id, name in plain.items():
        alike.setdefault(name, []).append(member_id)
    return {
        member_id: name if name and len(alike[name]) == 1 else _longer(name, member_id, alike[name])
        for member_id, name in plain.items()
    }


def _longer(name: str, member_id: str, alike: Sequence[str]) -> str:
    beginning = len(name) + 1 + ID_CHARACTERS if name else ID_CHARACTERS
    is_enough = sum(each[:beginning] == member_id[:beginning] for each in alike) == 1
    return member_id[:beginning] if is_enough else member_id
