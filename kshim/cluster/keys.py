"""The keys of the cluster's state in the metadata of the store. A key that ends with "/" is a prefix."""

from __future__ import annotations

from typing import Final

CLUSTER_ID: Final = b"cluster/id"
METADATA_OFFSET: Final = b"cluster/metadata_offset"
"""The number of changes that were made durable, and the leader epoch of the last one."""
FEATURES: Final = b"cluster/features"
"""The version in use of each feature."""
NEXT_PARTITION_NO: Final = b"cluster/next_partition_no"
NEXT_PRODUCER_ID: Final = b"cluster/next_producer_id"
TOPIC: Final = b"topic/"
"""The topic's name follows."""
DELETED: Final = b"deleted_partition/"
"""The partition_no of a deleted partition follows. Its records are still to be deleted."""
CLIENT_QUOTAS: Final = b"client_quotas/"
"""`client_quotas.stored_key` of an entity follows."""
ACL: Final = b"acl/"
"""`acl.stored_key` of an ACL follows."""
BROKER_CONFIGS: Final = b"broker_configs/"
"""A node id follows, or nothing for the configs of all brokers."""
GROUP_CONFIGS: Final = b"group_configs/"
"""`group_configs.stored_key` of a group id follows."""
SCRAM_CREDENTIALS: Final = b"scram_credentials/"
"""`scram_users.stored_key` of a user and a mechanism follows."""
SCRAM_SECRET: Final = b"scram_secret"
"""The secret from which the credentials of unknown users are invented."""
