"""The latest changes of topics: a leader may join again because it has seen one."""

from __future__ import annotations

from collections.abc import Container

MOST_TOPICS = 10_000


class TopicChanges:
    """The last change of each topic. Soft state, shared by all shards."""

    def __init__(self) -> None:
        self._changes: dict[str, tuple[int, str]] = {}

    def note(self, topic: str, change: str, now_ms: int) -> None:
        """Note how a topic has changed, in words."""
        self._changes.pop(topic, None)
        self._changes[topic] = (now_ms, f"{topic} {change}")
        if len(self._changes) > MOST_TOPICS:
            del self._changes[next(iter(self._changes))]

    def changes_since(self, since_ms: int, topics: Container[str]) -> list[str]:
        """The last changes of some topics after `since_ms`, in words, sorted by the topics' names."""
        found: list[tuple[str, str]] = []
        for topic, (changed_ms, change) in reversed(self._changes.items()):
            if changed_ms <= since_ms:
                break
            if topic in topics:
                found.append((topic, change))
        return [change for _, change in sorted(found)]

    def change_since(self, topic: str, since_ms: int) -> str:
        """The last change of a topic, in words; empty if it has not changed after `since_ms`."""
        changed_ms, change = self._changes.get(topic, (since_ms, ""))
        return change if changed_ms > since_ms else ""
