"""The checks of a ConsumerGroupHeartbeat that need no group, in Kafka's order and with its texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kshim.coordination.groups.consumer.member import GOES_AWAY, JOINS, LEAVES
from kshim.coordination.groups.consumer.refused import Refused
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from schemas.primitives import can_be_written

FIRST_VERSION_WITH_OWN_ID = 1
"""From this version on the client makes the member id (KIP-1082)."""

_BLANKS: Final = "".join(map(chr, range(ord(" ") + 1)))


def check_heartbeat(
    request: ConsumerGroupHeartbeatRequest,
    version: int,
    assignors: Sequence[str],
    *,
    are_names_checked: bool = False,
) -> None:
    """Raise Refused for a request that no group can answer. assignors: the configured ones.

    are_names_checked: True if it is known that the names of the topics can be written.
    """
    if _is_quiet(request):
        return
    fault = _fault(request, version)
    if fault is not None:
        raise Refused(ErrorCode.INVALID_REQUEST, fault)
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise Refused(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(assignors)}.",
        )
    names = () if are_names_checked else request.subscribed_topic_names or ()
    if not all(map(can_be_written, (*_texts(request), *names))):
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR)


def says_nothing(request: ConsumerGroupHeartbeatRequest) -> bool:
    """True for a heartbeat that only says that its sender lives: nearly all do."""
    return (
        request.topic_partitions is None
        and request.subscribed_topic_names is None
        and request.rebalance_timeout_ms == -1
        and request.subscribed_topic_regex is None
        and request.instance_id is None
        and request.rack_id is None
        and request.server_assignor is None
    )


def _is_quiet(request: ConsumerGroupHeartbeatRequest) -> bool:
    """True for a heartbeat that passes all checks, found at once: a member that stays, and says nothing."""
    return (
        request.member_epoch > JOINS
        and request.member_id[:1] > " "
        and request.group_id[:1] > " "
        and says_nothing(request)
        and can_be_written(request.member_id)
        and can_be_written(request.group_id)
    )


def _fault(request: ConsumerGroupHeartbeatRequest, version: int) -> str | None:
    epoch = request.member_epoch
    needs_id = version >= FIRST_VERSION_WITH_OWN_ID or epoch > JOINS or epoch == LEAVES
    if needs_id and _is_blank(request.member_id):
        return "MemberId can't be empty."
    if _is_blank(request.group_id):
        return "GroupId can't be empty."
    if request.instance_id is not None and _is_blank(request.instance_id):
        return "InstanceId can't be empty."
    if request.rack_id is not None and _is_blank(request.rack_id):
        return "RackId can't be empty."
    if epoch == JOINS:
        return _fault_in_join(request)
    if epoch == GOES_AWAY and request.instance_id is None:
        return "InstanceId can't be null."
    return "MemberEpoch is invalid." if epoch < GOES_AWAY else None


def _fault_in_join(request: ConsumerGroupHeartbeatRequest) -> str | None:
    if request.rebalance_timeout_ms == -1:
        return "RebalanceTimeoutMs must be provided in first request."
    if request.topic_partitions is None or request.topic_partitions:
        return "TopicPartitions must be empty when (re-)joining."
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    return None


def _is_blank(text: str) -> bool:
    """True if nothing is left after Java's `trim`, which removes spaces and control characters."""
    return text[:1] <= " " and not text.strip(_BLANKS)


def _texts(request: ConsumerGroupHeartbeatRequest) -> tuple[str, ...]:
    """The texts besides names of topics that would be put into records; they cannot be written if their UTF-8
    is too long.
    """
    optional = (
        request.instance_id,
        request.rack_id,
        request.subscribed_topic_regex,
        request.server_assignor,
    )
    return (request.group_id, request.member_id, *(text for text in optional if text is not None))
