"""Where the response to a request that is not performed has its error, and what it repeats of the request.

An error stands at the top of a response (`TOP`), or in each entry of an array (`within`). As in Apache
Kafka's answers to requests that fail as a whole (`getErrorResponse`), it stands as far out as the version
allows, except for errors that clients look for further in. An API that is not in `REFUSALS` has only the top.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final, NamedTuple

from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode


class Each(NamedTuple):
    """An array of a response, with an entry for each thing that the request asked for."""

    array: str
    asked: str
    """Path to what was asked for, such as "dirs.topics": in the request, or in what the array further out
    answers. Several paths, separated by blanks, lead to names: each name is answered once, in sorted order.
    If it is empty, the response has a single entry, whatever was asked for.
    """
    repeated: Mapping[str, str]
    """What an entry repeats, by the entry's field: the field of what was asked for, or ITSELF if that is a
    name or a number.
    """
    unknown: tuple[str, ...]
    """Numbers of an entry that are -1 beside an error."""


class Refusal(NamedTuple):
    """A place of an error in a response."""

    arrays: tuple[Each, ...] = ()
    """The arrays around the error, from the outermost inwards."""
    errors: Set[ErrorCode] = frozenset(ErrorCode)
    """The errors that stand at this place."""
    unknown: tuple[str, ...] = ()
    """Numbers at the top of the response that are -1 beside an error."""
    field: str = "error_code"

    @property
    def place(self) -> tuple[str, ...]:
        """The names of fields from the response inwards; the last one has the error."""
        return (*(each.array for each in self.arrays), self.field)


ITSELF: Final = ""
TOP: Final = Refusal()


def each(array: str, asked: str, *same: str, unknown: tuple[str, ...] = (), **renamed: str) -> Each:
    """Make an array. same: fields that repeat the field of the same name. renamed: the other repeated fields,
    by the entry's field.
    """
    return Each(array, asked, {**dict(zip(same, same, strict=True)), **renamed}, unknown)


def within(*arrays: Each) -> Refusal:
    """Make the place of all errors in the entries of arrays."""
    return Refusal(arrays)


def only(place: Refusal, *errors: ErrorCode) -> Refusal:
    """Limit a place to some errors."""
    return place._replace(errors=frozenset(errors))


_INDEXES: Final = each("partitions", "partition_indexes", partition_index=ITSELF)
_PARTITIONS: Final = each("partitions", "partitions", "partition_index")
_BY_NAME: Final = each("topics", "topics", "name")
_BY_NAME_OR_ID: Final = each("topics", "topics", "name", "topic_id")
_COMMITTED: Final = _INDEXES._replace(unknown=("committed_offset",))
_OF_TOPIC: Final = (
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
)
_OFFSETS: Final = within(_BY_NAME, _COMMITTED)
_GROUPS: Final = each("groups", "groups", "group_id")
_OFFSETS_OF_GROUPS: Final = within(_GROUPS, _BY_NAME_OR_ID, _COMMITTED)
_ALTERED: Final = within(each("responses", "resources", "resource_type", "resource_name"))
_LOCATION: Final = ("node_id", "port")

REFUSALS: Final[Mapping[ApiKey, tuple[Refusal, ...]]] = {
    ApiKey.PRODUCE: (
        within(
            each("responses", "topic_data", "name", "topic_id"),
            each("partition_responses", "partition_data", "index", unknown=("base_offset",)),
        ),
    ),
    ApiKey.FETCH: (
        only(
            TOP,
            ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
            ErrorCode.INVALID_FETCH_SESSION_EPOCH,
            ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ),
        within(
            each("responses", "topics", "topic", "topic_id"),
            each("partitions", "partitions", partition_index="partition", unknown=("high_watermark",)),
        ),
    ),
    ApiKey.LIST_OFFSETS: (within(_BY_NAME, _PARTITIONS),),
    ApiKey.METADATA: (
        only(TOP, ErrorCode.REBOOTSTRAP_REQUIRED),
        within(_BY_NAME_OR_ID),
    ),
    ApiKey.OFFSET_COMMIT: (within(_BY_NAME_OR_ID, _PARTITIONS),),
    ApiKey.OFFSET_FETCH: (
        only(_OFFSETS_OF_GROUPS, *_OF_TOPIC),
        only(_OFFSETS, *_OF_TOPIC),
        within(_GROUPS),
        TOP,
        _OFFSETS,
    ),
    ApiKey.FIND_COORDINATOR: (
        within(each("coordinators", "coordinator_keys", key=ITSELF, unknown=_LOCATION)),
        TOP._replace(unknown=_LOCATION),
    ),
    ApiKey.LEAVE_GROUP: (
        only(
            within(each("members", "members", "member_id", "group_instance_id")),
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.FENCED_INSTANCE_ID,
        ),
        TOP,
    ),
    ApiKey.DESCRIBE_GROUPS: (within(each("groups", "groups", group_id=ITSELF)),),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (within(each("groups", "group_ids", group_id=ITSELF)),),
    ApiKey.CREATE_TOPICS: (within(_BY_NAME),),
    ApiKey.DELETE_TOPICS: (
        within(each("responses", "topics", "name", "topic_id")),
        within(each("responses", "topic_names", name=ITSELF)),
    ),
    ApiKey.DELETE_RECORDS: (within(_BY_NAME, _PARTITIONS._replace(unknown=("low_watermark",))),),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (
        within(each("topics", "topics", "topic"), each("partitions", "partitions", "partition")),
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        TOP,
        within(
            each("results_by_topic_v3_and_below", "v3_and_below_topics", "name"),
            each("results_by_partition", "partitions", partition_index=ITSELF),
        )._replace(field="partition_error_code"),
    ),
    ApiKey.WRITE_TXN_MARKERS: (within(each("markers", "markers", "producer_id"), _BY_NAME, _INDEXES),),
    ApiKey.TXN_OFFSET_COMMIT: (within(_BY_NAME_OR_ID, _PARTITIONS),),
    ApiKey.CREATE_ACLS: (within(each("results", "creations")),),
    ApiKey.DELETE_ACLS: (within(each("filter_results", "filters")),),
    ApiKey.DESCRIBE_CONFIGS: (within(each("results", "resources", "resource_type", "resource_name")),),
    ApiKey.ALTER_CONFIGS: (_ALTERED,),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (
        within(
            each("results", "dirs.topics", topic_name="name"),
            each("partitions", "partitions", partition_index=ITSELF),
        ),
    ),
    ApiKey.DESCRIBE_LOG_DIRS: (TOP, within(each("results", ""))),
    ApiKey.CREATE_PARTITIONS: (within(each("results", "topics", "name")),),
    ApiKey.DELETE_GROUPS: (within(each("results", "groups_names", group_id=ITSELF)),),
    ApiKey.ELECT_LEADERS: (
        TOP,
        within(
            each("replica_election_results", "topic_partitions", "topic"),
            each("partition_result", "partitions", partition_id=ITSELF),
        ),
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (_ALTERED,),
    ApiKey.OFFSET_DELETE: (
        only(
            within(_BY_NAME, _PARTITIONS),
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ),
        TOP,
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: (within(each("entries", "entries", "entity")),),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (
        within(each("results", "deletions.name upsertions.name", user=ITSELF)),
    ),
    ApiKey.DESCRIBE_PRODUCERS: (within(_BY_NAME, _INDEXES),),
    ApiKey.DESCRIBE_TRANSACTIONS: (
        within(each("transaction_states", "transactional_ids", transactional_id=ITSELF)),
    ),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (within(_BY_NAME),),
}
"""The places of errors by API. An error stands at the first place that is for it and that the version has, in
request and response.
"""
