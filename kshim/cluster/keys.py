"""The keys under which the cluster keeps what it knows, in the metadata of the store."""

from __future__ import annotations

from typing import Final

CLUSTER_ID: Final = b"cluster/id"
METADATA_OFFSET: Final = b"cluster/metadata_offset"
"""The number of changes that were made durable, and the leader epoch of the last one."""
FEATURES: Final = b"cluster/features"
"""The version at which each feature is used."""
NEXT_PARTITION_NO: Final = b"cluster/next_partition_no"
NEXT_PRODUCER_ID: Final = b"cluster/next_producer_id"
TOPIC: Final = b"topic/"
"""Then the topic's name."""
DELETED: Final = b"deleted_partition/"
"""Then a partition_no whose records are still to be deleted."""
CLIENT_QUOTAS: Final = b"client_quotas/"
"""Then `client_quotas.stored_key` of an entity."""
ACL: Final = b"acl/"
"""Then `acl.stored_key` of an ACL."""
BROKER_CONFIGS: Final = b"broker_configs/"
"""Then a node id, or nothing for the configs of all brokers."""
SCRAM_CREDENTIALS: Final = b"scram_credentials/"
"""Then `scram_users.stored_key` of a user and a mechanism."""
SCRAM_SECRET: Final = b"scram_secret"
"""From which the credentials of unknown users are invented."""
