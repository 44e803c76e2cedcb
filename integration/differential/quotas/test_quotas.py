"""Whom both limit, and how long they let them wait: by bytes, by time, by mutations, on each level."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from integration.differential.quotas.limited import (
    ME,
    Both,
    Client,
    Entity,
    History,
    Limited,
    fetching,
    new_name,
    of_both,
    producing,
    same,
)
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from schemas.messages.create_topics import CreatableTopic, CreateTopicsRequest
from schemas.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from schemas.messages.describe_cluster import DescribeClusterRequest
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.list_groups import ListGroupsRequest
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic
from schemas.messages.offset_commit import OffsetCommitRequest
from schemas.registry import VERSIONS

# ---- bytes


@pytest.mark.parametrize("version", [3, 8, 9, 12])
def test_a_producer_waits_by_the_bytes_that_it_has_sent(both: Both, version: int) -> None:
    topic, client_id = new_name("topic"), new_name("client")

    def play(limited: Limited) -> None:
        limited.create(topic)
        limited.set(([("client-id", client_id)], {"producer_byte_rate": 1000}))
        history = History()
        for size in (1_000, 9_500, 20, 300_000, 1):
            told = limited.ask(client_id, version, producing(topic, b"x" * size))
            history.check(told, told.size, 1000)
        assert limited.ask("other", version, producing(topic, b"x" * 10_000)).answer.throttle_time_ms == 0

    of_both(both, play)


@pytest.mark.parametrize("version", [4, 7, 11, 12])
def test_a_consumer_gets_nothing_while_it_must_wait(both: Both, version: int) -> None:
    topic, client_id = new_name("topic"), new_name("client")
    header_bytes = 5 if version >= 12 else 4

    def play(limited: Limited) -> list[Any]:
        limited.create(topic)
        limited.ask("admin", 9, producing(topic, b"x" * 6000))
        limited.set(([("client-id", client_id)], {"consumer_byte_rate": 1000}))
        size = limited.ask("admin", version, fetching(topic)).answered_size - header_bytes + 4
        history, seen = History(), []
        for _ in range(4):
            told = limited.ask(client_id, version, fetching(topic))
            history.check(told, size, 1000)
            answer = told.answer
            seen.append((answer.error_code, answer.session_id, len(answer.responses)))
            seen.append(answer.throttle_time_ms > 0)
        return seen

    assert same(both, play) == [(0, 0, 1), False] + [(0, 0, 0), True] * 3


def test_a_fetch_session_that_is_throttled(both: Both) -> None:
    topic, client_id = new_name("topic"), new_name("client")

    def play(limited: Limited) -> list[Any]:
        limited.create(topic)
        limited.ask("admin", 9, producing(topic, b"x" * 6000))
        limited.set(([("client-id", client_id)], {"consumer_byte_rate": 1000}))
        first = limited.ask(client_id, 12, fetching(topic, epoch=0)).answer
        limited.ask("admin", 9, producing(topic, b"x" * 6000))
        seen = []
        for epoch in (1, 2, 2):
            next_ = limited.ask(
                client_id, 12, fetching(topic, session_id=first.session_id, epoch=epoch)
            ).answer
            is_known = next_.session_id == first.session_id
            seen.append((next_.error_code, is_known, len(next_.responses), next_.throttle_time_ms > 0))
        anew = limited.ask(client_id, 12, fetching(topic, epoch=0)).answer
        return [*seen, (anew.error_code, anew.session_id, len(anew.responses), anew.throttle_time_ms > 0)]

    same(both, play)


# ---- who


LEVELS: list[Callable[[str], Entity]] = [
    lambda client_id: [("user", ME), ("client-id", client_id)],
    lambda client_id: [("user", ME), ("client-id", None)],
    lambda client_id: [("user", ME)],
    lambda client_id: [("user", None), ("client-id", client_id)],
    lambda client_id: [("user", None), ("client-id", None)],
    lambda client_id: [("user", None)],
    lambda client_id: [("client-id", client_id)],
    lambda client_id: [("client-id", None)],
]
RATES = [3**place for place in range(len(LEVELS))]


def test_the_most_particular_level_counts(both: Both) -> None:
    """All eight are set; then they are removed, one after the other."""
    topic, client_id = new_name("topic"), new_name("client")
    entities = [level(client_id) for level in LEVELS]
    told = [*(f"level {place}" for place in range(1, 9)), "none"]

    def level_of(limited: Limited, asking: str | None) -> str:
        """Compute the level from how the throttle time changes with the size."""
        first, second = (limited.ask(asking, 9, producing(topic, b"x" * size)) for size in (200_000, 200_000))
        if not second.answer.throttle_time_ms:
            return "none"
        more_ms = second.answer.throttle_time_ms - first.answer.throttle_time_ms
        nearest = min(RATES, key=lambda rate: abs(second.size * 1000 / rate - more_ms))
        return f"level {RATES.index(nearest) + 1}"

    def play(limited: Limited) -> list[tuple[str, ...]]:
        limited.create(topic)
        limited.set(
            *((entity, {"producer_byte_rate": rate}) for entity, rate in zip(entities, RATES, strict=True))
        )
        seen = []
        for entity in [*entities, None]:
            seen.append(tuple(level_of(limited, asking) for asking in (client_id, "other", "", None)))
            if entity is not None:
                limited.set((entity, {"producer_byte_rate": None}))
        return seen

    seen = same(both, play)
    assert [of_client for of_client, *_ in seen] == told


# ---- time


ANYTHING: dict[ApiKey, Any] = {
    ApiKey.API_VERSIONS: ApiVersionsRequest(client_software_name="x", client_software_version="1"),
    ApiKey.METADATA: MetadataRequest(topics=()),
    ApiKey.FIND_COORDINATOR: FindCoordinatorRequest(key="any", coordinator_keys=("any",)),
    ApiKey.LIST_GROUPS: ListGroupsRequest(),
    ApiKey.HEARTBEAT: HeartbeatRequest(group_id="no-such-group", member_id="m"),
    ApiKey.DESCRIBE_CLUSTER: DescribeClusterRequest(),
    ApiKey.OFFSET_COMMIT: OffsetCommitRequest(group_id="no-such-group", topics=()),
    ApiKey.CREATE_TOPICS: CreateTopicsRequest(topics=(), timeout_ms=1000),
    ApiKey.PRODUCE: producing("no-such-topic", b"x"),
    ApiKey.FETCH: fetching("no-such-topic"),
}


def test_any_request_counts_by_its_time(both: Both) -> None:
    """A time that is not zero is beyond the smallest percentage, and one sample is the longest wait."""
    client_id = new_name("client")

    def play(limited: Limited) -> list[Any]:
        limited.set(([("client-id", client_id)], {"request_percentage": 1e-9}))
        seen = []
        for api_key, request in ANYTHING.items():
            for version in VERSIONS[api_key]:
                answer = limited.ask(client_id, version, request).answer
                seen.append((api_key.name, version, answer.throttle_time_ms))
        return seen

    seen = same(both, play)
    assert {throttle_time_ms for *_, throttle_time_ms in seen} == {0, 1000}


def test_time_is_a_percentage_of_what_there_is(both: Both) -> None:
    client_id = new_name("client")

    def play(limited: Limited) -> int:
        limited.set(([("client-id", client_id)], {"request_percentage": 10_000}))
        told: int = limited.ask(client_id, 3, ANYTHING[ApiKey.FIND_COORDINATOR]).answer.throttle_time_ms
        return told

    assert same(both, play) == 0


# ---- mutations


def creating(*topics: tuple[str, int], validate_only: bool = False) -> CreateTopicsRequest:
    wanted = (CreatableTopic(name=name, num_partitions=count, replication_factor=1) for name, count in topics)
    return CreateTopicsRequest(topics=tuple(wanted), timeout_ms=10_000, validate_only=validate_only)


def mutations(topic: str) -> dict[ApiKey, tuple[Any, Any]]:
    """For each API, the request that takes all tokens, and the request after that."""

    def deleting(name: str) -> DeleteTopicsRequest:
        topics = (DeleteTopicState(name=name),)
        return DeleteTopicsRequest(topic_names=(name,), topics=topics, timeout_ms=10_000)

    def growing(name: str, count: int) -> CreatePartitionsRequest:
        grown = CreatePartitionsTopic(name=name, count=count, assignments=None)
        return CreatePartitionsRequest(topics=(grown,), timeout_ms=10_000)

    return {
        ApiKey.CREATE_TOPICS: (creating((f"{topic}-a", 14)), creating((f"{topic}-b", 3))),
        ApiKey.DELETE_TOPICS: (deleting(f"{topic}-14"), deleting(f"{topic}-3")),
        ApiKey.CREATE_PARTITIONS: (growing(f"{topic}-14", 28), growing(f"{topic}-3", 6)),
    }


@pytest.mark.parametrize(
    ("api_key", "version"),
    [(key, version) for key in mutations("") for version in VERSIONS[key]],
    ids=lambda value: value.name if isinstance(value, ApiKey) else f"v{value}",
)
def test_mutations_are_refused_or_wait(both: Both, api_key: ApiKey, version: int) -> None:
    topic, client_id = new_name("topic"), new_name("client")

    def play(limited: Limited) -> list[Any]:
        for count in (3, 14):
            limited.create(f"{topic}-{count}", count)
        limited.set(([("client-id", client_id)], {"controller_mutation_rate": 1}))
        seen: list[Any] = []
        owed, first_s = 3_000, 0.0
        for request in mutations(topic)[api_key]:
            told = limited.ask(client_id, version, request)
            (done,) = (
                getattr(told.answer, "topics", None)
                or getattr(told.answer, "responses", None)
                or told.answer.results
            )
            error = ErrorCode(done.error_code).name
            seen.append((error, getattr(done, "error_message", None)))
            throttle_ms = told.answer.throttle_time_ms
            seen.append(throttle_ms > 0)
            if first_s == 0.0:
                first_s = told.sent_s
            else:
                owed += 0 if error == "THROTTLING_QUOTA_EXCEEDED" else 3_000
            if throttle_ms:
                assert owed - (told.heard_s - first_s) * 1000 - 2 <= throttle_ms <= owed + 2
        return seen

    same(both, play)


def test_topics_of_one_request(both: Both) -> None:
    """The one that takes the last tokens may take more; those behind it are refused."""
    topic, client_id = new_name("topic"), new_name("client")

    def play(limited: Limited) -> list[str]:
        limited.set(([("client-id", client_id)], {"controller_mutation_rate": 1}))
        wanted = creating((f"{topic}-a", 5), (f"{topic}-b", 20), (f"{topic}-c", 1))
        checked = limited.ask(client_id, 7, creating((f"{topic}-a", 1), validate_only=True)).answer
        made = limited.ask(client_id, 7, wanted).answer
        late = limited.ask(client_id, 7, creating((f"{topic}-a", 1), (f"{topic}-d", 0))).answer
        return [ErrorCode(each.error_code).name for told in (checked, made, late) for each in told.topics]

    same(both, play)


def test_a_topic_that_metadata_may_not_make(both: Both) -> None:
    topic, client_id = new_name("topic"), new_name("client")

    def asking(*, create: bool) -> MetadataRequest:
        topics = (MetadataRequestTopic(name=topic),)
        return MetadataRequest(topics=topics, allow_auto_topic_creation=create)

    def play(limited: Limited) -> list[Any]:
        limited.set(([("client-id", client_id)], {"controller_mutation_rate": 0.1}))
        limited.ask(client_id, 7, creating((f"{topic}-a", 14)))
        seen = []
        for create in (True, False):
            answer = limited.ask(client_id, 9, asking(create=create)).answer
            seen.append((ErrorCode(answer.topics[0].error_code).name, answer.throttle_time_ms))
            refused = limited.ask(client_id, 7, creating((f"{topic}-b", 1))).answer
            seen.append((ErrorCode(refused.topics[0].error_code).name, refused.throttle_time_ms > 100_000))
        return seen

    same(both, play)


# ---- muting


def test_a_throttled_connection_is_muted(both: Both) -> None:
    """The answer comes at once; what is behind it on the connection waits, other connections do not."""
    topic, client_ids = new_name("topic"), (new_name("client"), new_name("client"))

    def play(limited: Limited) -> None:
        limited.create(topic)
        limited.set(*(([("client-id", each)], {"producer_byte_rate": 1000}) for each in client_ids))
        for acks, client_id in enumerate(client_ids):
            with Client(limited.server, client_id) as client, Client(limited.server, "other") as other:
                began_s = time.time()
                for _ in range(3):
                    client.send(9, producing(topic, b"x" * 3800, acks=acks))
                client.send(3, ANYTHING[ApiKey.FIND_COORDINATOR])
                other.told(3, ANYTHING[ApiKey.FIND_COORDINATOR])
                assert time.time() < began_s + 1
                throttle_ms = [client.response(9, ApiKey.PRODUCE).throttle_time_ms for _ in range(3 * acks)]
                client.response(3, ApiKey.FIND_COORDINATOR)
                waited_ms = (time.time() - began_s) * 1000
            assert waited_ms > 1000
            if acks:
                assert throttle_ms[:2] == [0, 0]
                assert throttle_ms[2] - 2 <= waited_ms <= throttle_ms[2] + 1000

    of_both(both, play)
