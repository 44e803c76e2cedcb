"""The features of a cluster: which versions of each are supported, and when a change is refused (KIP-584).

Pure. The one feature is transaction.version: a client that sees version 2 gets a new producer epoch for each
transaction, and leaves it to the broker to add partitions to it (KIP-890). A broker serves the older requests
as well, so clients go on when it is changed. The other features of Kafka stand for what is not served:
group.version, share.version and streams.version for new kinds of groups, kraft.version, metadata.version and
eligible.leader.replicas.version for what a quorum of several machines agrees on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

TRANSACTION_VERSION: Final = "transaction.version"
SUPPORTED: Final[Mapping[str, range]] = {TRANSACTION_VERSION: range(3)}
"""The versions of each feature; those of a new cluster are the last ones."""
LATEST: Final[Mapping[str, int]] = {name: versions[-1] for name, versions in SUPPORTED.items()}


class UpgradeType(IntEnum):
    """What a client allows a change of a feature to be (KIP-778)."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """The version at which a feature is to be used; 0 takes it out of use."""

    feature: str
    level: int
    upgrade_type: int
    """An UpgradeType, or any other number that a client sent."""


def fault_in_updates(
    updates: Iterable[FeatureUpdate], levels: Mapping[str, int], controller_id: int
) -> str | None:
    """Why Kafka would refuse these updates, by the first that it refuses. levels: those in use."""
    for update in updates:
        fault = _fault(update, levels.get(update.feature, 0), controller_id)
        if fault is not None:
            return f"Invalid update version {update.level} for feature {update.feature}. {fault}"
    return None


def _fault(update: FeatureUpdate, current: int, controller_id: int) -> str | None:
    supported = SUPPORTED.get(update.feature)
    if update.upgrade_type not in list(UpgradeType):
        return "The controller does not support the given upgrade type."
    if update.level < 0:
        return "A feature version cannot be less than 0."
    if supported is None and update.level == 0:
        return f"Feature {update.feature} not found."
    if supported is None:
        return f"Local controller {controller_id} does not support this feature."
    if update.level not in supported:
        return f"Local controller {controller_id} only supports versions {supported[0]}-{supported[-1]}"
    if update.level < current and update.upgrade_type == UpgradeType.UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade."
        )
    if update.level > current and update.upgrade_type != UpgradeType.UPGRADE:
        return "Can't downgrade to a newer version."
    return None
