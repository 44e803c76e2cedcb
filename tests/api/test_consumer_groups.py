"""ConsumerGroupHeartbeat and ConsumerGroupDescribe, from a client's bytes to the log and back."""

from __future__ import annotations

from typing import Any

import pytest

from kshim.api.create_partitions import create_partitions
from kshim.api.update_features import update_features
from kshim.cluster.features import UpgradeType
from kshim.coordination.group_runtime import new_uuid_text
from schemas.error_code import ErrorCode
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from schemas.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from schemas.messages.list_groups import ListGroupsRequest
from schemas.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.api.groups import Groups
from tests.api.harness import advance, ask, create


def joining(member_id: str = "m", group_id: str = "g", **fields: Any) -> ConsumerGroupHeartbeatRequest:
    given = {"rebalance_timeout_ms": 5_000, "topic_partitions": (), "subscribed_topic_names": ("t",)}
    return ConsumerGroupHeartbeatRequest(group_id=group_id, member_id=member_id, **given | fields)


def staying(epoch: int, member_id: str = "m") -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=epoch)


def describe(groups: Groups, *group_ids: str, version: int = 1, **fields: Any) -> Any:
    return groups.ask(ConsumerGroupDescribeRequest(group_ids=group_ids, **fields), version).groups


@pytest.fixture
def groups() -> Groups:
    found = Groups()
    create(found.broker, "t", 2)
    return found


class TestHeartbeats:
    def test_a_member_joins_and_leaves(self, groups: Groups) -> None:
        answer = groups.ask(joining())
        assert (answer.error_code, answer.member_epoch, answer.heartbeat_interval_ms) == (0, 2, 5_000)
        (assigned,) = answer.assignment.topic_partitions
        assert assigned.topic_id == groups.broker.cluster.topics["t"].topic_id
        assert assigned.partitions == (0, 1)
        assert groups.ask(staying(-1)).member_epoch == -1

    def test_a_client_that_makes_no_id_gets_one(self, groups: Groups) -> None:
        assert len(groups.ask(joining(""), 0).member_id) == 22
        assert len({new_uuid_text() for _ in range(10)}) == 10

    def test_6_to_11_faults_have_kafkas_words(self, groups: Groups) -> None:
        answer = groups.ask(joining("m", " "))
        assert (answer.error_code, answer.error_message) == (
            ErrorCode.INVALID_REQUEST,
            "GroupId can't be empty.",
        )

    def test_5_a_server_that_stops(self, groups: Groups) -> None:
        groups.runtime.stop()
        for request in (joining(), joining("")):
            assert groups.ask(request).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    def test_46_a_topic_grows(self, groups: Groups) -> None:
        groups.ask(joining(subscribed_topic_names=("later",)))
        create(groups.broker, "later", 1)
        advance(groups.broker)
        assert groups.ask(staying(2)).assignment is not None

    def test_changes_that_are_together_larger_than_a_batch_of_clients_may_be(self) -> None:
        """D-large-group-changes: only a member whose names are too large is refused."""
        groups = Groups(message_max_bytes=1_000)
        create(groups.broker, "t", 1)
        assert groups.ask(joining()).error_code == 0
        topics = (CreatePartitionsTopic(name="t", count=500, assignments=None),)
        ask(create_partitions, groups.broker, CreatePartitionsRequest(topics=topics, timeout_ms=1_000), 3)
        advance(groups.broker)
        answer = groups.ask(staying(2))
        (assigned,) = answer.assignment.topic_partitions
        assert (answer.error_code, answer.member_epoch, len(assigned.partitions)) == (0, 3, 500)

        names = tuple(f"{number:050}" for number in range(40))
        refused = groups.ask(joining("n", subscribed_topic_names=names))
        assert (refused.error_code, refused.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
        described = describe(groups, "g")[0]
        assert (described.group_epoch, [each.member_id for each in described.members]) == (3, ["m"])

    def test_15_expressions(self, groups: Groups) -> None:
        request = joining(subscribed_topic_names=None, subscribed_topic_regex="(")
        assert groups.ask(request).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
        assert groups.ask(joining(subscribed_topic_names=None, subscribed_topic_regex="t")).error_code == 0
        advance(groups.broker)
        (assigned,) = groups.ask(staying(1)).assignment.topic_partitions
        assert assigned.partitions == (0, 1)

    def test_39_settings(self) -> None:
        groups = Groups(group_consumer_heartbeat_interval_ms=6_000, group_consumer_assignors="range")
        assert groups.ask(joining()).heartbeat_interval_ms == 6_000
        answer = groups.ask(joining("n", server_assignor="uniform"))
        assert answer.error_message == "ServerAssignor uniform is not supported. Supported assignors: range."


class TestSwitchedOff:
    def test_1_by_a_setting(self) -> None:
        groups = Groups(group_coordinator_rebalance_protocols="classic")
        for version in (0, 1):
            answer = groups.ask(joining(), version)
            assert (answer.error_code, answer.error_message) == (ErrorCode.UNSUPPORTED_VERSION, None)
        codes = [each.error_code for each in describe(groups, "g", "h")]
        assert codes == [ErrorCode.UNSUPPORTED_VERSION] * 2

    def test_1_by_the_feature(self, groups: Groups) -> None:
        def update(level: int, upgrade_type: UpgradeType) -> int:
            key = FeatureUpdateKey(
                feature="group.version", max_version_level=level, upgrade_type=upgrade_type
            )
            return int(
                ask(
                    update_features, groups.broker, UpdateFeaturesRequest(feature_updates=(key,)), 1
                ).error_code
            )

        assert update(0, UpgradeType.UPGRADE) == ErrorCode.INVALID_UPDATE_VERSION
        assert update(0, UpgradeType.SAFE_DOWNGRADE) == 0
        assert groups.ask(joining()).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert update(1, UpgradeType.UPGRADE) == 0
        assert groups.ask(joining()).error_code == 0

    def test_the_feature_is_announced(self, groups: Groups) -> None:
        request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
        supported = {each.name: each.max_version for each in groups.ask(request, 4).supported_features}
        assert supported["group.version"] == 1
        finalized = {each.name: each.max_version_level for each in groups.ask(request, 3).finalized_features}
        assert finalized["group.version"] == 1


class TestDescriptions:
    def test_162_a_group(self, groups: Groups) -> None:
        groups.ask(joining(instance_id="i", rack_id="r"))
        (group,) = describe(groups, "g")
        assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)
        (member,) = group.members
        assert (member.instance_id, member.rack_id, member.member_type) == ("i", "r", 1)
        assert member.client_host == "/127.0.0.1"
        assert member.assignment == member.target_assignment
        assert [each.topic_name for each in member.assignment.topic_partitions] == ["t"]
        assert describe(groups, "g", version=0)[0].members[0].member_type == -1

    def test_164_several_groups(self, groups: Groups) -> None:
        groups.ask(joining())
        found = [(each.group_id, each.error_code) for each in describe(groups, "", "g", "x")]
        assert found == [
            ("", ErrorCode.INVALID_GROUP_ID),
            ("g", ErrorCode.NONE),
            ("x", ErrorCode.GROUP_ID_NOT_FOUND),
        ]
        groups.runtime.stop()
        assert describe(groups, "g")[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    def test_162_operations(self, groups: Groups) -> None:
        groups.ask(joining())
        g, x = describe(groups, "g", "x", include_authorized_operations=True)
        assert g.authorized_operations > 0
        assert x.authorized_operations == -(1 << 31)

    def test_167_it_is_listed(self, groups: Groups) -> None:
        groups.ask(joining())
        (listed,) = groups.ask(ListGroupsRequest(types_filter=("consumer",)), 5).groups
        assert (listed.group_id, listed.group_type, listed.group_state) == ("g", "consumer", "Stable")
