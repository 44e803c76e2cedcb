"""The APIs that Apache Kafka serves and kshim does not, each with the reason.

A test compares them with Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from schemas.api_key import ApiKey

_TOKENS = "delegation tokens (KIP-48) are not built yet"
_SHARE_GROUPS = "share groups (KIP-932) are not built yet"
_SHARE_STATE = "brokers ask each other this about share groups (KIP-932), which are not built yet"
_STREAMS_GROUPS = "streams groups (KIP-1071) are not built yet"

_KAFKA_4_2: Final[Mapping[ApiKey, tuple[range, str]]] = {
    ApiKey.CREATE_DELEGATION_TOKEN: (range(1, 4), _TOKENS),
    ApiKey.RENEW_DELEGATION_TOKEN: (range(1, 3), _TOKENS),
    ApiKey.EXPIRE_DELEGATION_TOKEN: (range(1, 3), _TOKENS),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (range(1, 4), _TOKENS),
    ApiKey.SHARE_GROUP_HEARTBEAT: (range(1, 2), _SHARE_GROUPS),
    ApiKey.SHARE_GROUP_DESCRIBE: (range(1, 2), _SHARE_GROUPS),
    ApiKey.SHARE_FETCH: (range(1, 3), _SHARE_GROUPS),
    ApiKey.SHARE_ACKNOWLEDGE: (range(1, 3), _SHARE_GROUPS),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: (range(1), _SHARE_STATE),
    ApiKey.READ_SHARE_GROUP_STATE: (range(1), _SHARE_STATE),
    ApiKey.WRITE_SHARE_GROUP_STATE: (range(2), _SHARE_STATE),
    ApiKey.DELETE_SHARE_GROUP_STATE: (range(1), _SHARE_STATE),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: (range(2), _SHARE_STATE),
    ApiKey.STREAMS_GROUP_HEARTBEAT: (range(1), _STREAMS_GROUPS),
    ApiKey.STREAMS_GROUP_DESCRIBE: (range(1), _STREAMS_GROUPS),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (range(2), _SHARE_GROUPS),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: (range(1), _SHARE_GROUPS),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: (range(1), _SHARE_GROUPS),
}

_KAFKA_4_4: Final[Mapping[ApiKey, tuple[range, str]]] = {
    **_KAFKA_4_2,
    ApiKey.STREAMS_GROUP_HEARTBEAT: (range(2), _STREAMS_GROUPS),
    ApiKey.STREAMS_GROUP_DESCRIBE: (range(2), _STREAMS_GROUPS),
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: (range(1), _STREAMS_GROUPS),
}

UNSERVED: Final[Mapping[str, Mapping[ApiKey, tuple[range, str]]]] = {
    "4.2": _KAFKA_4_2,
    "4.3": _KAFKA_4_2,
    "4.4": _KAFKA_4_4,
}
"""For each version of Apache Kafka, and each API: the versions that Kafka announces, and why kshim lacks it.
"""

TELEMETRY: Final = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)
"""APIs that Apache Kafka announces only with a plug-in that receives clients' metrics (KIP-714)."""
