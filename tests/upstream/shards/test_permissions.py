"""Rights that the upstream's ACLs give kshim: missing ones are named at the start."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred, succeed

from kshim.cluster.acl import AclOperation
from kshim.configs.endpoint import Endpoint
from kshim.storage.interfaces import StorageError
from kshim.upstream.coordinators import UpstreamCoordinators
from kshim.upstream.shards.permissions import EVERYTHING, check_permissions
from schemas.error_code import ErrorCode
from schemas.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from schemas.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from schemas.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from tests.api.harness import result

NONE = ErrorCode.NONE
READ, WRITE = 1 << AclOperation.READ, 1 << AclOperation.WRITE
TOPIC_REFUSED, GROUP_REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED


class Upstream:
    """Allows something of the topic, and something of the group."""

    def __init__(self, of_topic: int | ErrorCode, of_group: int | ErrorCode, finding: ErrorCode = NONE):
        self.of_topic, self.of_group, self.finding = of_topic, of_group, finding
        self.is_open = True

    def ask(self, request: Any, **_: Any) -> Deferred[Any]:
        if isinstance(request, FindCoordinatorRequest):
            found = Coordinator(key="g", node_id=1, host="k", port=1, error_code=self.finding)
            return succeed(FindCoordinatorResponse(coordinators=(found,)))
        if isinstance(request, MetadataRequest):
            assert request.include_topic_authorized_operations
            error, operations = split(self.of_topic)
            topic = MetadataResponseTopic(name="t", error_code=error, topic_authorized_operations=operations)
            return succeed(MetadataResponse(topics=(topic,)))
        assert isinstance(request, DescribeGroupsRequest)
        assert request.include_authorized_operations
        error, operations = split(self.of_group)
        group = DescribedGroup(group_id="g", error_code=error, authorized_operations=operations)
        return succeed(DescribeGroupsResponse(groups=(group,)))

    def connect(self, address: Endpoint, timeout_s: float) -> Deferred[Any]:
        return succeed(self)

    def close(self) -> None:
        self.is_open = False


def split(told: int | ErrorCode) -> tuple[int, int]:
    """The error, and what is allowed."""
    return (told, -(1 << 31)) if isinstance(told, ErrorCode) else (0, told)


@pytest.mark.parametrize(
    ("upstream", "missing"),
    [
        (Upstream(READ, READ), "WRITE on topic t"),
        (Upstream(WRITE, 0), "READ on topic t, READ on group g"),
        (Upstream(READ | WRITE, GROUP_REFUSED), "READ on group g"),
        (Upstream(READ | WRITE, READ, finding=GROUP_REFUSED), "READ on group g"),
        (Upstream(TOPIC_REFUSED, READ), "READ on topic t, WRITE on topic t"),
    ],
)
def test_what_is_missing_is_named(upstream: Upstream, missing: str) -> None:
    with pytest.raises(StorageError) as refused:
        result(Deferred.fromCoroutine(check_permissions(upstream, UpstreamCoordinators(upstream), "t", "g")))
    assert str(refused.value) == f"the upstream's ACLs are in the way: kshim needs {missing}"


@pytest.mark.parametrize(
    "upstream",
    [
        Upstream(READ | WRITE, READ),
        Upstream(EVERYTHING, EVERYTHING),
        Upstream(EVERYTHING, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        Upstream(EVERYTHING, READ, finding=ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_what_is_allowed_or_not_known_is_no_fault(upstream: Upstream) -> None:
    result(Deferred.fromCoroutine(check_permissions(upstream, UpstreamCoordinators(upstream), "t", "g")))
