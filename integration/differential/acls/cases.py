"""What each API needs, as a request and the ACLs that are just enough for it.

The names in a request are those of its cell: `SHARED`, which exists, or the cell's own, which begin with its
prefix. A need with the name OWN is an ACL for that prefix. Where one of two ACLs will do, each is a case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from kshim.cluster.acl import CLUSTER_NAME, AclOperation, AclResource
from schemas.api_key import ApiKey
from schemas.message import definition
from schemas.records.batch import Record, encode
from schemas.registry import MESSAGES, VERSIONS

SHARED, OTHER = "shared", "other"
"""Topics that exist. Every case that may see the topics of its cell alone names SHARED alone."""
OWN = "own"
MAKES = "D-auto-creation"

READ, WRITE, CREATE, DELETE = AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DELETE
ALTER, DESCRIBE, CLUSTER_ACTION = AclOperation.ALTER, AclOperation.DESCRIBE, AclOperation.CLUSTER_ACTION
DESCRIBE_CONFIGS, ALTER_CONFIGS = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS
IDEMPOTENT_WRITE = AclOperation.IDEMPOTENT_WRITE
TOPIC, GROUP, CLUSTER = AclResource.TOPIC, AclResource.GROUP, AclResource.CLUSTER
TRANSACTIONAL_ID = AclResource.TRANSACTIONAL_ID

AT_MS = 1_700_000_000_000
BATCH = encode([Record(0, AT_MS, b"k", b"v")])
IN_TRANSACTION = encode(
    [Record(0, AT_MS, b"k", b"v")], producer_id=4711, producer_epoch=0, base_sequence=0, is_transactional=True
)


class Need(NamedTuple):
    """An ACL, to allow one operation."""

    operation: AclOperation
    resource: AclResource
    name: str = CLUSTER_NAME


@dataclass(frozen=True)
class Cell:
    """Where a request is made: by the user of a case and a choice of its needs, in one version of its API."""

    user: str
    version: int
    ids: Mapping[str, UUID]
    """The ids of topics, which each server gives itself."""

    @property
    def own(self) -> str:
        return f"{self.user}.v{self.version}"


@dataclass(frozen=True)
class Case:
    """A request of an API, and what is just enough for it."""

    api_key: ApiKey
    request: Callable[[Cell], Any]
    needs: tuple[Need, ...]
    kind: str = ""
    versions: range = range(100)
    makes: bool = False
    """True if a topic with the cell's own name exists."""
    meant: str = ""
    """The key of the difference that a user with just enough ACLs meets; empty if there is none."""

    @property
    def name(self) -> str:
        return self.api_key.name.lower().replace("_", "-") + (f"-{self.kind}" if self.kind else "")

    def each_version(self) -> list[int]:
        return [version for version in VERSIONS[self.api_key] if version in self.versions]


Fields = Callable[[Cell], dict[str, Any]]
CASES: list[Case] = []


def case(
    api_key: ApiKey,
    *needs: Need,
    kind: str = "",
    since: int = 0,
    until: int = 99,
    makes: bool = False,
    meant: str = "",
) -> Callable[[Fields], Fields]:
    """Enter a function that makes a request's fields as a case."""

    def enter(fields: Fields) -> Fields:
        def request(cell: Cell) -> Any:
            return made(MESSAGES[api_key][0], fields(cell), cell)

        CASES.append(Case(api_key, request, needs, kind, range(since, until + 1), makes, meant))
        return fields

    return enter


def made(cls: Any, fields: Mapping[str, Any], cell: Cell) -> Any:
    """An entity of lists and dicts. A topic's id is added where the version has it in place of the name."""
    known = {each.name: each for each in definition(cls).fields}
    values = {name: value for name, value in fields.items() if name in known}
    for key in ("name", "topic"):
        topic_id = known.get("topic_id")
        has_id = topic_id is not None and topic_id.exists(cell.version)
        if key in values and has_id and not known[key].exists(cell.version):
            values["topic_id"] = cell.ids.get(values[key], UUID(int=4711))
    return cls(
        **{
            name: tuple(
                made(known[name].type.element, each, cell) if isinstance(each, dict) else each
                for each in value
            )
            if isinstance(value, list)
            else value
            for name, value in values.items()
        }
    )


def partitions(name: str, **fields: Any) -> dict[str, Any]:
    """Partition 0 of a topic."""
    return {"name": name, "topic": name, "partitions": [{"partition_index": 0, "partition": 0, **fields}]}


# ---- records


@case(ApiKey.PRODUCE, Need(WRITE, TOPIC, SHARED))
def produce(cell: Cell) -> dict[str, Any]:
    topics = [
        {"name": name, "partition_data": [{"index": 0, "records": BATCH}]} for name in (SHARED, "missing")
    ]
    return {"acks": -1, "timeout_ms": 5000, "topic_data": topics}


@case(ApiKey.PRODUCE, Need(WRITE, TRANSACTIONAL_ID, OWN), Need(WRITE, TOPIC, SHARED), kind="in-transaction")
def produce_in_transaction(cell: Cell) -> dict[str, Any]:
    topics = [{"name": SHARED, "partition_data": [{"index": 0, "records": IN_TRANSACTION}]}]
    return {"transactional_id": cell.own, "acks": -1, "timeout_ms": 5000, "topic_data": topics}


@case(ApiKey.PRODUCE, Need(WRITE, TOPIC, SHARED), kind="without-answer")
def produce_without_answer(cell: Cell) -> dict[str, Any]:
    topics = [{"name": SHARED, "partition_data": [{"index": 0, "records": BATCH}]}]
    return {"acks": 0, "timeout_ms": 5000, "topic_data": topics}


@case(ApiKey.FETCH, Need(READ, TOPIC, SHARED))
def fetch(cell: Cell) -> dict[str, Any]:
    topics = [partitions(name, partition_max_bytes=1) for name in (SHARED, OTHER, "missing")]
    return {"max_bytes": 1, "topics": topics}


@case(ApiKey.FETCH, Need(CLUSTER_ACTION, CLUSTER), kind="of-a-replica", until=14)
def fetch_of_a_replica(cell: Cell) -> dict[str, Any]:
    return {"replica_id": 5, "max_bytes": 1, "topics": [partitions(SHARED, partition_max_bytes=1)]}


@case(ApiKey.LIST_OFFSETS, Need(DESCRIBE, TOPIC, SHARED))
def list_offsets(cell: Cell) -> dict[str, Any]:
    return {
        "replica_id": -1,
        "topics": [partitions(name, timestamp=-2) for name in (SHARED, OTHER, "missing")],
    }


@case(ApiKey.DELETE_RECORDS, Need(DELETE, TOPIC, SHARED))
def delete_records(cell: Cell) -> dict[str, Any]:
    return {"timeout_ms": 5000, "topics": [partitions(name, offset=0) for name in (SHARED, OTHER)]}


@case(ApiKey.OFFSET_FOR_LEADER_EPOCH, Need(DESCRIBE, TOPIC, SHARED))
@case(ApiKey.OFFSET_FOR_LEADER_EPOCH, Need(CLUSTER_ACTION, CLUSTER), kind="of-a-broker")
def offset_for_leader_epoch(cell: Cell) -> dict[str, Any]:
    return {"topics": [partitions(name, leader_epoch=0) for name in (SHARED, OTHER)]}


@case(ApiKey.DESCRIBE_PRODUCERS, Need(READ, TOPIC, SHARED))
def describe_producers(cell: Cell) -> dict[str, Any]:
    return {"topics": [{"name": name, "partition_indexes": [7]} for name in (SHARED, OTHER, "not valid")]}


# ---- topics


@case(ApiKey.METADATA, Need(DESCRIBE, TOPIC, SHARED), Need(DESCRIBE, CLUSTER))
def metadata(cell: Cell) -> dict[str, Any]:
    return {
        "topics": [{"name": name} for name in (SHARED, OTHER, "missing")],
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": 8 <= cell.version <= 10,
        "include_topic_authorized_operations": cell.version >= 8,
    }


@case(ApiKey.METADATA, Need(READ, TOPIC, SHARED), kind="of-all")
def metadata_of_all(cell: Cell) -> dict[str, Any]:
    return {"topics": None if cell.version else [], "include_topic_authorized_operations": cell.version >= 8}


@case(ApiKey.METADATA, Need(DESCRIBE, TOPIC, SHARED), kind="by-id", since=12)
def metadata_by_id(cell: Cell) -> dict[str, Any]:
    topics = [
        {"topic_id": cell.ids.get(name, UUID(int=4711)), "name": None} for name in (SHARED, OTHER, "missing")
    ]
    return {"topics": topics, "include_topic_authorized_operations": True}


@case(ApiKey.METADATA, Need(DESCRIBE, TOPIC, OWN), Need(CREATE, TOPIC, OWN), kind="creating", meant=MAKES)
@case(ApiKey.METADATA, Need(DESCRIBE, TOPIC, OWN), Need(CREATE, CLUSTER), kind="creating-any", meant=MAKES)
def metadata_creating(cell: Cell) -> dict[str, Any]:
    return {"topics": [{"name": cell.own}], "allow_auto_topic_creation": True}


@case(ApiKey.DESCRIBE_TOPIC_PARTITIONS, Need(DESCRIBE, TOPIC, SHARED))
def describe_topic_partitions(cell: Cell) -> dict[str, Any]:
    return {"topics": [{"name": name} for name in ("missing", OTHER, SHARED)], "response_partition_limit": 10}


@case(ApiKey.DESCRIBE_TOPIC_PARTITIONS, Need(DESCRIBE, TOPIC, SHARED), kind="of-all")
def describe_topic_partitions_of_all(cell: Cell) -> dict[str, Any]:
    return {"response_partition_limit": 10}


@case(ApiKey.CREATE_TOPICS, Need(CREATE, TOPIC, OWN), Need(DESCRIBE_CONFIGS, TOPIC, OWN))
@case(ApiKey.CREATE_TOPICS, Need(CREATE, CLUSTER), Need(DESCRIBE_CONFIGS, TOPIC, OWN), kind="any")
def create_topics(cell: Cell) -> dict[str, Any]:
    new = {"num_partitions": 1, "replication_factor": 1}
    topics = [{"name": f"{cell.own}{name}", **new} for name in ("", "-twice", "-twice")]
    return {"topics": [*topics, {"name": OTHER, **new}], "timeout_ms": 5000, "validate_only": False}


def _deletion(cell: Cell) -> dict[str, Any]:
    names = [cell.own, f"{cell.own}-missing", OTHER]
    return {"topic_names": names, "topics": [{"name": name} for name in names], "timeout_ms": 5000}


case(ApiKey.DELETE_TOPICS, Need(DELETE, TOPIC, OWN), makes=True)(_deletion)
case(ApiKey.DELETE_TOPICS, Need(DESCRIBE, TOPIC, OWN), kind="described", makes=True)(_deletion)


@case(ApiKey.DELETE_TOPICS, Need(DELETE, CLUSTER), kind="any", makes=True)
def delete_topics_of_the_cluster(cell: Cell) -> dict[str, Any]:
    names = [cell.own, f"{cell.own}-missing"]
    return {"topic_names": names, "topics": [{"name": name} for name in names], "timeout_ms": 5000}


@case(ApiKey.DELETE_TOPICS, Need(DELETE, TOPIC, OWN), kind="by-id", since=6, makes=True)
@case(ApiKey.DELETE_TOPICS, Need(DESCRIBE, TOPIC, OWN), kind="by-id-described", since=6, makes=True)
def delete_topics_by_id(cell: Cell) -> dict[str, Any]:
    ids = [cell.ids.get(cell.own, UUID(int=4712)), cell.ids[OTHER], UUID(int=4711)]
    return {"topics": [{"name": None, "topic_id": topic_id} for topic_id in ids], "timeout_ms": 5000}


@case(ApiKey.CREATE_PARTITIONS, Need(ALTER, TOPIC, SHARED))
def create_partitions(cell: Cell) -> dict[str, Any]:
    names = (SHARED, OTHER, "missing", "twice", "twice")
    topics = [{"name": name, "count": 9, "assignments": None} for name in names]
    return {"topics": topics, "timeout_ms": 5000, "validate_only": True}


# ---- groups


@case(ApiKey.FIND_COORDINATOR, Need(DESCRIBE, GROUP, OWN))
@case(ApiKey.FIND_COORDINATOR, Need(READ, GROUP, OWN), kind="of-a-reader")
def find_coordinator(cell: Cell) -> dict[str, Any]:
    return {"key": cell.own, "key_type": 0, "coordinator_keys": [cell.own, "another"]}


@case(ApiKey.FIND_COORDINATOR, Need(DESCRIBE, TRANSACTIONAL_ID, OWN), kind="of-a-transaction", since=1)
def find_coordinator_of_a_transaction(cell: Cell) -> dict[str, Any]:
    return {"key": cell.own, "key_type": 1, "coordinator_keys": [cell.own, "another"]}


@case(ApiKey.JOIN_GROUP, Need(READ, GROUP, OWN))
def join_group(cell: Cell) -> dict[str, Any]:
    return {
        "group_id": cell.own,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": "nobody",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }


@case(ApiKey.SYNC_GROUP, Need(READ, GROUP, OWN))
def sync_group(cell: Cell) -> dict[str, Any]:
    protocol = {"protocol_type": "consumer", "protocol_name": "range"}
    return {"group_id": cell.own, "generation_id": 1, "member_id": "nobody", **protocol}


@case(ApiKey.SYNC_GROUP, Need(READ, GROUP, OWN), kind="without-protocol", since=5)
def sync_group_without_protocol(cell: Cell) -> dict[str, Any]:
    return {"group_id": cell.own, "generation_id": 1, "member_id": "nobody"}


@case(ApiKey.HEARTBEAT, Need(READ, GROUP, OWN))
def heartbeat(cell: Cell) -> dict[str, Any]:
    return {"group_id": cell.own, "generation_id": 1, "member_id": "nobody"}


@case(ApiKey.LEAVE_GROUP, Need(READ, GROUP, OWN))
def leave_group(cell: Cell) -> dict[str, Any]:
    return {"group_id": cell.own, "member_id": "nobody", "members": [{"member_id": "nobody"}]}


@case(ApiKey.OFFSET_COMMIT, Need(READ, GROUP, OWN), Need(READ, TOPIC, SHARED))
def offset_commit(cell: Cell) -> dict[str, Any]:
    topics = [
        partitions(name, committed_offset=1, committed_metadata="") for name in (SHARED, OTHER, "missing")
    ]
    return {"group_id": cell.own, "generation_id_or_member_epoch": -1, "topics": topics}


def _offset_fetch(cell: Cell, names: list[str] | None) -> dict[str, Any]:
    topics = None if names is None else [{"name": name, "partition_indexes": [0]} for name in names]
    groups = [{"group_id": group_id, "topics": topics} for group_id in (cell.own, "another")]
    return {"group_id": cell.own, "topics": topics, "groups": groups}


@case(ApiKey.OFFSET_FETCH, Need(DESCRIBE, GROUP, OWN), Need(DESCRIBE, TOPIC, SHARED))
def offset_fetch(cell: Cell) -> dict[str, Any]:
    return _offset_fetch(cell, [SHARED, OTHER, "missing"])


@case(
    ApiKey.OFFSET_FETCH,
    Need(DESCRIBE, GROUP, "committed"),
    Need(DESCRIBE, TOPIC, SHARED),
    kind="of-all",
    since=2,
)
def offset_fetch_of_all(cell: Cell) -> dict[str, Any]:
    return {"group_id": "committed", "topics": None, "groups": [{"group_id": "committed", "topics": None}]}


@case(ApiKey.OFFSET_DELETE, Need(DELETE, GROUP, "committed"), Need(READ, TOPIC, SHARED))
def offset_delete(cell: Cell) -> dict[str, Any]:
    topics = [{"name": name, "partitions": [{"partition_index": 1}]} for name in (SHARED, OTHER, "missing")]
    return {"group_id": "committed", "topics": topics}


@case(ApiKey.DESCRIBE_GROUPS, Need(DESCRIBE, GROUP, "committed"))
@case(ApiKey.DESCRIBE_GROUPS, Need(READ, GROUP, "committed"), kind="of-a-reader")
def describe_groups(cell: Cell) -> dict[str, Any]:
    groups = ["committed", "another"]
    return {"groups": groups, "include_authorized_operations": cell.version >= 3}


@case(ApiKey.CONSUMER_GROUP_HEARTBEAT, Need(READ, GROUP, OWN), Need(DESCRIBE, TOPIC, SHARED))
def consumer_group_heartbeat(cell: Cell) -> dict[str, Any]:
    return {
        "group_id": cell.own,
        "member_id": "nobody",
        "member_epoch": 1,
        "subscribed_topic_names": [SHARED],
    }


@case(ApiKey.CONSUMER_GROUP_DESCRIBE, Need(DESCRIBE, GROUP, "committed"))
def consumer_group_describe(cell: Cell) -> dict[str, Any]:
    return {"group_ids": ["committed", "another"], "include_authorized_operations": True}


@case(ApiKey.LIST_GROUPS, Need(DESCRIBE, GROUP, "committed"))
@case(ApiKey.LIST_GROUPS, Need(DESCRIBE, CLUSTER), kind="any")
def list_groups(cell: Cell) -> dict[str, Any]:
    return {}


@case(ApiKey.DELETE_GROUPS, Need(DELETE, GROUP, OWN))
def delete_groups(cell: Cell) -> dict[str, Any]:
    return {"groups_names": [cell.own, "another"]}


# ---- transactions


@case(ApiKey.INIT_PRODUCER_ID, Need(IDEMPOTENT_WRITE, CLUSTER))
@case(ApiKey.INIT_PRODUCER_ID, Need(WRITE, TOPIC, SHARED), kind="of-a-writer")
def init_producer_id(cell: Cell) -> dict[str, Any]:
    return {"transactional_id": None, "transaction_timeout_ms": 1000}


@case(ApiKey.INIT_PRODUCER_ID, Need(WRITE, TRANSACTIONAL_ID, OWN), kind="in-transaction")
def init_producer_id_in_transaction(cell: Cell) -> dict[str, Any]:
    return {"transactional_id": cell.own, "transaction_timeout_ms": 1000}


OF_PRODUCER = {"producer_id": 4711, "producer_epoch": 0}


@case(
    ApiKey.ADD_PARTITIONS_TO_TXN,
    Need(WRITE, TRANSACTIONAL_ID, OWN),
    Need(WRITE, TOPIC, SHARED),
    Need(WRITE, TOPIC, OTHER),
    until=3,
)
def add_partitions_to_txn(cell: Cell) -> dict[str, Any]:
    return {
        "v3_and_below_transactional_id": cell.own,
        "v3_and_below_producer_id": 4711,
        "v3_and_below_topics": [{"name": name, "partitions": [0]} for name in (SHARED, OTHER)],
    }


@case(
    ApiKey.ADD_PARTITIONS_TO_TXN,
    Need(WRITE, TRANSACTIONAL_ID, OWN),
    Need(WRITE, TOPIC, "__consumer_offsets"),
    kind="internal",
    until=3,
)
def add_internal_partitions_to_txn(cell: Cell) -> dict[str, Any]:
    topics = [{"name": "__consumer_offsets", "partitions": [0]}]
    return {
        "v3_and_below_transactional_id": cell.own,
        "v3_and_below_producer_id": 4711,
        "v3_and_below_topics": topics,
    }


@case(ApiKey.ADD_PARTITIONS_TO_TXN, Need(CLUSTER_ACTION, CLUSTER), kind="of-a-broker", since=4)
def add_partitions_to_txn_of_a_broker(cell: Cell) -> dict[str, Any]:
    topics = [{"name": SHARED, "partitions": [0]}]
    return {"transactions": [{"transactional_id": cell.own, **OF_PRODUCER, "topics": topics}]}


@case(ApiKey.ADD_OFFSETS_TO_TXN, Need(WRITE, TRANSACTIONAL_ID, OWN), Need(READ, GROUP, OWN))
def add_offsets_to_txn(cell: Cell) -> dict[str, Any]:
    return {"transactional_id": cell.own, **OF_PRODUCER, "group_id": cell.own}


@case(
    ApiKey.TXN_OFFSET_COMMIT,
    Need(WRITE, TRANSACTIONAL_ID, OWN),
    Need(READ, GROUP, OWN),
    Need(READ, TOPIC, SHARED),
)
def txn_offset_commit(cell: Cell) -> dict[str, Any]:
    topics = [
        partitions(name, committed_offset=1, committed_metadata="") for name in (SHARED, OTHER, "missing")
    ]
    return {"transactional_id": cell.own, "group_id": cell.own, **OF_PRODUCER, "topics": topics}


@case(ApiKey.END_TXN, Need(WRITE, TRANSACTIONAL_ID, OWN))
def end_txn(cell: Cell) -> dict[str, Any]:
    return {"transactional_id": cell.own, **OF_PRODUCER, "committed": True}


@case(ApiKey.WRITE_TXN_MARKERS, Need(ALTER, CLUSTER))
@case(ApiKey.WRITE_TXN_MARKERS, Need(CLUSTER_ACTION, CLUSTER), kind="of-a-broker")
def write_txn_markers(cell: Cell) -> dict[str, Any]:
    topics = [{"name": "missing", "partition_indexes": [0]}]
    return {"markers": [{**OF_PRODUCER, "topics": topics}]}


@case(ApiKey.DESCRIBE_TRANSACTIONS, Need(DESCRIBE, TRANSACTIONAL_ID, "begun"), Need(DESCRIBE, TOPIC, SHARED))
def describe_transactions(cell: Cell) -> dict[str, Any]:
    return {"transactional_ids": ["begun", "another"]}


@case(ApiKey.LIST_TRANSACTIONS, Need(DESCRIBE, TRANSACTIONAL_ID, "begun"))
def list_transactions(cell: Cell) -> dict[str, Any]:
    return {}


# ---- configs


RESOURCES = ((2, SHARED), (2, OTHER), (4, "1"), (32, SHARED), (8, "1"))
CONFIG = {2: "retention.ms", 4: "log.cleaner.threads", 8: "root", 32: "share.assignment.interval.ms"}


@case(
    ApiKey.DESCRIBE_CONFIGS,
    Need(DESCRIBE_CONFIGS, TOPIC, SHARED),
    Need(DESCRIBE_CONFIGS, GROUP, SHARED),
    Need(DESCRIBE_CONFIGS, CLUSTER),
)
@case(ApiKey.DESCRIBE_CONFIGS, Need(ALTER_CONFIGS, TOPIC, SHARED), kind="of-who-may-alter")
def describe_configs(cell: Cell) -> dict[str, Any]:
    resources = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": ["none"]}
        for kind, name in RESOURCES
    ]
    return {"resources": resources}


def _altered(value: str) -> dict[str, Any]:
    resources = [
        {"resource_type": kind, "resource_name": name, "configs": [{"name": CONFIG[kind], "value": value}]}
        for kind, name in RESOURCES[:4]
    ]
    return {"resources": resources, "validate_only": True}


@case(
    ApiKey.ALTER_CONFIGS,
    Need(ALTER_CONFIGS, TOPIC, SHARED),
    Need(ALTER_CONFIGS, GROUP, SHARED),
    Need(ALTER_CONFIGS, CLUSTER),
)
@case(
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    Need(ALTER_CONFIGS, TOPIC, SHARED),
    Need(ALTER_CONFIGS, GROUP, SHARED),
    Need(ALTER_CONFIGS, CLUSTER),
)
def alter_configs(cell: Cell) -> dict[str, Any]:
    return _altered("1")


@case(ApiKey.INCREMENTAL_ALTER_CONFIGS, Need(ALTER_CONFIGS, CLUSTER), kind="of-a-logger")
def alter_loggers(cell: Cell) -> dict[str, Any]:
    config = {"name": "root", "config_operation": 0, "value": "INFO"}
    return {
        "resources": [{"resource_type": 8, "resource_name": "1", "configs": [config]}],
        "validate_only": True,
    }


@case(ApiKey.LIST_CONFIG_RESOURCES, Need(DESCRIBE_CONFIGS, CLUSTER))
def list_config_resources(cell: Cell) -> dict[str, Any]:
    return {"resource_types": [4]}


@case(ApiKey.DESCRIBE_CLIENT_QUOTAS, Need(DESCRIBE_CONFIGS, CLUSTER))
def describe_client_quotas(cell: Cell) -> dict[str, Any]:
    return {"components": [{"entity_type": "user", "match_type": 0, "match": "nobody"}]}


@case(ApiKey.ALTER_CLIENT_QUOTAS, Need(ALTER_CONFIGS, CLUSTER))
def alter_client_quotas(cell: Cell) -> dict[str, Any]:
    entity = [{"entity_type": "user", "entity_name": "nobody"}]
    ops = [{"key": "producer_byte_rate", "value": 1000.0}]
    return {"entries": [{"entity": entity, "ops": ops}], "validate_only": True}


# ---- the cluster


@case(ApiKey.DESCRIBE_CLUSTER, Need(DESCRIBE, CLUSTER))
@case(ApiKey.DESCRIBE_CLUSTER, Need(ALTER, CLUSTER), kind="of-who-may-alter")
def describe_cluster(cell: Cell) -> dict[str, Any]:
    return {"include_cluster_authorized_operations": True, "endpoint_type": 1}


FILTER = {
    "resource_type_filter": 2,
    "resource_name_filter": "of-nobody",
    "pattern_type_filter": 3,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


@case(ApiKey.DESCRIBE_ACLS, Need(DESCRIBE, CLUSTER))
def describe_acls(cell: Cell) -> dict[str, Any]:
    return {**FILTER, "resource_name_filter": "no such topic"}


@case(ApiKey.CREATE_ACLS, Need(ALTER, CLUSTER))
def create_acls(cell: Cell) -> dict[str, Any]:
    about = {"resource_type": 2, "resource_name": "of-nobody", "principal": "User:nobody", "host": "*"}
    return {"creations": [{**about, "operation": 3, "permission_type": 3}]}


@case(ApiKey.DELETE_ACLS, Need(ALTER, CLUSTER))
def delete_acls(cell: Cell) -> dict[str, Any]:
    return {"filters": [{**FILTER, "resource_name_filter": "no such topic"}]}


@case(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, Need(DESCRIBE, CLUSTER))
def describe_user_scram_credentials(cell: Cell) -> dict[str, Any]:
    return {"users": [{"name": "nobody"}]}


@case(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, Need(ALTER, CLUSTER))
def alter_user_scram_credentials(cell: Cell) -> dict[str, Any]:
    return {"deletions": [{"name": "nobody", "mechanism": 1}], "upsertions": []}


@case(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, Need(ALTER, CLUSTER))
def alter_user_scram_credentials_with_passwords(cell: Cell) -> dict[str, Any]:
    salted = {"mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"s" * 32}
    users = [{"name": name, **salted} for name in (f"{cell.own}.b", f"{cell.own}.a")]
    return {"deletions": [], "upsertions": users}


@case(ApiKey.DESCRIBE_LOG_DIRS, Need(DESCRIBE, CLUSTER))
def describe_log_dirs(cell: Cell) -> dict[str, Any]:
    return {"topics": []}


@case(ApiKey.ALTER_REPLICA_LOG_DIRS, Need(ALTER, CLUSTER))
def alter_replica_log_dirs(cell: Cell) -> dict[str, Any]:
    return {"dirs": [{"path": "/nowhere", "topics": [{"name": SHARED, "partitions": [0]}]}]}


@case(ApiKey.ELECT_LEADERS, Need(ALTER, CLUSTER))
def elect_leaders(cell: Cell) -> dict[str, Any]:
    return {"topic_partitions": [{"topic": SHARED, "partitions": [0]}], "timeout_ms": 5000}


@case(ApiKey.ALTER_PARTITION_REASSIGNMENTS, Need(ALTER, CLUSTER))
def alter_partition_reassignments(cell: Cell) -> dict[str, Any]:
    return {"topics": [{"name": SHARED, "partitions": [{"partition_index": 0, "replicas": None}]}]}


@case(ApiKey.LIST_PARTITION_REASSIGNMENTS, Need(DESCRIBE, CLUSTER))
def list_partition_reassignments(cell: Cell) -> dict[str, Any]:
    return {"topics": [{"name": SHARED, "partition_indexes": [0]}]}


@case(ApiKey.DESCRIBE_QUORUM, Need(DESCRIBE, CLUSTER))
def describe_quorum(cell: Cell) -> dict[str, Any]:
    return {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}


@case(ApiKey.UPDATE_FEATURES, Need(ALTER, CLUSTER))
def update_features(cell: Cell) -> dict[str, Any]:
    return {
        "feature_updates": [{"feature": "nothing.version", "max_version_level": 1}],
        "validate_only": True,
    }


@case(ApiKey.UNREGISTER_BROKER, Need(ALTER, CLUSTER))
def unregister_broker(cell: Cell) -> dict[str, Any]:
    return {"broker_id": 77}


@case(ApiKey.UNREGISTER_CONTROLLER, Need(ALTER, CLUSTER))
def unregister_controller(cell: Cell) -> dict[str, Any]:
    return {"controller_id": 77}


@case(ApiKey.ADD_RAFT_VOTER, Need(ALTER, CLUSTER))
@case(ApiKey.REMOVE_RAFT_VOTER, Need(ALTER, CLUSTER))
def raft_voter(cell: Cell) -> dict[str, Any]:
    return {"cluster_id": None, "voter_id": -1}


# ---- whoever asks


@case(ApiKey.API_VERSIONS)
def api_versions(cell: Cell) -> dict[str, Any]:
    return {"client_software_name": "matrix", "client_software_version": "1"}
