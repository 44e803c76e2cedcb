"""From a frame to its reply: the table of what is served, and the one way through it.

`API` says what this server can do: the ApiVersions response and `kshim apis` are computed from it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kshim.api.add_offsets_to_txn import add_offsets_to_txn
from kshim.api.add_partitions_to_txn import add_partitions_to_txn
from kshim.api.alter_configs import alter_configs
from kshim.api.alter_partition_reassignments import alter_partition_reassignments
from kshim.api.api_versions import answering, unsupported
from kshim.api.create_acls import create_acls
from kshim.api.create_partitions import create_partitions
from kshim.api.create_topics import create_topics
from kshim.api.delete_acls import delete_acls
from kshim.api.delete_groups import delete_groups
from kshim.api.delete_records import delete_records
from kshim.api.delete_topics import delete_topics
from kshim.api.describe_acls import describe_acls
from kshim.api.describe_client_quotas import describe_client_quotas
from kshim.api.describe_cluster import describe_cluster
from kshim.api.describe_configs import describe_configs
from kshim.api.describe_groups import describe_groups
from kshim.api.describe_log_dirs import describe_log_dirs
from kshim.api.describe_producers import describe_producers
from kshim.api.describe_topic_partitions import describe_topic_partitions
from kshim.api.describe_transactions import describe_transactions
from kshim.api.describe_user_scram_credentials import describe_user_scram_credentials
from kshim.api.elect_leaders import elect_leaders
from kshim.api.end_txn import end_txn
from kshim.api.fetch import fetch
from kshim.api.find_coordinator import find_coordinator
from kshim.api.heartbeat import heartbeat
from kshim.api.incremental_alter_configs import incremental_alter_configs
from kshim.api.init_producer_id import init_producer_id
from kshim.api.join_group import join_group
from kshim.api.leave_group import leave_group
from kshim.api.list_config_resources import list_config_resources
from kshim.api.list_groups import list_groups
from kshim.api.list_offsets import list_offsets
from kshim.api.list_partition_reassignments import list_partition_reassignments
from kshim.api.list_transactions import list_transactions
from kshim.api.metadata import metadata
from kshim.api.offset_commit import offset_commit
from kshim.api.offset_delete import offset_delete
from kshim.api.offset_fetch import offset_fetch
from kshim.api.offset_for_leader_epoch import offset_for_leader_epoch
from kshim.api.produce import produce
from kshim.api.sync_group import sync_group
from kshim.api.txn_offset_commit import txn_offset_commit
from kshim.api.write_txn_markers import write_txn_markers
from kshim.context import Broker, Caller, Refused, RequestContext, Signal
from schemas.api_key import ApiKey
from schemas.header import RequestHeader
from schemas.message import MalformedMessage
from schemas.registry import (
    VERSIONS,
    UnsupportedVersion,
    decode_request,
    decode_request_header,
    encode_response,
)

log = logging.getLogger(__name__)


ApiFunction = Callable[[Broker, RequestContext, Any], Any]


@dataclass(frozen=True, slots=True)
class Served:
    """How one API is served.

    function: called with (broker, context, request); returns the response, a Deferred of it, or None where
    the request has no reply. versions: those that are announced.
    """

    function: ApiFunction
    versions: range


# Where what is announced is not exactly what the schemas hold.
_ANNOUNCED = {
    # Kafka announces 0 and closes the connection at 0 to 2: librdkafka would switch compression off
    # (KAFKA-18659).
    ApiKey.PRODUCE: range(VERSIONS[ApiKey.PRODUCE].stop),
}


def _served(functions: dict[ApiKey, ApiFunction]) -> dict[int, Served]:
    """The table, completed with ApiVersions, which tells of all the others."""
    versions = {key: _ANNOUNCED.get(key, VERSIONS[key]) for key in (*functions, ApiKey.API_VERSIONS)}
    functions = functions | {ApiKey.API_VERSIONS: answering(versions)}
    return {key: Served(function, versions[key]) for key, function in functions.items()}


API = _served(
    {
        ApiKey.PRODUCE: produce,
        ApiKey.FETCH: fetch,
        ApiKey.LIST_OFFSETS: list_offsets,
        ApiKey.METADATA: metadata,
        ApiKey.OFFSET_COMMIT: offset_commit,
        ApiKey.OFFSET_FETCH: offset_fetch,
        ApiKey.FIND_COORDINATOR: find_coordinator,
        ApiKey.JOIN_GROUP: join_group,
        ApiKey.HEARTBEAT: heartbeat,
        ApiKey.LEAVE_GROUP: leave_group,
        ApiKey.SYNC_GROUP: sync_group,
        ApiKey.DESCRIBE_GROUPS: describe_groups,
        ApiKey.LIST_GROUPS: list_groups,
        ApiKey.CREATE_TOPICS: create_topics,
        ApiKey.DELETE_TOPICS: delete_topics,
        ApiKey.DELETE_RECORDS: delete_records,
        ApiKey.INIT_PRODUCER_ID: init_producer_id,
        ApiKey.ADD_PARTITIONS_TO_TXN: add_partitions_to_txn,
        ApiKey.ADD_OFFSETS_TO_TXN: add_offsets_to_txn,
        ApiKey.END_TXN: end_txn,
        ApiKey.WRITE_TXN_MARKERS: write_txn_markers,
        ApiKey.DESCRIBE_PRODUCERS: describe_producers,
        ApiKey.DESCRIBE_TRANSACTIONS: describe_transactions,
        ApiKey.LIST_TRANSACTIONS: list_transactions,
        ApiKey.TXN_OFFSET_COMMIT: txn_offset_commit,
        ApiKey.DESCRIBE_ACLS: describe_acls,
        ApiKey.CREATE_ACLS: create_acls,
        ApiKey.DELETE_ACLS: delete_acls,
        ApiKey.DESCRIBE_CONFIGS: describe_configs,
        ApiKey.ALTER_CONFIGS: alter_configs,
        ApiKey.DESCRIBE_LOG_DIRS: describe_log_dirs,
        ApiKey.CREATE_PARTITIONS: create_partitions,
        ApiKey.DELETE_GROUPS: delete_groups,
        ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental_alter_configs,
        ApiKey.ELECT_LEADERS: elect_leaders,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: alter_partition_reassignments,
        ApiKey.LIST_PARTITION_REASSIGNMENTS: list_partition_reassignments,
        ApiKey.OFFSET_DELETE: offset_delete,
        ApiKey.OFFSET_FOR_LEADER_EPOCH: offset_for_leader_epoch,
        ApiKey.DESCRIBE_CLIENT_QUOTAS: describe_client_quotas,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: describe_user_scram_credentials,
        ApiKey.DESCRIBE_CLUSTER: describe_cluster,
        ApiKey.LIST_CONFIG_RESOURCES: list_config_resources,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: describe_topic_partitions,
    }
)


def answer(
    broker: Broker, frame: bytes | memoryview, caller: Caller, hurry: Signal
) -> bytes | Deferred[bytes | None] | None:
    """The reply to one request: header and body without the size, or None where there is none to send.

    Raises Refused, or fails the Deferred with it, where Kafka closes the connection: an unknown API, an
    unsupported version, a body that is not what its API and version say; and where one of our own functions
    failed.
    """
    try:
        header, request = decode_request(frame)
    except UnsupportedVersion as error:
        return _unsupported(error.header, caller)
    except MalformedMessage as error:
        raise Refused(f"{_sender(frame, caller)}: {error}") from error
    served = API.get(header.api_key)
    if served is None:
        return _unsupported(header, caller)
    if log.isEnabledFor(logging.DEBUG):
        log.debug("%s", _request(header, caller))
    context = RequestContext(
        header.api_version,
        header.client_id or "",
        caller.host,
        caller.advertised,
        hurry=hurry,
        node_id=broker.node_id,
    )
    try:
        response = served.function(broker, context, request)
        if isinstance(response, Deferred):
            return response.addCallback(partial(_encode, header)).addErrback(partial(_fail, header, caller))
        return _encode(header, response)
    except Refused:
        raise
    except Exception as error:
        raise _failed(header, caller, error) from error


def _encode(header: RequestHeader, response: Any) -> bytes | None:
    if response is None:
        return None
    return encode_response(header.api_key, header.api_version, header.correlation_id, response)


def _unsupported(header: RequestHeader, caller: Caller) -> bytes:
    """Kafka tells only ApiVersions what is supported; any other request it does not serve closes the
    connection.
    """
    served = API.get(header.api_key)
    if header.api_key == ApiKey.API_VERSIONS and served:
        return encode_response(header.api_key, 0, header.correlation_id, unsupported(served.versions))
    if served is None:
        raise Refused(f"{_request(header, caller)}: not served")
    versions = VERSIONS[ApiKey(header.api_key)]
    raise Refused(f"{_request(header, caller)}: served are versions {versions[0]} to {versions[-1]}")


def _fail(header: RequestHeader, caller: Caller, failure: Failure) -> None:
    if isinstance(failure.value, Refused):
        raise failure.value
    raise _failed(header, caller, failure.value) from failure.value


def _failed(header: RequestHeader, caller: Caller, error: BaseException | None) -> Refused:
    return Refused(f"{_request(header, caller)}: failed, our fault: {error!r}", logging.ERROR)


def api_name(api_key: int) -> str:
    """An API by Kafka's name, "JoinGroup"; "unknown API" where Kafka has none of that number."""
    try:
        return "".join(word.title() for word in ApiKey(api_key).name.split("_"))
    except ValueError:
        return "unknown API"


def _request(header: RequestHeader, caller: Caller) -> str:
    """The request in the words of the log: who sent what."""
    name = f"{api_name(header.api_key)} ({header.api_key}) v{header.api_version}"
    return f"{caller.address} (client_id {header.client_id!r}): {name}"


def _sender(frame: bytes | memoryview, caller: Caller) -> str:
    """Who sent a frame that cannot be decoded, as far as it says so."""
    try:
        header, _ = decode_request_header(frame)
    except MalformedMessage:
        return str(caller.address)
    return f"{caller.address} (client_id {header.client_id!r})"
