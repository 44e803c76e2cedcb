"""The requests with which an administrator causes events in a group; see `steering`."""

from __future__ import annotations

from typing import NamedTuple


class ForceRebalance(NamedTuple):
    """An administrator's request that a group rebalances. The reply is an error code."""

    group_id: str


class ExpireMember(NamedTuple):
    """An administrator's request that a member's session ends. The reply is an error code."""

    group_id: str
    member_id: str


class FenceMember(NamedTuple):
    """An administrator's request to fence a static member. The reply is an error code."""

    group_id: str
    group_instance_id: str
