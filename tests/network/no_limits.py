"""The limits of a broker whose configs are all at their defaults."""

from __future__ import annotations

from kshim.configs.config import PROPERTIES
from kshim.network.places import Limits


def no_limits(node_id: int) -> Limits:
    return lambda name: PROPERTIES[name].default
