"""The groups of an upstream, by hand: what its coordinators answer to kshim's own links."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from twisted.internet.defer import Deferred, fail, succeed

from kshim.configs.endpoint import Endpoint
from kshim.upstream.coordinators import GROUP, UpstreamCoordinators
from kshim.upstream.link import LinkError
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from schemas.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from schemas.messages.consumer_group_describe import Member as ConsumerMember
from schemas.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from schemas.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from schemas.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from schemas.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from schemas.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

DOWN = LinkError("upstream broker 10.0.0.1:9092 closed the connection")
NEWEST = 32767


@dataclass
class Group:
    """One group; it has members if it is not Empty."""

    state: str = "Empty"
    type: str = "classic"
    offsets: dict[tuple[str, int], tuple[int, int, str]] = field(default_factory=dict)
    """Offset, leader epoch and metadata, by topic and partition."""


class KafkaGroups(UpstreamCoordinators):
    """Coordinates the groups at the brokers in turn, by the length of their names."""

    def __init__(self, brokers: int = 1, **versions: int) -> None:
        """versions: the newest ones, by the name of the request's class."""
        self.groups: dict[str, Group] = {}
        self.brokers = [Endpoint(f"10.0.0.{n}", 9092) for n in range(1, brokers + 1)]
        self.versions = versions
        self.requests: list[Any] = []
        self.versions_asked: list[int] = []
        self.is_down = False
        self.serves_consumer_groups = True
        self.error = ErrorCode.NONE
        """The answer to everything, if it is an error."""
        self.finding = ErrorCode.NONE
        self.is_closed = False
        self.frames: Callable[[Endpoint, bytes], bytes] = lambda _, frame: frame
        """Answers requests that are sent as frames."""

    # ---- as UpstreamCoordinators

    async def find(self, keys: Sequence[str], key_type: int = GROUP) -> dict[str, Endpoint | ErrorCode]:
        if self.is_down:
            raise DOWN
        return {each: self.finding or self.at(each) for each in keys}

    async def link_to(self, address: Endpoint) -> Any:
        if self.is_down:
            raise DOWN
        return Link(self, address)

    def close(self) -> None:
        self.is_closed = True

    # ---- what it answers

    def at(self, group_id: str) -> Endpoint:
        return self.brokers[len(group_id) % len(self.brokers)]

    def asked(self, of: type) -> list[Any]:
        return [each for each in self.requests if isinstance(each, of)]

    def answer(self, address: Endpoint, request: Any, version: int) -> Any:
        if isinstance(request, ListGroupsRequest):
            return self._list(address, request)
        if isinstance(request, DescribeGroupsRequest):
            groups = tuple(self._describe(each, version) for each in request.groups)
            return DescribeGroupsResponse(groups=groups)
        if isinstance(request, ConsumerGroupDescribeRequest):
            return ConsumerGroupDescribeResponse(groups=tuple(map(self._describe_new, request.group_ids)))
        if isinstance(request, DeleteGroupsRequest):
            return DeleteGroupsResponse(results=tuple(map(self._delete, request.groups_names)))
        if isinstance(request, OffsetFetchRequest):
            return self._fetch(request, version)
        if isinstance(request, OffsetDeleteRequest):
            return self._delete_offsets(request)
        assert isinstance(request, OffsetCommitRequest)
        return self._commit(request)

    def _list(self, address: Endpoint, request: ListGroupsRequest) -> ListGroupsResponse:
        found = (
            ListedGroup(group_id=name, protocol_type="consumer", group_state=it.state, group_type=it.type)
            for name, it in self.groups.items()
            if self.at(name) == address
            and (not request.states_filter or it.state in request.states_filter)
            and (not request.types_filter or it.type in request.types_filter)
        )
        return ListGroupsResponse(error_code=self.error, groups=tuple(found))

    def _describe(self, group_id: str, version: int) -> DescribedGroup:
        group = self.groups.get(group_id)
        if self.error:
            return DescribedGroup(group_id=group_id, error_code=self.error)
        if group is None or group.type != "classic":
            absent = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE
            return DescribedGroup(group_id=group_id, group_state="Dead", error_code=absent)
        members = () if group.state == "Empty" else (DescribedGroupMember(member_id="m", client_host="/h"),)
        return DescribedGroup(
            group_id=group_id, group_state=group.state, protocol_type="consumer", members=members
        )

    def _describe_new(self, group_id: str) -> DescribedConsumerGroup:
        group = self.groups.get(group_id)
        if self.error or group is None or group.type != "consumer":
            error = self.error or ErrorCode.GROUP_ID_NOT_FOUND
            return DescribedConsumerGroup(group_id=group_id, error_code=error)
        member = ConsumerMember(member_id="m", client_id="c", client_host="/h")
        members = () if group.state == "Empty" else (member,)
        return DescribedConsumerGroup(group_id=group_id, group_state=group.state, members=members)

    def _delete(self, group_id: str) -> DeletableGroupResult:
        error = self.error or ErrorCode.NONE
        if not error and group_id not in self.groups:
            error = ErrorCode.GROUP_ID_NOT_FOUND
        elif not error and self.groups[group_id].state != "Empty":
            error = ErrorCode.NON_EMPTY_GROUP
        elif not error:
            del self.groups[group_id]
        return DeletableGroupResult(group_id=group_id, error_code=error)

    def _fetch(self, request: OffsetFetchRequest, version: int) -> OffsetFetchResponse:
        if version >= 8:
            return OffsetFetchResponse(groups=tuple(self._fetched(each.group_id) for each in request.groups))
        found = self._fetched(request.group_id)
        return OffsetFetchResponse(topics=found.topics, error_code=found.error_code)

    def _fetched(self, group_id: str) -> OffsetFetchResponseGroup:
        group = self.groups.get(group_id, Group())
        topics = tuple(
            OffsetFetchResponseTopics(
                name=topic,
                partitions=(
                    OffsetFetchResponsePartitions(
                        partition_index=index,
                        committed_offset=offset,
                        committed_leader_epoch=epoch,
                        metadata=metadata,
                    ),
                ),
            )
            for (topic, index), (offset, epoch, metadata) in group.offsets.items()
        )
        return OffsetFetchResponseGroup(group_id=group_id, topics=topics, error_code=self.error)

    def _delete_offsets(self, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        group = self.groups.get(request.group_id)
        if self.error or group is None:
            return OffsetDeleteResponse(error_code=self.error or ErrorCode.GROUP_ID_NOT_FOUND)
        for topic in request.topics:
            for each in topic.partitions:
                group.offsets.pop((topic.name, each.partition_index), None)
        return OffsetDeleteResponse(
            topics=tuple(
                OffsetDeleteResponseTopic(
                    name=topic.name,
                    partitions=tuple(
                        OffsetDeleteResponsePartition(partition_index=each.partition_index)
                        for each in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    def _commit(self, request: OffsetCommitRequest) -> OffsetCommitResponse:
        group = self.groups.setdefault(request.group_id, Group())
        error = self.error or (ErrorCode.NONE if group.state == "Empty" else ErrorCode.UNKNOWN_MEMBER_ID)
        for topic in () if error else request.topics:
            for it in topic.partitions:
                where = (topic.name, it.partition_index)
                metadata = it.committed_metadata or ""
                group.offsets[where] = (it.committed_offset, it.committed_leader_epoch, metadata)
        return OffsetCommitResponse(
            topics=tuple(
                OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=tuple(
                        OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error)
                        for each in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )


class Link:
    """To one broker."""

    def __init__(self, kafka: KafkaGroups, address: Endpoint) -> None:
        self.kafka = kafka
        self.address = address

    def serves(self, api_key: Any) -> bool:
        return self.kafka.serves_consumer_groups or api_key.name != "CONSUMER_GROUP_DESCRIBE"

    def version(self, api_key: Any, newest: int = NEWEST) -> int:
        return min(newest, self.kafka.versions.get(api_key.name, 9))

    def ask_frame(self, frame: bytes, *, timeout_s: float) -> Deferred[bytes]:
        """Answer with what `frames` makes of the place and the request."""
        if self.kafka.is_down:
            return fail(DOWN)
        return succeed(self.kafka.frames(self.address, frame))

    def ask(self, request: Any, *, newest: int = NEWEST, **_: Any) -> Deferred[Any]:
        from schemas.api_key import ApiKey
        from schemas.message import definition

        if self.kafka.is_down:
            return fail(DOWN)
        self.kafka.requests.append(request)
        api_key = definition(type(request)).api_key
        assert api_key is not None
        version = self.version(ApiKey(api_key), newest)
        self.kafka.versions_asked.append(version)
        return succeed(self.kafka.answer(self.address, request, version))
