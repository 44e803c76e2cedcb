"""`TABLE`: for each API, whether its requests pass through to the upstream or are answered by kshim.

The announced versions, the handling of each request, and the table in docs/upstream.md follow from it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import NamedTuple

from kshim.api.api_versions import ANNOUNCED
from schemas.api_key import ApiKey
from schemas.messages.api_versions import ApiVersion


class Way(Enum):
    """How requests of an API are handled. The values are the words of docs/upstream.md."""

    FORWARDED = "passes through as it is, in both directions"
    REWRITTEN = "passes through; kshim rewrites the answer"
    COORDINATOR = "passes through as it is, to the upstream's coordinator of its group"
    OURS = "answered by kshim"
    HIDDEN = (
        "not announced; kshim closes the connection of a client that sends it, like a broker that does not "
        "know it"
    )


class Entry(NamedTuple):
    """The handling of one API."""

    way: Way
    why: str = ""
    """What is rewritten, or why requests are not simply forwarded."""
    newest: int = 32767
    """The newest version to announce, if both sides know it."""


_FORWARDED = Entry(Way.FORWARDED)
_GROUP = Entry(Way.OURS, "groups are kshim's own")
_BOTH_SIDES = Entry(Way.OURS, "kshim asks the upstream about groups that it does not know")
_ADDRESSES = Entry(Way.REWRITTEN, "the brokers get kshim's addresses")
_LOGIN = Entry(
    Way.OURS, "clients log in to kshim, and kshim to the upstream; or kshim relays the client's login"
)
_SHARE = Entry(Way.COORDINATOR, "share groups are the upstream's")
_STREAMS = Entry(Way.COORDINATOR, "streams groups are the upstream's")
_LEADERS = Entry(Way.REWRITTEN, "new leaders get kshim's addresses")
_TOKENS = Entry(Way.HIDDEN, "a token would log in to the upstream, but clients may log in to kshim")
BETWEEN_BROKERS = Entry(Way.HIDDEN, "not for clients")

TABLE: Mapping[ApiKey, Entry] = {
    ApiKey.PRODUCE: Entry(Way.REWRITTEN, "new leaders (from v10 on) get kshim's addresses"),
    ApiKey.FETCH: Entry(
        Way.FORWARDED, "the newest versions only add addresses to answers of many megabytes", newest=15
    ),
    ApiKey.LIST_OFFSETS: _FORWARDED,
    ApiKey.METADATA: Entry(
        Way.REWRITTEN, "the brokers get kshim's addresses; kshim's own topic is marked internal"
    ),
    ApiKey.OFFSET_COMMIT: _GROUP,
    ApiKey.OFFSET_FETCH: Entry(
        Way.OURS,
        "groups are kshim's own; kshim asks the upstream for all offsets of a group that it does not know",
    ),
    ApiKey.FIND_COORDINATOR: Entry(
        Way.REWRITTEN, "for a group, kshim answers; in other answers, the brokers get kshim's addresses"
    ),
    ApiKey.JOIN_GROUP: _GROUP,
    ApiKey.HEARTBEAT: _GROUP,
    ApiKey.LEAVE_GROUP: _GROUP,
    ApiKey.SYNC_GROUP: _GROUP,
    ApiKey.DESCRIBE_GROUPS: _BOTH_SIDES,
    ApiKey.LIST_GROUPS: _BOTH_SIDES,
    ApiKey.SASL_HANDSHAKE: _LOGIN,
    ApiKey.API_VERSIONS: Entry(Way.REWRITTEN, "the versions and features that both sides know"),
    ApiKey.CREATE_TOPICS: _FORWARDED,
    ApiKey.DELETE_TOPICS: _FORWARDED,
    ApiKey.DELETE_RECORDS: _FORWARDED,
    ApiKey.INIT_PRODUCER_ID: _FORWARDED,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _FORWARDED,
    ApiKey.ADD_PARTITIONS_TO_TXN: _FORWARDED,
    ApiKey.ADD_OFFSETS_TO_TXN: Entry(
        Way.REWRITTEN,
        "sent as AddPartitionsToTxn, so that the transaction's marker is written to the group's shard, too;"
        " also sent as it is for a group that may be the upstream's",
    ),
    ApiKey.END_TXN: _FORWARDED,
    ApiKey.WRITE_TXN_MARKERS: _FORWARDED,
    ApiKey.TXN_OFFSET_COMMIT: _GROUP,
    ApiKey.DESCRIBE_ACLS: _FORWARDED,
    ApiKey.CREATE_ACLS: _FORWARDED,
    ApiKey.DELETE_ACLS: _FORWARDED,
    ApiKey.DESCRIBE_CONFIGS: _FORWARDED,
    ApiKey.ALTER_CONFIGS: _FORWARDED,
    ApiKey.ALTER_REPLICA_LOG_DIRS: _FORWARDED,
    ApiKey.DESCRIBE_LOG_DIRS: _FORWARDED,
    ApiKey.SASL_AUTHENTICATE: _LOGIN,
    ApiKey.CREATE_PARTITIONS: _FORWARDED,
    ApiKey.CREATE_DELEGATION_TOKEN: _TOKENS,
    ApiKey.RENEW_DELEGATION_TOKEN: _TOKENS,
    ApiKey.EXPIRE_DELEGATION_TOKEN: _TOKENS,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: _TOKENS,
    ApiKey.DELETE_GROUPS: _BOTH_SIDES,
    ApiKey.ELECT_LEADERS: _FORWARDED,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _FORWARDED,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _FORWARDED,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: _FORWARDED,
    ApiKey.OFFSET_DELETE: _BOTH_SIDES,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _FORWARDED,
    ApiKey.ALTER_CLIENT_QUOTAS: _FORWARDED,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _FORWARDED,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _FORWARDED,
    ApiKey.DESCRIBE_QUORUM: _FORWARDED,
    ApiKey.UPDATE_FEATURES: _FORWARDED,
    ApiKey.DESCRIBE_CLUSTER: _ADDRESSES,
    ApiKey.DESCRIBE_PRODUCERS: _FORWARDED,
    ApiKey.UNREGISTER_BROKER: _FORWARDED,
    ApiKey.UNREGISTER_CONTROLLER: _FORWARDED,
    ApiKey.DESCRIBE_TRANSACTIONS: _FORWARDED,
    ApiKey.LIST_TRANSACTIONS: _FORWARDED,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Entry(
        Way.OURS,
        "groups are kshim's own; without `consumer` in `upstream.groups.protocols` it goes to the upstream's"
        " coordinator",
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: _BOTH_SIDES,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: _FORWARDED,
    ApiKey.PUSH_TELEMETRY: _FORWARDED,
    ApiKey.LIST_CONFIG_RESOURCES: _FORWARDED,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Entry(Way.REWRITTEN, "kshim's own topic is marked internal"),
    ApiKey.SHARE_GROUP_HEARTBEAT: _SHARE,
    ApiKey.SHARE_GROUP_DESCRIBE: _SHARE,
    ApiKey.SHARE_FETCH: _LEADERS,
    ApiKey.SHARE_ACKNOWLEDGE: _LEADERS,
    ApiKey.ADD_RAFT_VOTER: _FORWARDED,
    ApiKey.REMOVE_RAFT_VOTER: _FORWARDED,
    ApiKey.STREAMS_GROUP_HEARTBEAT: _STREAMS,
    ApiKey.STREAMS_GROUP_DESCRIBE: _STREAMS,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: _SHARE,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: _SHARE,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: _SHARE,
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: _STREAMS,
}
"""The entries by API. An API without an entry is BETWEEN_BROKERS."""

PASSED: Mapping[int, range] = {
    api_key: range(ours.start, min(ours.stop, entry.newest + 1))
    for api_key, entry in TABLE.items()
    for ours in (ANNOUNCED.get(api_key, range(entry.newest + 1)),)
}
"""The versions of each API that may be announced, if the upstream serves them."""


def entry(api_key: ApiKey) -> Entry:
    """Return the entry of an API."""
    return TABLE.get(api_key, BETWEEN_BROKERS)


def announced(upstream: Mapping[int, range], passed: Collection[int] = ()) -> tuple[ApiVersion, ...]:
    """The versions to announce to clients, if the upstream serves the versions `upstream`.

    passed: APIs that the upstream answers, though kshim could. An API that `schemas` does not know passes
    through in every version.
    """
    found = []
    for api_key, (way, _, newest) in sorted(TABLE.items()):
        if way is Way.HIDDEN:
            continue
        ours = ANNOUNCED.get(api_key)
        theirs = ours if way is Way.OURS and api_key not in passed else upstream.get(api_key)
        if theirs is None:
            continue
        ours = ours or theirs
        first, last = max(ours.start, theirs.start), min(ours.stop - 1, theirs.stop - 1, newest)
        if first <= last:
            found.append(ApiVersion(api_key=api_key, min_version=first, max_version=last))
    return tuple(found)
