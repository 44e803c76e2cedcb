"""The configs of groups as the coordinator uses them."""

from __future__ import annotations

from collections.abc import Callable

from kshim.cluster.group_configs import GroupValues


class ValuesOfGroups:
    """Implements `GroupConfigs` over a function that returns a group's values at the broker `node_id`."""

    def __init__(self, values: Callable[[str, int], GroupValues], node_id: int) -> None:
        self._values_at = values
        self._node_id = node_id

    def at(self, node_id: int) -> ValuesOfGroups:
        """See `GroupConfigs`."""
        return ValuesOfGroups(self._values_at, node_id)

    def _values(self, group_id: str) -> GroupValues:
        return self._values_at(group_id, self._node_id)

    def session_timeout_ms(self, group_id: str) -> int:
        """See `GroupConfigs`."""
        return self._values(group_id).session_timeout_ms

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """See `GroupConfigs`."""
        return self._values(group_id).heartbeat_interval_ms

    def is_interval_set(self, group_id: str) -> bool:
        """See `GroupConfigs`."""
        return self._values(group_id).is_interval_set

    def assignment_interval_ms(self, group_id: str) -> int:
        """See `GroupConfigs`."""
        return self._values(group_id).assignment_interval_ms
