"""`kshim group`: members, offsets, and refusals with their words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kshim.cluster import NewTopic
from kshim.control.commands import SteeringError, run
from kshim.control.coordinators import Coordinators
from kshim.control.members import MemberSteering
from kshim.control.offsets import ListedOffsets, OffsetSteering
from kshim.coordination.group_runtime import GroupRuntime, new_coordinator
from kshim.coordination.groups.refusals import DescribeGroup
from kshim.coordination.loading import Leader
from kshim.storage.journal import LogJournal
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.offset_fetch import OffsetFetchRequestGroup
from schemas.messages.sync_group import SyncGroupRequest
from schemas.records.batch import Record, encode
from tests.api.harness import NOW_MS, advance, context, later, new_broker, result

NODE = 1


class Steered:
    """A broker with topic t of two partitions, and the commands about its groups."""

    def __init__(self) -> None:
        broker = new_broker(group_initial_rebalance_delay_ms=0, offsets_topic_num_partitions=1)
        (partition,) = broker.cluster.group_metadata_topic.partitions
        journal = LogJournal(broker.log, [partition.partition_no])
        self.runtime = GroupRuntime(new_coordinator(broker.config, 1), journal, broker.clock)
        self.runtime.start({0: Leader(NODE)})
        self.broker = replace(broker, groups=self.runtime)
        result(broker.cluster.create_topics([NewTopic("t", assignments=[(0, (NODE,)), (1, (NODE,))])]))
        coordinators = Coordinators(self.broker, lambda shard: NODE)
        self.commands = {
            **MemberSteering(coordinators).commands(),
            **OffsetSteering(broker.cluster, coordinators, ListedOffsets(self.broker).at).commands(),
        }

    def do(self, name: str, *arguments: Any) -> Any:
        """The result of a command. Raises SteeringError."""
        return self.outcome(run(self.commands, name, list(arguments)))

    def outcome(self, answer: Any) -> Any:
        answer = later(answer)
        if not isinstance(answer, Deferred):
            return answer
        for _ in range(4):
            advance(self.broker)
        return result(answer)

    def refused(self, name: str, *arguments: Any) -> str:
        with pytest.raises(SteeringError) as refused:
            self.do(name, *arguments)
        return str(refused.value)

    def ask(self, request: Any, version: int) -> Any:
        return self.outcome(self.runtime.submit(replace(context(version), node_id=NODE), request))

    def member(self, group_instance_id: str | None = None) -> str:
        """The id of the only member of group g, which is stable."""
        join = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            group_instance_id=group_instance_id,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
        )
        version = 5 if group_instance_id else 3
        joined = later(self.runtime.submit(replace(context(version), node_id=NODE), join))
        advance(self.broker, 5)
        member_id: str = self.outcome(joined).member_id
        self.ask(SyncGroupRequest(group_id="g", generation_id=1, member_id=member_id), 3)
        return member_id

    @property
    def members(self) -> list[str]:
        return [member.member_id for member in self.ask(DescribeGroup("g"), 5).members]

    @property
    def state(self) -> str:
        return str(self.ask(DescribeGroup("g"), 5).group_state)

    @property
    def offsets(self) -> dict[int, int]:
        fetched = self.ask(OffsetFetchRequestGroup(group_id="g", topics=None), 8)
        return {p.partition_index: p.committed_offset for topic in fetched.topics for p in topic.partitions}

    def append(self, partition: int, *timestamps_ms: int) -> None:
        """Append a record for each time."""
        partition_no = self.broker.cluster.topics["t"].partitions[partition].partition_no
        for timestamp_ms in timestamps_ms:
            records = encode([Record(0, timestamp_ms, None, b"v")])
            result(self.broker.log.append(partition_no, records, now_ms=NOW_MS))


@pytest.fixture
def steered() -> Steered:
    return Steered()


EVERY_COMMAND = [
    ("rebalance-group", "g"),
    ("expire-member", "g", "m"),
    ("fence-member", "g", "i"),
    ("remove-member", "g", "m"),
    ("empty-group", "g"),
    ("delete-group", "g"),
]


@pytest.mark.parametrize("command", EVERY_COMMAND)
def test_there_is_no_such_group(steered: Steered, command: tuple[str, ...]) -> None:
    assert steered.refused(*command) == "there is no group g"


@pytest.mark.parametrize("command", [*EVERY_COMMAND, ("set-offsets", "g", [["t", 0, 1]])])
def test_nobody_coordinates_the_group(steered: Steered, command: tuple[Any, ...]) -> None:
    steered.runtime.unload(0)
    assert steered.refused(*command) == "the coordinator of group g answers NOT_COORDINATOR"


def test_a_group_rebalances(steered: Steered) -> None:
    member = steered.member()
    assert steered.do("rebalance-group", "g") == [member]
    assert steered.state == "PreparingRebalance"


def test_a_session_is_ended(steered: Steered) -> None:
    member = steered.member()
    steered.do("expire-member", "g", member)
    assert (steered.state, steered.members) == ("Empty", [])


def test_a_static_member_is_fenced(steered: Steered) -> None:
    member = steered.member("i")
    assert steered.do("fence-member", "g", "i") == member
    assert steered.state == "Stable"
    assert steered.members != [member]


@pytest.mark.parametrize("by", ["member id", "instance id"])
def test_a_member_is_removed(steered: Steered, by: str) -> None:
    member = steered.member("i")
    assert steered.do("remove-member", "g", member if by == "member id" else "i") == member
    assert steered.state == "Empty"


def test_a_group_is_emptied_and_then_deleted(steered: Steered) -> None:
    member = steered.member()
    assert steered.refused("delete-group", "g") == f"group g has members, so it is not deleted: {member}"
    assert steered.do("empty-group", "g") == [member]
    assert steered.do("empty-group", "g") == []
    steered.do("delete-group", "g")
    assert steered.state == "Dead"


def test_who_is_no_member_is_told_who_is(steered: Steered) -> None:
    member = steered.member()
    for command in ("expire-member", "remove-member"):
        assert steered.refused(command, "g", "x") == f"group g has no member x; it has {member}"
    no_instance = "group g has no member with the group.instance.id x; it has none"
    assert steered.refused("fence-member", "g", "x") == no_instance
    steered.do("empty-group", "g")
    assert steered.refused("rebalance-group", "g") == "group g has no members that could rebalance"


# ---- offsets


def test_offsets_are_set_as_they_are(steered: Steered) -> None:
    rows = [["t", 0, 5], ["t", 1, 0]]
    assert [list(row) for row in steered.do("set-offsets", "g", rows)] == rows
    assert steered.offsets == {0: 5, 1: 0}


def test_offsets_are_reset_to_the_ends_of_the_log(steered: Steered) -> None:
    steered.append(0, 1, 2, 3)
    assert steered.do("reset-offsets", "g", [["t", -1]], "latest", 0) == [("t", 0, 3), ("t", 1, 0)]
    assert steered.do("reset-offsets", "g", [["t", 0]], "earliest", 0) == [("t", 0, 0)]
    assert steered.do("plan-offsets", "g", [], "latest", 0) == [("t", 0, 0, 3), ("t", 1, 0, 0)]
    assert steered.do("plan-offsets", "g", [], "latest", 0) == [("t", 0, 0, 3), ("t", 1, 0, 0)]
    assert steered.do("reset-offsets", "g", [], "latest", 0) == [("t", 0, 3), ("t", 1, 0)]
    assert steered.offsets == {0: 3, 1: 0}


@pytest.mark.parametrize(("by", "offset"), [(1, 3), (-1, 1), (-9, 0), (9, 3)])
def test_offsets_are_shifted_within_the_log(steered: Steered, by: int, offset: int) -> None:
    steered.append(0, 1, 2, 3)
    steered.do("set-offsets", "g", [["t", 0, 2]])
    assert steered.do("reset-offsets", "g", [], "shift", by) == [("t", 0, offset)]


@pytest.mark.parametrize(("at_ms", "offset"), [(0, 0), (150, 1), (200, 1), (301, 3)])
def test_offsets_are_reset_to_a_time(steered: Steered, at_ms: int, offset: int) -> None:
    steered.append(0, 100, 200, 300)
    assert steered.do("reset-offsets", "g", [["t", 0]], "time", at_ms) == [("t", 0, offset)]


def test_what_cannot_be_set(steered: Steered) -> None:
    assert steered.refused("set-offsets", "g", [["t", 0, -1]]) == "t-0: -1 is no offset; they begin at 0"
    assert steered.refused("set-offsets", "g", [["t", 2, 1]]) == "t has the partitions 0 to 1"
    assert steered.refused("set-offsets", "g", [["u", 0, 1]]) == "no topic u; there are t"
    assert "another version" in steered.refused("set-offsets", "g", [["t", 0]])
    assert "another version" in steered.refused("set-offsets", "g", [["t", "0", 1]])
    assert steered.refused("reset-offsets", "g", [["t", 2]], "latest", 0) == "t has the partitions 0 to 1"
    assert steered.refused("reset-offsets", "g", [["u", -1]], "latest", 0) == "no topic u; there are t"
    assert "name a topic" in steered.refused("reset-offsets", "g", [], "latest", 0)
    assert "could be shifted" in steered.refused("reset-offsets", "g", [["t", 0]], "shift", 1)
    assert "not to sideways" in steered.refused("reset-offsets", "g", [["t", 0]], "sideways", 1)


def test_a_group_with_members_keeps_its_offsets(steered: Steered) -> None:
    member = steered.member()
    why = f"group g has members, so its offsets stay as they are: {member}"
    assert steered.refused("set-offsets", "g", [["t", 0, 5]]) == why
    assert steered.refused("reset-offsets", "g", [["t", 0]], "latest", 0) == why
    assert steered.offsets == {}
