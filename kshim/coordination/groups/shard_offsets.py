"""The offsets of one shard: committed, in transactions or not, fetched, and deleted.

Each function is called with the shard, and returns the decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kshim.coordination.decision import Caller, Decision, GroupRecord, Reply
from kshim.coordination.fencing import ProducerIdAndEpoch
from kshim.coordination.groups import offsets
from kshim.coordination.groups import txn_offset_commit as pending
from kshim.coordination.groups.classic_group import ClassicGroup
from kshim.coordination.groups.consumer.offsets import check_fetch
from kshim.coordination.groups.draft import Draft
from kshim.coordination.groups.offsets import Subscribed
from kshim.coordination.groups.pending_offsets import Partition
from kshim.coordination.groups.refusals import StableOffsetFetch, refuse
from kshim.coordination.groups.shard import Shard
from kshim.coordination.groups.sizes import offsets_fit
from schemas.error_code import ErrorCode
from schemas.internal_topics.group_metadata_log import OffsetCommitKey, TopicId, decode_key
from schemas.messages.offset_commit import OffsetCommitRequest
from schemas.messages.offset_delete import OffsetDeleteRequest
from schemas.messages.offset_fetch import OffsetFetchRequestGroup
from schemas.messages.txn_offset_commit import TxnOffsetCommitRequest
from schemas.records.end_txn_marker import EndTxnMarker

MOST_DELETED = 500
"""How many offsets one step compares with the deleted topics: a few ms of work, if all are deleted."""

OffsetsOfGroup = tuple[str, Sequence[Partition]]
"""A group id, and partitions for which the group has offsets."""


def offset_commit(shard: Shard, caller: Caller, request: OffsetCommitRequest, now_ms: int) -> Decision:
    """See `offsets`. A commit without a generation creates a missing group, whose consumers use no group
    management.
    """
    draft = Draft(shard.number, shard.surroundings, now_ms)
    group = shard.groups.get(request.group_id)
    if group is None and request.group_id in shard.consumer.groups:
        error = shard.consumer.check_commit(draft, caller, request)
    else:
        error = offsets.validate_commit(draft, group, caller, request)
    if error is not ErrorCode.NONE:
        return shard.reply(caller, refuse(request, caller, error))
    offsets.commit(draft, caller, request)
    return _committed_or_refused(shard, draft, caller, request)


def txn_offset_commit(shard: Shard, caller: Caller, request: TxnOffsetCommitRequest, now_ms: int) -> Decision:
    """See `txn_offset_commit`. Like `offset_commit`, this creates a missing group."""
    group = shard.groups.get(request.group_id)
    draft = Draft(shard.number, shard.surroundings, now_ms)
    if group is None and request.group_id in shard.consumer.groups:
        error = shard.consumer.check_txn_commit(draft, caller, request)
    else:
        error = pending.validate_commit(group, request, caller.api_version)
    if error is ErrorCode.NONE:
        error = shard.hard_state.fencing.check(
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
        )
    if error is not ErrorCode.NONE:
        return shard.reply(caller, refuse(request, caller, error))
    pending.commit(draft, caller, request)
    return _committed_or_refused(shard, draft, caller, request)


def _committed_or_refused(
    shard: Shard, draft: Draft, caller: Caller, request: OffsetCommitRequest | TxnOffsetCommitRequest
) -> Decision:
    """Commit all offsets as one batch, or refuse all if they do not fit; create the group if it is
    missing.
    """
    decision = draft.decision()
    if not offsets_fit(decision.records, draft.settings):
        return shard.reply(caller, refuse(request, caller, ErrorCode.UNKNOWN_SERVER_ERROR))
    group_id = request.group_id
    if decision.records and group_id not in shard.groups and group_id not in shard.consumer.groups:
        shard.groups[request.group_id] = ClassicGroup(request.group_id, draft.now_ms)
    return decision


def end_transaction(shard: Shard, caller: Caller, marker: EndTxnMarker) -> Decision:
    """Write the marker, even if no offset is pending: from then on its epoch fences older ones."""
    error = shard.hard_state.fencing.check_marker(marker)
    reply = Reply(caller.token, error)
    return Decision(shard.number, replies=(reply,), marker=marker if error is ErrorCode.NONE else None)


def offset_fetch(shard: Shard, caller: Caller, request: OffsetFetchRequestGroup, now_ms: int) -> Decision:
    """Answer with the committed offsets, whether or not the group exists."""
    error = _check_fetch(shard, request)
    if error is not ErrorCode.NONE:
        return shard.reply(caller, refuse(request, caller, error))
    topic_id_of = shard.surroundings.topic_id_of
    return shard.reply(caller, offsets.fetch(shard.committed(request.group_id), request, topic_id_of))


def stable_offset_fetch(shard: Shard, caller: Caller, fetch: StableOffsetFetch, now_ms: int) -> Decision:
    """Like `offset_fetch`, but refuse offsets that an open transaction may still change."""
    group_id = fetch.group_id
    error = _check_fetch(shard, fetch.request)
    if error is not ErrorCode.NONE:
        return shard.reply(caller, refuse(fetch, caller, error))
    unstable = shard.hard_state.pending.of_group(group_id)
    committed, topic_id_of = shard.committed(group_id), shard.surroundings.topic_id_of
    return shard.reply(caller, offsets.fetch(committed, fetch.request, topic_id_of, unstable))


def offset_delete(shard: Shard, caller: Caller, request: OffsetDeleteRequest, now_ms: int) -> Decision:
    """Delete offsets that no member consumes from; the group stays, even if none are left."""
    group: Subscribed | None = shard.groups.get(request.group_id)
    if group is None:
        group = shard.consumer.groups.get(request.group_id)
    error = offsets.validate_delete(group)
    if group is None or error is not ErrorCode.NONE:
        return shard.reply(caller, refuse(request, caller, error))
    draft = Draft(shard.number, shard.surroundings, now_ms)
    offsets.delete(draft, group, shard.known(request.group_id), caller, request)
    return draft.decision()


def known_offsets(shard: Shard) -> Iterator[list[OffsetsOfGroup]]:
    """The partitions for which groups have offsets, in pieces of about MOST_DELETED partitions."""
    some: list[OffsetsOfGroup] = []
    left = MOST_DELETED
    for group_id in dict.fromkeys((*shard.hard_state.offsets, *shard.hard_state.pending.group_ids())):
        partitions = tuple(shard.known(group_id))
        for start in range(0, len(partitions), MOST_DELETED):
            piece = partitions[start : start + MOST_DELETED]
            some.append((group_id, piece))
            left -= 1 + len(piece)
            if left <= 0:
                yield some
                some, left = [], MOST_DELETED
    if some:
        yield some


def delete_offsets(
    shard: Shard, topics: Mapping[str, TopicId], known: Iterable[OffsetsOfGroup], now_ms: int
) -> Decision:
    """See `offsets.delete_topics`. known: pieces of `known_offsets`."""
    draft = Draft(shard.number, shard.surroundings, now_ms)
    for group_id, partitions in known:
        offsets.delete_topics(draft, group_id, partitions, topics, shard.hard_state.values)
    return draft.decision()


def keep_offsets(shard: Shard, keys: Iterable[bytes]) -> Decision:
    """Write the present values of committed offsets once more; offsets that no longer exist
    are left out.
    """
    records = []
    for key in map(decode_key, keys):
        assert isinstance(key, OffsetCommitKey)
        value = shard.committed(key.group).get((key.topic, key.partition))
        if value is not None:
            records.append(GroupRecord(key, value))
    return Decision(shard.number, tuple(records))


def _check_fetch(shard: Shard, request: OffsetFetchRequestGroup) -> ErrorCode:
    """The error that refuses an OffsetFetch that names a member, or NONE. Only consumer groups look."""
    if request.member_id is None and request.member_epoch < 0:
        return ErrorCode.NONE
    group = shard.consumer.groups.get(request.group_id)
    if group is None:
        return ErrorCode.NONE
    return check_fetch(group, request.member_id, request.member_epoch)
