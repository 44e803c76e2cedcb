"""Special rules for requests about topics and their records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Collection, Iterable, Sequence
from dataclasses import replace
from uuid import UUID

from kshim.access.asker import MOST_LOGGED, Asker
from kshim.access.rules import Perform, Q, R, each, refused
from kshim.answering.views import ClusterView
from kshim.callers import Refused
from kshim.cluster import fault_in_name
from kshim.cluster.acl import AclOperation, AclResource
from kshim.turns.promise import settled
from kshim.turns.slices import in_slices
from schemas.error_code import ErrorCode
from schemas.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from schemas.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from schemas.messages.fetch import FetchRequest, FetchResponse
from schemas.messages.produce import ProduceRequest, ProduceResponse
from schemas.records.batch import CorruptRecordBatch, is_transactional

TOPIC = AclResource.TOPIC
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
MESSAGE = "Topic authorization failed."
NO_REPLY = 0  # acks
FIRST_VERSION_TO_DELETE_BY_ID = 6
ENTRY_US = 5


# ---- records


_written = each("topic_data", AclOperation.WRITE, TOPIC)


def produce(
    asker: Asker, request: ProduceRequest, perform: Perform[ProduceRequest, ProduceResponse]
) -> ProduceResponse | Awaitable[ProduceResponse | None] | None:
    """Refuse topics that the caller may not write to.

    Transactional records also need the right to write with the transactional id. With acks=0 a refusal closes
    the connection.
    """
    if not _may_write_in_transaction(asker, request):
        error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return _checked(asker, request, refused(asker, request, error))
    if request.acks != NO_REPLY:
        return _written(asker, request, perform)
    return _without_reply(asker, request, perform)


async def _without_reply(
    asker: Asker, request: ProduceRequest, perform: Perform[ProduceRequest, ProduceResponse]
) -> ProduceResponse | None:
    async def perform_some(some: ProduceRequest) -> ProduceResponse:
        await settled(perform(some))
        return ProduceResponse()

    return _checked(asker, request, await settled(_written(asker, request, perform_some)))


def _checked(asker: Asker, request: ProduceRequest, response: ProduceResponse) -> ProduceResponse | None:
    """Return the response; None for acks=0. Raises Refused if an error cannot be sent because of acks=0."""
    if request.acks != NO_REPLY:
        return response
    if response.responses:
        raise Refused(f"{asker.context.sender}: Produce with acks=0 of what it may not write")
    return None


def _may_write_in_transaction(asker: Asker, request: ProduceRequest) -> bool:
    """True if the records need no transactional id, or the caller may use theirs."""
    transactional_id = request.transactional_id
    if transactional_id is None or not _is_transactional(request):
        return True
    return asker.may(AclOperation.WRITE, AclResource.TRANSACTIONAL_ID, transactional_id)


def _is_transactional(request: ProduceRequest) -> bool:
    try:
        return any(
            is_transactional(data.records or b"")
            for topic in request.topic_data
            for data in topic.partition_data
        )
    except CorruptRecordBatch:
        return False  # the API refuses the damaged batch


def fetch(
    asker: Asker, request: FetchRequest, perform: Perform[FetchRequest, FetchResponse]
) -> FetchResponse | Awaitable[FetchResponse]:
    """Set the check of each topic for when it is read, as a session may have more topics than the request."""
    asker.broker.fetch_sessions.read_with(request.session_id, asker.rights)
    if request.replica_id >= 0 or request.replica_state.replica_id >= 0:
        if not asker.may(AclOperation.CLUSTER_ACTION, AclResource.CLUSTER):
            asker.context.may_see = lambda name: False
        return perform(request)
    known: dict[str, bool] = {}
    refusals = 0

    def may_see(name: str) -> bool:
        nonlocal refusals
        allowed = known.get(name)
        if allowed is None:
            allowed = known[name] = asker.may(AclOperation.READ, TOPIC, name, quietly=refusals >= MOST_LOGGED)
            refusals += not allowed
        return allowed

    asker.context.may_see = may_see
    return perform(request)


_end_offsets = each("topics", AclOperation.DESCRIBE, TOPIC, named="topic")


def offset_for_leader_epoch(asker: Asker, request: Q, perform: Perform[Q, R]) -> R | Awaitable[R]:
    """Refuse topics that the caller may not describe. Brokers may ask for all topics."""
    if asker.may(AclOperation.CLUSTER_ACTION, AclResource.CLUSTER, quietly=True):
        return perform(request)
    return _end_offsets(asker, request, perform)


def _invalid(names: Iterable[str]) -> Collection[str]:
    return {name for name in names if fault_in_name(name) is not None}


describe_producers = each("topics", AclOperation.READ, TOPIC, spared=_invalid, message=MESSAGE)


# ---- topics


def _twice(names: Iterable[str]) -> Collection[str]:
    return {name for name, times in Counter(names).items() if times > 1}


create_partitions = each("topics", AclOperation.ALTER, TOPIC, spared=_twice)
_each_created = each("topics", AclOperation.CREATE, TOPIC, spared=_twice, message="Authorization failed.")


async def create_topics(
    asker: Asker, request: CreateTopicsRequest, perform: Perform[CreateTopicsRequest, CreateTopicsResponse]
) -> CreateTopicsResponse:
    """Create the topics that the caller may create: all with the right to create in the cluster, else each
    one with a right to it.

    The answer has the configs of the new topics whose configs the caller may describe.
    """
    names = list({topic.name for topic in request.topics})

    async def performed(request: CreateTopicsRequest) -> CreateTopicsResponse:
        describable = await asker.may_each(AclOperation.DESCRIBE_CONFIGS, TOPIC, names, quietly=True)
        response = await settled(perform(request))
        if len(describable) == len(names):
            return response
        return replace(response, topics=tuple(_shown(topic, describable) for topic in response.topics))

    if asker.may(AclOperation.CREATE, AclResource.CLUSTER, quietly=True):
        return await performed(request)
    return await settled(_each_created(asker, request, performed))


def _shown(topic: CreatableTopicResult, describable: Collection[str]) -> CreatableTopicResult:
    if topic.error_code or topic.name in describable:
        return topic
    return replace(
        topic, topic_config_error_code=DENIED, num_partitions=-1, replication_factor=-1, configs=()
    )


async def delete_topics(
    asker: Asker, request: DeleteTopicsRequest, perform: Perform[DeleteTopicsRequest, DeleteTopicsResponse]
) -> DeleteTopicsResponse:
    """Delete the topics that the caller may delete: all with the right to delete the cluster, else each one
    with a right to it.

    The refusal of a topic that is given by id has its name only if the caller may describe the topic.
    """
    if asker.may(AclOperation.DELETE, AclResource.CLUSTER, quietly=True):
        return await settled(perform(request))
    by_id = asker.version >= FIRST_VERSION_TO_DELETE_BY_ID
    wanted = request.topics if by_id else list(map(_by_name, request.topic_names))
    times = Counter((topic.name, topic.topic_id) for topic in wanted)

    def name_of(topic: DeleteTopicState) -> str | None:
        return _name(asker.broker, topic) if times[topic.name, topic.topic_id] == 1 else None

    names = await in_slices(asker.broker.rounds, asker.context.turn, wanted, name_of, lambda _: ENTRY_US)
    return await _delete_allowed(asker, request, perform, wanted, names)


async def _delete_allowed(
    asker: Asker,
    request: DeleteTopicsRequest,
    perform: Perform[DeleteTopicsRequest, DeleteTopicsResponse],
    wanted: Sequence[DeleteTopicState],
    names: Sequence[str | None],
) -> DeleteTopicsResponse:
    """Refuse the topics that the caller may not delete, and delete the others. names: those of `wanted`; None
    for an entry that the API refuses.
    """
    asked = [name for name in dict.fromkeys(names) if name is not None]
    described = await asker.may_each(AclOperation.DESCRIBE, TOPIC, asked, quietly=True)
    deleted = await asker.may_each(AclOperation.DELETE, TOPIC, asked)
    topics = asker.broker.cluster.topics

    def refuse(entry: tuple[DeleteTopicState, str | None]) -> DeletableTopicResult | None:
        topic, name = entry
        unknown = name is not None and topic.name is not None and name not in topics
        if name is None or name in deleted or (unknown and name in described):
            return None
        return _not_deleted(topic, name if name in described else topic.name)

    entries = list(zip(wanted, names, strict=True))
    refusals = await in_slices(asker.broker.rounds, asker.context.turn, entries, refuse, lambda _: ENTRY_US)
    return await _delete_others(asker, request, perform, wanted, refusals)


async def _delete_others(
    asker: Asker,
    request: DeleteTopicsRequest,
    perform: Perform[DeleteTopicsRequest, DeleteTopicsResponse],
    wanted: Sequence[DeleteTopicState],
    refusals: Sequence[DeletableTopicResult | None],
) -> DeleteTopicsResponse:
    """Delete the topics without a refusal, and add the refusals to the answer."""
    refused = tuple(each for each in refusals if each is not None)
    if not refused:
        return await settled(perform(request))
    kept = [topic for topic, refusal in zip(wanted, refusals, strict=True) if refusal is None]
    if asker.version >= FIRST_VERSION_TO_DELETE_BY_ID:
        request = replace(request, topics=tuple(kept))
    else:
        request = replace(request, topic_names=tuple(topic.name or "" for topic in kept))
    made = await settled(perform(request))
    return replace(made, responses=(*made.responses, *refused))


def _by_name(name: str) -> DeleteTopicState:
    return DeleteTopicState(name=name)


def _name(broker: ClusterView, topic: DeleteTopicState) -> str | None:
    """The topic's name; None if no topic has the id, or the entry has both a name and an id."""
    if topic.topic_id == UUID(int=0):
        return topic.name
    known = None if topic.name is not None else broker.cluster.topic_by_id(topic.topic_id)
    return None if known is None else known.name


def _not_deleted(topic: DeleteTopicState, name: str | None) -> DeletableTopicResult:
    return DeletableTopicResult(name=name, topic_id=topic.topic_id, error_code=DENIED, error_message=MESSAGE)
