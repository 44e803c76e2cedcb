"""The configs of groups as the coordinator uses them."""

from __future__ import annotations

from collections.abc import Callable

from kshim.cluster.group_configs import GroupValues
from kshim.coordination.groups.settings import WAITING_INTERVAL_MS


class ValuesOfGroups:
    """Implements `GroupConfigs` over a function that returns a group's values."""

    def __init__(self, values: Callable[[str], GroupValues]) -> None:
        self._values = values

    def session_timeout_ms(self, group_id: str) -> int:
        """See `GroupConfigs`."""
        return self._values(group_id).session_timeout_ms

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """See `GroupConfigs`."""
        return self._values(group_id).heartbeat_interval_ms

    def waiting_interval_ms(self, group_id: str) -> int:
        """The interval that somebody has set; else a short one."""
        values = self._values(group_id)
        if values.is_interval_set:
            return values.heartbeat_interval_ms
        return min(values.heartbeat_interval_ms, WAITING_INTERVAL_MS)

    def assignment_interval_ms(self, group_id: str) -> int:
        """See `GroupConfigs`."""
        return self._values(group_id).assignment_interval_ms
