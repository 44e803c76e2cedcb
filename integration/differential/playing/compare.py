"""Where two servers' answers to one history differ, once everything that varies from run to run is replaced.

Each member id becomes the name of its owner, if it has the right form (client or instance id, then a UUID),
even where the owner has not been told the id yet. Producer and session ids become numbers in the order in
which they were given, topic ids their topics' names, recent times "<now>", the server's own address "this
server", and throttle_time_ms 0. Records are decoded. Arrays whose order means nothing are sorted.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from integration.differential.playing.learned import UNKNOWN_TOPIC_ID
from integration.differential.playing.plain import Plain
from integration.differential.playing.player import Asked, Transcript
from integration.differential.words import batches
from integration.differential.words.history import GROUP, Ask, Pause, Step, tolerated
from schemas.messages.offset_fetch import OffsetFetchRequest

UUID_AT_END = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")
SETS = {
    ("JoinGroupResponse", "members"),
    ("DescribeGroupsResponse", "groups"),
    ("DescribedGroup", "members"),
    ("ListGroupsResponse", "groups"),
    ("DeleteGroupsResponse", "results"),
    ("AddPartitionsToTxnResponse", "results_by_topic_v3_and_below"),
    ("AddPartitionsToTxnTopicResult", "results_by_partition"),
    ("AddPartitionsToTxnResult", "topic_results"),
    ("ListTransactionsResponse", "transaction_states"),
    ("TransactionState", "topics"),
    ("TopicData", "partitions"),
    ("WritableTxnMarkerResult", "topics"),
    ("WritableTxnMarkerTopicResult", "partitions"),
    ("WriteTxnMarkersResponse", "markers"),
    ("PartitionResponse", "active_producers"),
    ("ProduceResponse", "responses"),
    ("TopicProduceResponse", "partition_responses"),
    ("ListOffsetsResponse", "topics"),
    ("ListOffsetsTopicResponse", "partitions"),
    ("DeleteRecordsResponse", "topics"),
    ("DeleteRecordsTopicResult", "partitions"),
    ("DescribeConfigsResult", "configs"),
    ("CreatableTopicResult", "configs"),
    ("ListConfigResourcesResponse", "config_resources"),
    ("MetadataResponse", "topics"),
    ("MetadataResponseTopic", "partitions"),
    ("DescribeUserScramCredentialsResponse", "results"),
    ("CreateTopicsResponse", "topics"),
    ("DeleteTopicsResponse", "responses"),
    ("CreatePartitionsResponse", "results"),
    ("DescribeLogDirsResult", "topics"),
    ("DescribeLogDirsTopic", "partitions"),
}
SETS_WHEN_ALL_ARE_ASKED_FOR = {
    ("OffsetFetchResponse", "topics"),
    ("OffsetFetchResponseTopic", "partitions"),
    ("OffsetFetchResponseGroup", "topics"),
    ("OffsetFetchResponseTopics", "partitions"),
}

OF_A_MACHINE = {
    "cluster_id": "this cluster",
    "log_dir": "somewhere",
    "total_bytes": "large",
    "usable_bytes": "large",
}
TOPIC = 2
"""A resource type."""
OFFSETS_TOPIC = "__consumer_offsets"
TIMES = {"timestamp", "log_append_time_ms", "last_timestamp", "transaction_start_time_ms"}
NAMES_OF_LISTED = {
    "ListedGroup": "group_id",
    "OngoingTopicReassignment": "name",
    "DescribeLogDirsTopic": "name",
}
"""Listed items that may belong to another history, and the field that names them."""


@dataclass(frozen=True)
class Difference:
    """One step that the servers answered differently."""

    number: int
    step: Step
    version: int
    fields: tuple[str, ...]
    """The paths of the fields that differ."""
    apache_kafka: Any
    kshim: Any
    key: str = ""
    """The key of a meant difference that a rule has found; "" if the step names it, or none is meant."""

    @property
    def tolerated(self) -> str:
        return self.key or tolerated(self.step)

    def __str__(self) -> str:
        lines = [
            f"step {self.number}: {_told(self.step, self.version)}",
            f"    Apache Kafka: {self.apache_kafka}",
            f"    kshim:        {self.kshim}",
            f"    differs in:   {', '.join(self.fields)}",
        ]
        return "\n".join(lines)


def differences(steps: Sequence[Step], apache_kafka: Transcript, kshim: Transcript) -> list[Difference]:
    """All differences, tolerated or not."""
    found = []
    for number, step in enumerate(steps):
        expected, got = _plain_step(apache_kafka, number), _plain_step(kshim, number)
        if fields := tuple(_paths(expected, got)):
            asked = apache_kafka.seen[number]
            version = asked.version if isinstance(asked, Asked) else 0
            found.append(Difference(number, step, version, fields, expected, got))
    return found


def in_part(found: Iterable[Difference], part: Callable[[Any], Any]) -> list[Difference]:
    """The differences that are left if only a part of each answer counts."""
    smaller = (
        dataclasses.replace(each, apache_kafka=part(each.apache_kafka), kshim=part(each.kshim))
        for each in found
    )
    return [each for each in smaller if each.apache_kafka != each.kshim]


def without_configs(value: Any, names: Collection[str]) -> Any:
    """An answer without the configs of these names."""
    if isinstance(value, list):
        return [without_configs(each, names) for each in value if not _is_one_of(names, each)]
    if isinstance(value, dict):
        return {name: without_configs(each, names) for name, each in value.items()}
    return value


def _is_one_of(names: Collection[str], value: Any) -> bool:
    return isinstance(value, dict) and value.get("name") in names


def transcript_text(steps: Sequence[Step], transcript: Transcript) -> str:
    """The whole history, as one server answered it."""
    lines = []
    for number, step in enumerate(steps):
        seen = transcript.seen[number]
        lines.append(f"{number}: {_told(step, seen.version if isinstance(seen, Asked) else 0)}")
        lines.append(f"    {_plain_step(transcript, number)}")
    return "\n".join(lines)


def _told(step: Step, version: int) -> str:
    if isinstance(step, Ask):
        waits = "" if step.wait else ", not waited for"
        return f"{step.connection} sends {step.api_key.name} v{version}{waits}: {step.request}"
    return f"pause {step.ms} ms, then who waits?" if isinstance(step, Pause) else str(step)


def _plain_step(transcript: Transcript, number: int) -> Any:
    seen = transcript.seen[number]
    if isinstance(seen, Asked):
        if not seen.is_answered.is_set():
            return "no answer"
        all_asked = isinstance(seen.step.request, OffsetFetchRequest) and seen.step.request.topics is None
        sets = SETS | SETS_WHEN_ALL_ARE_ASKED_FOR if all_asked else SETS
        return Compared(transcript, sets).plain(seen.answer)
    return sorted(seen) if seen is not None else None


class Compared(Plain):
    """The answers of one server in one history, without what varies from run to run.

    sets: fields whose order means nothing; by_chance: fields whose value means nothing.
    """

    def __init__(
        self, transcript: Transcript, sets: set[tuple[str, str]], by_chance: Collection[tuple[str, str]] = ()
    ) -> None:
        self.sets = sets
        self.by_chance = by_chance
        self.group = transcript.group
        self.target = transcript.target
        self.names = {
            member_id: f"<{owner} {number}>"
            for owner in transcript.given
            for number, member_id in enumerate(transcript.ids(owner), 1)
        }
        self.learned = transcript.learned
        self.topics = {id: name for name, id in transcript.target.topic_ids.items()}
        self.topics |= {UNKNOWN_TOPIC_ID: "unknown", UUID(int=0): ""}
        self.topics |= {id: self.plain(name) for id, name in transcript.learned.topic_names().items()}

    def plain(self, value: Any) -> Any:
        if getattr(value, "topic", "") == OFFSETS_TOPIC and hasattr(value, "partitions"):
            value = dataclasses.replace(value, partitions=("that of the group",) * len(value.partitions))
        return super().plain(value)

    def plain_id(self, value: UUID) -> Any:
        return self.topics.get(value, "an id that nobody was told")

    def plain_text(self, value: str) -> str:
        return UUID_AT_END.sub(self.names.get(value, "<untold>"), value.replace(self.group, GROUP))

    def plain_field(self, entity: str, name: str, value: Any) -> Any:
        if (entity, name) in self.by_chance:
            return "any"
        if name == "producer_id":
            return self.learned.producer_name(value)
        if name == "session_id":
            return self.learned.session_name(value)
        if name in TIMES:
            return batches.moment(value)
        if name == "records" and value is not None:
            return batches.told(value, batches.moment, self.learned.producer_name)
        if name == "documentation":
            return bool(value)
        if name in OF_A_MACHINE:
            return OF_A_MACHINE[name]
        if (name, value) in (("host", self.target.host), ("port", self.target.port)):
            return "this server"
        return super().plain_field(entity, name, value)

    def is_foreign(self, item: Any) -> bool:
        """True if the item is of another history, and is listed only because the request asks for all."""
        if type(item).__name__ == "ConfigResource" and item.resource_type == TOPIC:
            return not item.resource_name.startswith(self.group)
        name = NAMES_OF_LISTED.get(type(item).__name__)
        return name is not None and not getattr(item, name).startswith(self.group)


def _paths(expected: Any, got: Any, path: str = "") -> Iterator[str]:
    """The paths at which two plain values differ."""
    if isinstance(expected, dict) and isinstance(got, dict) and expected.keys() == got.keys():
        for key in expected:
            yield from _paths(expected[key], got[key], f"{path}.{key}".lstrip("."))
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for index, (one, other) in enumerate(zip(expected, got, strict=True)):
            yield from _paths(one, other, f"{path}[{index}]")
    elif expected != got:
        yield path or "the whole"
