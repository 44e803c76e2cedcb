"""Checks names of topics, with faults in Kafka's words."""

from __future__ import annotations

import re
from collections.abc import Iterable

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
MAX_NAME_LENGTH = 249  # "<topic>-<partition>.deleted" and the like must fit into a file name

GROUP_METADATA_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
COORDINATORS_TOPICS = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC})
INTERNAL_TOPICS = COORDINATORS_TOPICS | {"__share_group_state"}


def fault_in_name(name: str) -> str | None:
    """The fault in a topic name, in the words of Kafka's `Topic.validate`; None for a valid name."""
    if name == "":
        fault = "the empty string is not allowed"
    elif name in (".", ".."):
        fault = f"'{name}' is not allowed"
    elif len(name) > MAX_NAME_LENGTH:
        fault = f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    elif not _LEGAL.fullmatch(name):
        fault = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return None
    return f"Topic name is invalid: {fault}"


class MetricNames:
    """The topics by their names in metrics, where Kafka writes "." as "_"."""

    def __init__(self, topics: Iterable[str] = ()) -> None:
        self._topics: dict[str, dict[str, None]] = {}
        for name in topics:
            self.add(name)

    def add(self, name: str) -> None:
        self._topics.setdefault(name.replace(".", "_"), {})[name] = None

    def discard(self, name: str) -> None:
        found = self._topics.get(name.replace(".", "_"), {})
        found.pop(name, None)
        if not found:
            self._topics.pop(name.replace(".", "_"), None)

    def colliding(self, name: str) -> str | None:
        """Another topic whose name in metrics is that of `name`; None if there is none. O(1)."""
        found = self._topics.get(name.replace(".", "_"), {})
        return next((other for other in found if other != name), None)
