"""The configs of groups as the coordinator uses them."""

from __future__ import annotations

from kshim.cluster import Cluster
from kshim.coordination.groups.settings import WAITING_INTERVAL_MS


class ClusterGroupConfigs:
    """Implements `GroupConfigs` over the local cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._values = cluster.group_values

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
