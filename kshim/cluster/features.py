"""The features of a cluster: their supported versions, and Kafka's refusals of changes (KIP-584).

Pure. transaction.version: a client that sees version 2 gets a new producer epoch for each transaction, and
leaves it to the broker to add partitions to it (KIP-890). A broker serves the older requests as well, so
clients go on when it is changed. group.version: 1 if groups of the consumer protocol are served (KIP-848).
kshim has none of Kafka's other features: share.version and streams.version stand for other kinds of groups;
kraft.version, metadata.version and eligible.leader.replicas.version stand for agreements within a quorum of
several machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

GROUP_VERSION: Final = "group.version"
TRANSACTION_VERSION: Final = "transaction.version"
SUPPORTED: Final[Mapping[str, range]] = {GROUP_VERSION: range(2), TRANSACTION_VERSION: range(3)}
"""The supported versions of each feature. A new cluster uses the last one."""
LATEST: Final[Mapping[str, int]] = {name: versions[-1] for name, versions in SUPPORTED.items()}


class UpgradeType(IntEnum):
    """The kinds of changes of a feature, of which a client allows one (KIP-778)."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """The new version of a feature; level 0 takes the feature out of use."""

    feature: str
    level: int
    upgrade_type: int
    """An UpgradeType, or any other number that a client sent."""


def fault_in_updates(
    updates: Iterable[FeatureUpdate], levels: Mapping[str, int], controller_id: int
) -> str | None:
    """Kafka's reason to refuse these updates, from the first refused one; None if all are right.

    levels: the versions in use.
    """
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
