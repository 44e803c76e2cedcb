"""What one server has given to the clients of a history: ids of topics, of producers and of fetch sessions.

Histories use symbols for these ids, and the symbols replace the ids again before answers are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from integration.differential.words.history import GROUP, NextSequence, Session, SessionEpoch, TopicId
from schemas.error_code import ErrorCode
from schemas.messages.fetch import FetchRequest, FetchResponse
from schemas.messages.produce import ProduceRequest, ProduceResponse
from schemas.records.batch import HEADER_BYTES, decode_header

UNKNOWN_TOPIC_ID = UUID(int=4711)
MADE_UP = 2**40
"""Producer ids from here on are made up; no server gave them."""


@dataclass
class Learned:
    """The ids, epochs and sequence numbers that a server gave or accepted."""

    topics: dict[str, list[UUID]] = field(default_factory=dict)
    """Each name's topic ids, in the order in which they were given."""
    producer_ids: list[int] = field(default_factory=list)
    """In the order in which they were given."""
    session_ids: list[int] = field(default_factory=list)
    """In the order in which they were given."""
    sessions: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Every client's fetch session and its next epoch."""
    sequences: dict[tuple[int, int, str, int], int] = field(default_factory=dict)
    """The next sequence number by producer id, epoch, topic and partition."""

    # ---- what the answers give

    def topic(self, name: str, topic_id: UUID) -> None:
        if topic_id.int and topic_id not in self.topics.setdefault(name, []):
            self.topics[name].append(topic_id)

    def producer(self, producer_id: int) -> None:
        if producer_id not in self.producer_ids:
            self.producer_ids.append(producer_id)

    def answer(self, client: str, request: Any, answer: Any) -> None:
        if isinstance(answer, FetchResponse) and isinstance(request, FetchRequest):
            self._session(client, request, answer)
        if isinstance(answer, ProduceResponse) and isinstance(request, ProduceRequest):
            self._sequences(request, answer)

    def _session(self, client: str, request: FetchRequest, answer: FetchResponse) -> None:
        if answer.session_id and answer.session_id not in self.session_ids:
            self.session_ids.append(answer.session_id)
        if answer.session_id and not answer.error_code:
            self.sessions[client] = answer.session_id, request.session_epoch + 1

    def _sequences(self, request: ProduceRequest, answer: ProduceResponse) -> None:
        """Keep the next sequence number of each partition whose batch was accepted."""
        accepted = {
            (each.name, each.topic_id, part.index)
            for each in answer.responses
            for part in each.partition_responses
            if part.error_code == ErrorCode.NONE
        }
        for topic in request.topic_data:
            for data in topic.partition_data:
                if (topic.name, topic.topic_id, data.index) not in accepted or data.records is None:
                    continue
                if len(data.records) < HEADER_BYTES:
                    continue
                header = decode_header(data.records)
                if header.producer_id >= 0:
                    name = topic.name or self.name_of(topic.topic_id)
                    place = header.producer_id, header.producer_epoch, name, data.index
                    self.sequences[place] = header.last_sequence + 1

    # ---- ids for the symbols in a request

    def given(
        self,
        symbol: TopicId | NextSequence | Session | SessionEpoch,
        group: str,
        producers: Mapping[str, tuple[int, int]],
    ) -> Any:
        """group: the history's group; producers: each owner's producer id and epoch."""
        match symbol:
            case TopicId(name, number):
                ids = self.topics.get(name.replace(GROUP, group), [])
                return ids[number - 1] if len(ids) >= max(number, 1) else UNKNOWN_TOPIC_ID
            case NextSequence(owner, topic, partition, later):
                producer = producers.get(owner, (-1, -1))
                return self.sequences.get((*producer, topic.replace(GROUP, group), partition), 0) + later
            case Session(owner):
                return self.sessions.get(owner, (0, 0))[0]
            case SessionEpoch(owner, later):
                return self.sessions.get(owner, (0, 0))[1] + later

    # ---- symbols for the ids in an answer

    def name_of(self, topic_id: UUID) -> str:
        return next((name for name, ids in self.topics.items() if topic_id in ids), "")

    def topic_names(self) -> dict[UUID, str]:
        return {
            topic_id: f"{name}#{number}"
            for name, ids in self.topics.items()
            for number, topic_id in enumerate(ids, 1)
        }

    def producer_name(self, producer_id: int) -> str | int:
        if producer_id <= 0 or producer_id >= MADE_UP:
            return producer_id
        known = producer_id in self.producer_ids
        return f"<producer {self.producer_ids.index(producer_id) + 1}>" if known else "<untold>"

    def session_name(self, session_id: int) -> str | int:
        known = session_id in self.session_ids
        return f"<session {self.session_ids.index(session_id) + 1}>" if known else session_id
