"""The topics that groups have to do with: learned when named, looked at again, forgotten when deleted."""

from __future__ import annotations

from uuid import UUID

import pytest
from twisted.internet.defer import Deferred

from kshim.upstream.learning import AT_ONCE, UNDER_WAY
from kshim.upstream.link import LinkError
from kshim.upstream.topics import ABSENT_S, LOOK_S
from schemas.messages.metadata import (
    MetadataResponse,
)
from tests.api.harness import result
from tests.upstream.known_topics import A, B, Upstream


def test_a_topic_is_learned_once() -> None:
    upstream = Upstream()
    upstream.topics["a"] = A, 3
    assert upstream.known.missing(["a", "b"]) == ["a", "b"]
    assert result(upstream.known.learn(["a", "b"])) is None
    assert [p.index for p in upstream.known.by_name["a"].partitions] == [0, 1, 2]
    assert upstream.known.by_id[A] is upstream.known.by_name["a"]
    assert upstream.known.missing(["a", A, UUID(int=0)]) == []


def test_one_that_is_absent_is_not_asked_for_again_at_once() -> None:
    upstream = Upstream()
    result(upstream.known.learn(["b"]))
    assert upstream.known.missing(["b"]) == []
    upstream.clock.advance(ABSENT_S)
    assert upstream.known.missing(["b"]) == ["b"]
    upstream.topics["b"] = B, 1
    result(upstream.known.learn(["b"]))
    assert "b" in upstream.known.by_name


def test_a_name_that_no_topic_may_have_is_not_asked_for() -> None:
    assert Upstream().known.missing(["a" * 249, "b" * 250, "c" * 32_767]) == ["a" * 249]


def test_ids_and_names_are_asked_for_apart() -> None:
    upstream = Upstream()
    upstream.topics.update(a=(A, 1), b=(B, 1))
    result(upstream.known.learn(["a", B, UUID(int=99)]))
    assert set(upstream.known.by_name) == {"a", "b"}
    assert [[topic.name for topic in request.topics or ()] for request in upstream.asked] == [
        ["a"],
        [None] * 2,
    ]


def test_what_is_wanted_meanwhile_is_asked_for_together() -> None:
    upstream = Upstream()
    upstream.topics.update(a=(A, 1), b=(B, 1))
    upstream.waiting = []
    first = [upstream.known.learn(["a"]) for _ in range(UNDER_WAY)]
    others = [upstream.known.learn(["b"]), upstream.known.learn(["b", "c"])]
    upstream.waiting.pop(0).callback(MetadataResponse())
    assert [each.called for each in (*first, *others)] == [True, False, False, False]
    assert [topic.name for topic in upstream.asked[UNDER_WAY].topics or ()] == ["b", "c"]
    upstream.waiting.pop().callback(MetadataResponse())
    assert all(other.called for other in others)
    assert len(upstream.asked) == UNDER_WAY + 1


def test_many_are_asked_for_in_pieces() -> None:
    upstream = Upstream()
    result(upstream.known.learn([f"t{n}" for n in range(AT_ONCE + 1)]))
    assert [len(request.topics or ()) for request in upstream.asked] == [AT_ONCE, 1]


def test_an_upstream_that_is_down_is_said_and_asked_again() -> None:
    upstream = Upstream()
    upstream.is_down = True
    upstream.topics["a"] = A, 1
    with pytest.raises(LinkError):
        result(upstream.known.learn(["a"]))
    upstream.is_down = False
    assert upstream.known.missing(["a"]) == ["a"]
    result(upstream.known.learn(["a"]))
    assert "a" in upstream.known.by_name


def test_new_partitions_are_seen() -> None:
    upstream = Upstream()
    upstream.topics["a"] = A, 1
    result(upstream.known.learn(["a"]))
    upstream.known.start()
    upstream.topics["a"] = A, 4
    upstream.clock.advance(LOOK_S)
    assert len(upstream.known.by_name["a"].partitions) == 4
    assert upstream.told == [("a", "has 4 partitions, and had 1")]
    upstream.known.stop()
    assert not upstream.clock.getDelayedCalls()


def test_leaders_and_replicas_are_as_at_the_last_look() -> None:
    upstream = Upstream()
    upstream.topics["a"] = A, 2
    result(upstream.known.learn(["a"]))
    before = upstream.known.by_name["a"].partitions
    upstream.leader = 2
    result(Deferred.fromCoroutine(upstream.known.look()))
    after = upstream.known.by_name["a"].partitions
    assert [(each.leader, each.replicas, each.isr) for each in (*before, *after)] == [
        *((1, (1, 2), (1,)),) * 2,
        *((2, (1, 2), (2,)),) * 2,
    ]
    assert [each.partition_no for each in after] == [each.partition_no for each in before]
    assert upstream.told == []


def test_partitions_do_not_go_where_a_broker_is_behind() -> None:
    upstream = Upstream()
    upstream.topics["a"] = A, 2
    result(upstream.known.learn(["a"]))
    upstream.topics["a"] = A, 1
    result(Deferred.fromCoroutine(upstream.known.look()))
    assert len(upstream.known.by_name["a"].partitions) == 2
    assert upstream.told == []


def test_a_topic_is_deleted_when_it_is_missed_twice() -> None:
    upstream = Upstream()
    upstream.topics["a"] = A, 1
    result(upstream.known.learn(["a"]))
    upstream.known.start()
    for is_there in (False, True, False):
        upstream.topics = {"a": (A, 1)} if is_there else {}
        upstream.clock.advance(LOOK_S)
        assert upstream.deleted == []
    upstream.is_down = True
    upstream.clock.advance(LOOK_S)
    assert upstream.deleted == []
    upstream.is_down = False
    upstream.clock.advance(LOOK_S)
    assert upstream.deleted == ["a"]
    assert upstream.told == [("a", "was deleted")]
    assert not upstream.known.by_name
    assert not upstream.known.by_id


def test_a_topic_that_is_made_anew_was_deleted() -> None:
    upstream = Upstream()
    upstream.topics["a"] = A, 2
    result(upstream.known.learn(["a"]))
    upstream.topics["a"] = B, 2
    upstream.known.start()
    upstream.clock.advance(LOOK_S)
    assert upstream.deleted == ["a"]
    assert set(upstream.known.by_id) == {B}


def test_a_broker_that_is_behind_brings_no_topic_back() -> None:
    upstream = Upstream()
    upstream.topics["a"] = A, 2
    result(upstream.known.learn(["a"]))
    for topic_id in (B, A, B):
        upstream.topics["a"] = topic_id, 2
        result(Deferred.fromCoroutine(upstream.known.look()))
        assert upstream.known.id_of("a") == B
    assert upstream.deleted == ["a"]


def test_a_topic_that_was_missed_comes_back_with_its_id() -> None:
    """The brokers that were asked may have been behind."""
    upstream = Upstream()
    upstream.topics["a"] = A, 2
    result(upstream.known.learn(["a"]))
    upstream.topics.clear()
    for _ in range(2):
        result(Deferred.fromCoroutine(upstream.known.look()))
    assert upstream.known.id_of("a").int == 0
    upstream.topics["a"] = A, 2
    result(upstream.known.learn(["a"]))
    assert upstream.known.id_of("a") == A
