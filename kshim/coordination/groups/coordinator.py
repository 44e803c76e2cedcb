"""The group coordinator: finds a group's shard, one of fifty, and checks requests before the group does.

A shard is loaded by replaying its records, serves while a broker of this process leads it, and is unloaded
afterwards. Every call passes the time; `next_deadline_ms` says when to call `advance`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any

from kshim.coordination.decision import Caller, Decision, GroupRecord, HalfDecided, Reply
from kshim.coordination.fencing import ProducerIdAndEpoch
from kshim.coordination.groups import shard_offsets
from kshim.coordination.groups.consumer.environment import Environment, SameConfigs
from kshim.coordination.groups.consumer.quiet import Sender
from kshim.coordination.groups.consumer.topic_names import ManyNames
from kshim.coordination.groups.consumer.topics import NoTopics
from kshim.coordination.groups.consumer.upgrade import large_subscriptions
from kshim.coordination.groups.draft import Surroundings
from kshim.coordination.groups.offsets import no_id
from kshim.coordination.groups.operations import OPERATIONS
from kshim.coordination.groups.passing_time import keep_members, only_paces
from kshim.coordination.groups.pending_ids import PendingIds
from kshim.coordination.groups.records import encode_record
from kshim.coordination.groups.refusals import EndTransaction, GroupRequest, WaitingHeartbeat, as_kept, refuse
from kshim.coordination.groups.seen import SeenGroup
from kshim.coordination.groups.settings import Settings
from kshim.coordination.groups.shard import Shard
from kshim.coordination.groups.shard_offsets import OffsetsOfGroup
from kshim.coordination.groups.timers import AnyTimer, ShardTimer, Timers
from kshim.coordination.groups.topic_changes import TopicChanges
from kshim.coordination.groups.waiting import WaitsFor
from kshim.coordination.groups.wanted_topics import WantedTopics
from kshim.coordination.shards import partition_for
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import TopicId
from schemas.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from schemas.messages.heartbeat import HeartbeatRequest
from schemas.messages.join_group import JoinGroupRequest
from schemas.messages.leave_group import LeaveGroupRequest
from schemas.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from schemas.messages.offset_commit import OffsetCommitRequest
from schemas.messages.offset_delete import OffsetDeleteRequest
from schemas.messages.sync_group import SyncGroupRequest
from schemas.messages.txn_offset_commit import TxnOffsetCommitRequest
from schemas.primitives import can_be_written
from schemas.records.end_txn_marker import EndTxnMarker

_NEEDS_GROUP_ID = frozenset(
    {
        JoinGroupRequest,
        SyncGroupRequest,
        HeartbeatRequest,
        WaitingHeartbeat,
        LeaveGroupRequest,
        TxnOffsetCommitRequest,
        OffsetDeleteRequest,
    }
)
"""Requests for which an empty group id is an error; old consumers commit and fetch offsets under it."""


_NAMES_WRITTEN: Mapping[type, Callable[[Any], Iterable[str]]] = {
    JoinGroupRequest: lambda it: (it.group_id, it.protocol_type, *(each.name for each in it.protocols)),
    OffsetCommitRequest: lambda it: (it.group_id,),
    TxnOffsetCommitRequest: lambda it: (it.group_id,),
}
"""For each request that may create a group: the names that it would put into records as the client spelled
them. If one cannot be written, the answer is UNKNOWN_SERVER_ERROR, as in Kafka.
"""


class Coordinator:
    """All groups of the shards that this process leads. Pure: no clock, no disk, no network.

    Each broker leads some of the shards, and refuses requests for the others.
    """

    topic = "__consumer_offsets"
    encode = staticmethod(encode_record)
    refuse = staticmethod(refuse)
    as_kept = staticmethod(as_kept)

    def __init__(
        self,
        settings: Settings,
        new_member_id: Callable[[str], str],
        partitions: int = 50,
        topic_id_of: Callable[[str], TopicId] = no_id,
        environment: Environment | None = None,
    ) -> None:
        """topic_id_of: returns the id of a topic; it is stored with offsets whose request names the topic
        without an id. environment: what consumer groups need of the cluster; None stands for one without
        topics.
        """
        self.settings = settings
        self.partitions = partitions
        self._timers = Timers()
        self._topics = TopicChanges()
        self._pending_ids = PendingIds()
        self._surroundings = Surroundings(
            settings, self._timers, self._topics, self._pending_ids, new_member_id, topic_id_of
        )
        self._environment = environment or Environment(
            SameConfigs(settings), partial(new_member_id, ""), NoTopics(), settings.group_consumer_assignors
        )
        self._shards: dict[int, Shard] = {}
        self.wanted_topics = WantedTopics(self._shards, self.shard_for)

    @property
    def assignors(self) -> tuple[str, ...]:
        """The assignors that members of consumer groups may ask for."""
        return self._environment.assignors

    # ---- shards

    def shard_for(self, group_id: str) -> int:
        """The number of the shard that a group belongs to."""
        return partition_for(group_id, self.partitions)

    def begin_load(self, shard: int, node_id: int = 0) -> None:
        """Begin to load `shard` for the broker `node_id`; it is empty, and refuses requests until loaded."""
        environment = self._environment._replace(configs=self._environment.configs.at(node_id))
        self._shards[shard] = Shard(shard, node_id, self._surroundings, environment)

    def load(
        self, shard: int, records: Iterable[tuple[bytes, bytes | None]], producer: ProducerIdAndEpoch | None
    ) -> list[bytes]:
        """Decode and apply stored records of `shard`, which is loading; return the keys of unknown kinds,
        which are skipped. Raises MalformedMessage.
        """
        return self._shards[shard].load(records, producer)

    def replay(
        self, shard: int, records: Iterable[GroupRecord], producer: ProducerIdAndEpoch | None = None
    ) -> None:
        """Apply the records of a decision in `shard`; calls come in the order of its log.

        producer: the producer whose transaction the records are part of, if any.
        """
        self._shards[shard].replay(records, producer)

    def replay_marker(self, shard: int, marker: EndTxnMarker) -> None:
        """Apply the end of a transaction; calls come in the order of the log, like those of `replay`."""
        self._shards[shard].hard_state.end_transaction(marker)

    def revive(self, shard: int) -> Iterator[None]:
        """Prepare to serve `shard` once all its records are replayed, a step for each item."""
        return self._shards[shard].revive()

    def finish_load(self, shard: int, now_ms: int) -> Decision:
        """Serve `shard` from now on."""
        return self._shards[shard].finish_load(now_ms)

    def unload(self, shard: int, now_ms: int) -> Decision:
        """Give up `shard`; the decision answers the requests that it has parked."""
        return self._shards.pop(shard).unload(now_ms)

    # ---- requests

    def handle(self, caller: Caller, request: GroupRequest | EndTransaction, now_ms: int) -> Decision:
        """Decide one request. The checks made before the group is asked are in Kafka's order.

        Raises HalfDecided, as `advance` does.
        """
        if isinstance(request, EndTransaction):
            return self._end_transaction(caller, request)
        shard = partition_for(request.group_id, self.partitions)
        found = self._find(shard, caller.node_id, request)
        if isinstance(found, ErrorCode):
            return Decision(shard, (), (Reply(caller.token, refuse(request, caller, found)),))
        try:
            return OPERATIONS[type(request)](found, caller, request, now_ms)
        except Exception as fault:
            raise HalfDecided(shard) from fault

    def answer_at_once(
        self, number: int, node_id: int, sender: Sender, request: ConsumerGroupHeartbeatRequest, now_ms: int
    ) -> ConsumerGroupHeartbeatResponse | None:
        """Answer a heartbeat of a group in the shard `number`, like `ConsumerShard.answer_at_once`."""
        shard = self._shards.get(number)
        if shard is None or shard.node_id != node_id or shard.is_loading:
            return None
        return shard.consumer.answer_at_once(sender, request, self._timers, now_ms)

    def refusal(self, node_id: int, request: GroupRequest) -> ErrorCode:
        """The error that refuses a request before its group is asked, or NONE."""
        found = self._find(partition_for(request.group_id, self.partitions), node_id, request)
        return found if isinstance(found, ErrorCode) else ErrorCode.NONE

    def release_heartbeat(
        self, shard: int, group_id: str, member_id: str, token: int, now_ms: int
    ) -> Decision:
        """Answer the heartbeat `token` now, if it is still parked."""
        return self._shards[shard].release_heartbeat(group_id, member_id, token, now_ms)

    def release_member_heartbeat(self, shard: int, group_id: str, token: int, now_ms: int) -> Decision:
        """Answer the heartbeat `token` of a consumer group's member now, if it is still parked."""
        return self._shards[shard].release_member_heartbeat(group_id, token, now_ms)

    def _end_transaction(self, caller: Caller, request: EndTransaction) -> Decision:
        led = self._shards.get(request.shard)
        if led is not None and not led.is_loading:
            return shard_offsets.end_transaction(led, caller, request.marker)
        error = ErrorCode.NOT_COORDINATOR if led is None else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return Decision(request.shard, (), (Reply(caller.token, refuse(request, caller, error)),))

    def list_groups(self, request: ListGroupsRequest, node_id: int = 0) -> ListGroupsResponse:
        """All groups that a broker leads; refused while a shard is loading, as some would be missing."""
        led = [shard for shard in self._shards.values() if shard.node_id == node_id]
        if any(shard.is_loading for shard in led):
            return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        groups = (group for shard in led for group in shard.list_groups(request))
        return ListGroupsResponse(groups=tuple(groups))

    def waits_for(self, group_id: str) -> WaitsFor | None:
        """The members that a group waits for, and why; None if it does not exist, or its shard is not led."""
        shard = self._shards.get(self.shard_for(group_id))
        return None if shard is None else shard.waits_for(group_id)

    def large_subscriptions(self, group_id: str) -> list[bytes]:
        """See `upgrade.large_subscriptions`; nothing for a group that is not a classic one."""
        shard = self._shards.get(self.shard_for(group_id))
        classic = None if shard is None or shard.is_loading else shard.groups.get(group_id)
        return [] if classic is None else large_subscriptions(classic)

    def latest_large_set(self, group_id: str) -> ManyNames | None:
        """Of the sets of many topics that members of a consumer group name, the one that came last."""
        shard = self._shards.get(self.shard_for(group_id))
        group = None if shard is None or shard.is_loading else shard.consumer.groups.get(group_id)
        return None if group is None else group.subscriptions.latest_large_set()

    def topic_changed(self, topic: str, change: str, now_ms: int) -> None:
        """Note how a topic has changed, in words: the leaders of classic groups that consume it will join
        again. Consumer groups get a new target, as soon as `advance` is called.
        """
        self._topics.note(topic, change, now_ms)
        for shard in self._shards.values():
            if not shard.is_loading:
                shard.topic_changed(topic, now_ms)

    def topics_created(self, now_ms: int) -> None:
        """Make consumer groups search for new topics that their regular expressions match, as soon as
        `advance` is called.
        """
        for shard in self._shards.values():
            if not shard.is_loading:
                shard.topics_created(now_ms)

    def group_configs_changed(self, group_ids: Iterable[str], now_ms: int) -> None:
        """Make members of consumer groups learn of new configs, as soon as `advance` is called."""
        for group_id in group_ids:
            shard = self._shards.get(self.shard_for(group_id))
            if shard is not None and not shard.is_loading:
                shard.configs_changed(group_id, now_ms)

    def group_ids(self) -> list[str]:
        """All groups of the shards that are served, in no order."""
        served = (shard for shard in self._shards.values() if not shard.is_loading)
        return [group_id for shard in served for group_id in chain(shard.groups, shard.consumer.groups)]

    def see(self, group_id: str) -> SeenGroup | None:
        """A group as people are shown it; None if it does not exist, or its shard is not led or
        is loading.
        """
        shard = self._shards.get(self.shard_for(group_id))
        return None if shard is None or shard.is_loading else shard.see(group_id)

    def known_offsets(self, shard: int) -> Iterator[list[OffsetsOfGroup]]:
        """The partitions for which groups of `shard` have offsets, a piece at a time."""
        return shard_offsets.known_offsets(self._shards[shard])

    def delete_offsets(
        self,
        shard: int,
        topics: Mapping[str, TopicId],
        now_ms: int,
        known: Iterable[OffsetsOfGroup] | None = None,
    ) -> Decision:
        """Delete the offsets that groups of `shard` have committed for deleted topics; see
        `offsets.delete_topics`.

        known: one of the pieces of `known_offsets`; None stands for all of them.
        """
        if known is None:
            known = chain.from_iterable(self.known_offsets(shard))
        return shard_offsets.delete_offsets(self._shards[shard], topics, known, now_ms)

    def keep_offsets(self, shard: int, keys: Iterable[bytes]) -> Decision:
        """Write the present values of committed offsets once more, because a transaction's own records will
        be deleted.

        keys: the keys of the offsets' records.
        """
        return shard_offsets.keep_offsets(self._shards[shard], keys)

    def _find(self, number: int, node_id: int, request: GroupRequest) -> Shard | ErrorCode:
        """The shard that answers, or the error."""
        if not request.group_id and type(request) in _NEEDS_GROUP_ID:
            return ErrorCode.INVALID_GROUP_ID
        if isinstance(request, JoinGroupRequest):
            settings = self.settings
            lowest, highest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
            if not lowest <= request.session_timeout_ms <= highest:
                return ErrorCode.INVALID_SESSION_TIMEOUT
        shard = self._shards.get(number)
        if shard is None or shard.node_id != node_id:
            return ErrorCode.NOT_COORDINATOR
        if shard.is_loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        names = _NAMES_WRITTEN.get(type(request))
        if names is not None and not all(map(can_be_written, names(request))):
            return ErrorCode.UNKNOWN_SERVER_ERROR
        return shard

    # ---- time

    def next_deadline_ms(self) -> int | None:
        """When to call `advance`: perhaps too early, never too late. None if nothing will come due. O(1)."""
        return self._timers.next_deadline_ms()

    def advance(self, now_ms: int) -> Iterator[Decision]:
        """Yield the decision of each due timer; the caller carries it out before it takes the next one.

        Timers that the caller does not take stay due, and come first the next time.
        """
        return self._fire(self._timers.due(now_ms), now_ms)

    def hasten(self, now_ms: int) -> Iterator[Decision]:
        """Fire the timers that clients could not wait for while time is held, due or not (see `only_paces`),
        and yield their decisions. O(timers).
        """
        return self._fire(self._timers.take(lambda key, at_ms: only_paces(key, at_ms - now_ms)), now_ms)

    def keep_sessions(self, members: Iterable[tuple[str, str]], now_ms: int, by_ms: int) -> None:
        """Keep members in their groups when time moves ahead by `by_ms`. members: pairs of group and member
        id.
        """
        connected: defaultdict[str, set[str]] = defaultdict(set)
        for group_id, member_id in members:
            connected[group_id].add(member_id)
        for group_id, member_ids in connected.items():
            shard = self._shards.get(self.shard_for(group_id))
            group = None if shard is None else shard.groups.get(group_id)
            if group is not None:
                keep_members(self._timers, group, member_ids, now_ms, by_ms)
            elif shard is not None:
                shard.consumer.keep_members(self._timers, group_id, member_ids, by_ms)

    def _fire(self, keys: Iterator[AnyTimer], now_ms: int) -> Iterator[Decision]:
        for key in keys:
            number = key.shard if isinstance(key, ShardTimer) else self.shard_for(key.group_id)
            shard = self._shards.get(number)
            if shard is not None:
                try:
                    decision = shard.on_timer(key, now_ms)
                except Exception as fault:
                    raise HalfDecided(number) from fault
                yield decision
