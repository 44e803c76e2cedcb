"""What `kshim check` says about the records of consumer groups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from kshim.check.consumer_groups import ConsumerGroupsCheck
from kshim.coordination.groups.records import decode_record
from schemas.internal_topics.consumer_group_log import (
    ConsumerGroupMetadataValue,
)
from schemas.internal_topics.group_metadata_log import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey
from schemas.message import MalformedMessage
from tests.check.sound_group import (
    EPOCH,
    REGEX,
    SOUND,
    TARGET_EPOCH,
    TOPIC_ID,
    Records,
    current,
    current_key,
    member,
    member_key,
    target,
    target_key,
)
from tests.simulation.consumer_groups.run import Play


def checked(records: Iterable[tuple[Any, Any]]) -> list[str]:
    check = ConsumerGroupsCheck()
    for key, value in records:
        check.replay(key, value)
    return list(check.faults())


def test_a_sound_group() -> None:
    assert checked(SOUND.items()) == []


def test_a_group_that_was_deleted() -> None:
    order = (current_key, target_key)
    tombstones = [key(each) for key in order for each in ("a", "b")]
    tombstones += [TARGET_EPOCH, member_key("a"), member_key("b"), REGEX, EPOCH]
    assert checked([*SOUND.items(), *((key, None) for key in tombstones)]) == []


@pytest.mark.parametrize(
    ("lost", "fault"),
    [
        (EPOCH, "its target is of epoch 5, but its own is 1"),
        (TARGET_EPOCH, "it has targets, but these have no epoch"),
        (member_key("b"), "member b has no subscription"),
        (current_key("b"), "member b has no current assignment"),
    ],
)
def test_a_record_is_missing(lost: object, fault: str) -> None:
    found = checked((key, value) for key, value in SOUND.items() if key != lost)
    assert f"consumer group g: {fault}" in found


@pytest.mark.parametrize(
    ("changed", "faults"),
    [
        ({EPOCH: ConsumerGroupMetadataValue(epoch=6)}, []),  # the next target is not computed yet
        (
            {EPOCH: ConsumerGroupMetadataValue(epoch=4)},
            [
                "its target is of epoch 5, but its own is 4",
                "member a is in epoch 5, but the group in 4",
                "member b is in epoch 5, but the group in 4",
            ],
        ),
        ({current_key("b"): current(5, 2, state=99)}, ["member b is in an unknown state"]),
        ({member_key("b"): member("till")}, ["member a has the group.instance.id till of b"]),
        ({target_key("c"): target(3)}, ["it has a target for c, which is no member"]),
    ],
)
def test_a_record_contradicts_the_others(changed: Records, faults: list[str]) -> None:
    assert checked({**SOUND, **changed}.items()) == [f"consumer group g: {fault}" for fault in faults]


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        (current_key("b"), current(5, 0), f"partition is still owned at epoch 5|{TOPIC_ID}"),
        (EPOCH, None, "group g is deleted while it has members or a target"),
        (member_key("a"), None, "member a is deleted before its assignment or its target"),
        (TARGET_EPOCH, None, "the target of group g is deleted before those of its members"),
        (
            GroupMetadataKey(group="g"),
            GroupMetadataValue(protocol_type="consumer", generation=1, protocol="range", leader="a"),
            "group g is a consumer group",
        ),
    ],
)
def test_a_record_that_the_coordinator_could_not_load(key: Any, value: Any, fault: str) -> None:
    check = ConsumerGroupsCheck()
    for each in SOUND.items():
        check.replay(*each)
    with pytest.raises(MalformedMessage, match=fault):
        check.replay(key, value)
    check.replay(member_key("a"), None)  # one fault is enough
    assert list(check.faults()) == []


@pytest.mark.parametrize("seed", range(40))
def test_what_a_coordinator_writes_is_sound(seed: int) -> None:
    """Histories of both protocols, conversions and crashes, looked at on the way."""
    it = Play(seed)
    check, seen = ConsumerGroupsCheck(), 0
    for number in range(150):
        if it.chance.random() < 0.3:
            it.trouble()
        if not it.step():
            it._arrives()
        written = it.world.journal[seen:]
        seen += len(written)
        for record in (decode_record(*each) for each in written):
            assert record is not None
            if not isinstance(record.key, OffsetCommitKey):
                check.replay(record.key, record.value)
        assert list(check.faults()) == [], f"step {number}"
    assert seen > 0
