"""The rights that ConsumerGroupHeartbeat and ConsumerGroupDescribe need; cases 2, 3, 116 and 165."""

from __future__ import annotations

from typing import Any

from kshim.cluster.acl import Acl, AclOperation, AclResource, Pattern, PatternType, Permission
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.access.world import ADMIN, World
from tests.api.harness import advance, create

READ, DESCRIBE = AclOperation.READ, AclOperation.DESCRIBE
GROUP, TOPIC = AclResource.GROUP, AclResource.TOPIC
HIDDEN = "The group has described topic(s) that the client is not authorized to describe."


def acl(user: str, operation: AclOperation, resource: AclResource, name: str) -> Acl:
    pattern = Pattern(resource, name, PatternType.LITERAL)
    return Acl(pattern, f"User:{user}", "*", operation, Permission.ALLOW)


def world(*acls: Any, **config: Any) -> World:
    found = World(*acls, **config)
    for name in ("foo", "bar", "zar"):
        create(found.broker, name)
    return found


def joining(*names: str, regex: str | None = None, epoch: int = 0) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=epoch,
        rebalance_timeout_ms=5_000,
        subscribed_topic_names=names or None,
        subscribed_topic_regex=regex,
        topic_partitions=(),
    )


def test_2_the_group_must_be_readable() -> None:
    answer = world(acl("alice", DESCRIBE, GROUP, "g")).ask("alice", joining("foo"))
    assert (answer.error_code, answer.error_message) == (ErrorCode.GROUP_AUTHORIZATION_FAILED, None)


def test_3_all_named_topics_must_be_seen() -> None:
    acls = [acl("alice", READ, GROUP, "g"), *(acl("alice", DESCRIBE, TOPIC, each) for each in ("foo", "bar"))]
    here = world(*acls)
    answer = here.ask("alice", joining("foo", "bar", "zar"))
    assert (answer.error_code, answer.error_message) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)
    assert here.ask("alice", joining("foo", "bar")).error_code == 0
    leaving = joining("zar", epoch=-1)
    assert here.ask("alice", leaving).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert here.ask("alice", joining(regex="", epoch=-1)).error_code == 0


def test_116_an_expression_matches_what_its_sender_may_see() -> None:
    here = world(acl("alice", READ, GROUP, "g"), acl("alice", DESCRIBE, TOPIC, "foo"))
    assert here.ask("alice", joining(regex=".*")).error_code == 0
    advance(here.broker)
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1)
    (assigned,) = here.ask("alice", request).assignment.topic_partitions
    assert assigned.topic_id == here.broker.cluster.topics["foo"].topic_id


def test_1_where_the_protocol_is_off_nobody_is_asked_for_rights() -> None:
    here = world(group_coordinator_rebalance_protocols="classic")
    assert here.ask("alice", joining("foo")).error_code == ErrorCode.UNSUPPORTED_VERSION
    (group,) = here.ask("alice", ConsumerGroupDescribeRequest(group_ids=("g",))).groups
    assert group.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_165_descriptions() -> None:
    here = world(acl("alice", DESCRIBE, GROUP, "g"))
    here.ask(ADMIN, joining("foo"))
    request = ConsumerGroupDescribeRequest(group_ids=("x", "g"), include_authorized_operations=True)
    x, g = here.ask("alice", request).groups
    assert (x.group_id, x.error_code) == ("x", ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert (g.error_code, g.error_message, g.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, HIDDEN, ())
    assert g.group_state == ""
    here.allow(acl("alice", DESCRIBE, TOPIC, "foo"))
    _, g = here.ask("alice", request).groups
    assert (g.error_code, len(g.members), g.group_state) == (0, 1, "Stable")
    assert g.authorized_operations == 1 << DESCRIBE
