"""The assignors by the names that clients and `group.consumer.assignors` use."""

from __future__ import annotations

from kshim.coordination.groups.consumer.assignors.range_assignor import assign_ranges
from kshim.coordination.groups.consumer.assignors.spec import Assignor
from kshim.coordination.groups.consumer.assignors.uniform import assign_uniformly

ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniformly, "range": assign_ranges}
