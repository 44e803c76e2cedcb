"""Cordoned log directories (KIP-1066): a broker that has all its directories cordoned takes no new replicas.

A broker of kshim has one directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kshim.cluster.broker_configs import BrokerConfigs, broker_text
from kshim.configs import java
from kshim.configs.config import IN_MEMORY

NAME = "cordoned.log.dirs"
ALL = "*"
DOC = (
    "The directories that take no new replicas: log.dirs, or * for all. New topics and partitions go to "
    "other brokers."
)


def fault_in_cordoned(dynamic: Mapping[str, str], broker: BrokerConfigs) -> str | None:
    """The fault in the value that is to be set at run time, in Kafka's words; None if there is none.

    dynamic: all configs of `broker` that are to be set at run time.
    """
    cordoned = java.items(java.trim(dynamic.get(NAME, "")))
    if ALL in cordoned:
        if len(cordoned) == 1:
            return None
        return f"requirement failed: When {NAME} is set to *, it must not contain other values"
    known = _directories(broker)
    missing = ", ".join(each for each in cordoned if each not in known)
    if not missing:
        return None
    return (
        f"requirement failed: All entries in {NAME} must be present in log.dirs or log.dir. "
        f"Missing entries : {missing}"
    )


def is_cordoned(broker: BrokerConfigs) -> bool:
    """True if the configs of a broker cordon its directory."""
    setting = next(broker.settings([NAME]), None)
    if setting is None:
        return False
    known = {ALL, *_directories(broker)}
    return not known.isdisjoint(java.items(java.trim(setting.text)))


def _directories(broker: BrokerConfigs) -> tuple[str, str]:
    """The names of a broker's directory: as it was set, and as clients see it."""
    text = broker_text("log.dirs", broker)
    return text, text if text == IN_MEMORY else str(Path(text).absolute())
