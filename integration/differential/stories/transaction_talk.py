"""A talk about transactions: producer ids become symbols, times are left out, and sets are sorted."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from integration.differential.stories.talk import Talk

FIRST_PRODUCE_BY_TOPIC_ID = 13
SETS = {
    *("transaction_states", "topics", "partitions", "markers"),
    *("topic_results", "results_by_topic_v3_and_below", "results_by_partition"),
}


class TransactionTalk(Talk):
    def __init__(self, host: str, port: int, story: str) -> None:
        super().__init__(host, port, story)
        self._producers: dict[int, str] = {-1: "-", 0: "<producer 0>"}

    def topic_name_or_id(self, topic: str, version: int) -> dict[str, Any]:
        """How Produce names a topic: by name or by id."""
        if version < FIRST_PRODUCE_BY_TOPIC_ID:
            return {"name": self.name(topic)}
        return {"topic_id": self.topic_ids.get(topic, UUID(int=4711))}

    def plain_field(self, entity: str, name: str, value: Any) -> Any:
        if name == "producer_id":
            return self._producers.setdefault(value, f"<producer {len(self._producers)}>")
        if name == "transaction_start_time_ms":
            return "<a time>" if value > 0 else value
        return "-" if name == "error_message" else super().plain_field(entity, name, value)

    def is_set(self, entity: str, name: str) -> bool:
        return name in SETS
