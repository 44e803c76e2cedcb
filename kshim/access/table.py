"""The rights that each API needs: the operations and resources that Apache Kafka 4.4 checks, in its order.

Most APIs need a right for the whole request (`whole`) or for each entry (`each`). The special rules of the
others are in the modules about topics, groups, transactions, configs, lists and administration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kshim.access import administration, configs, groups, lists, topics, transactions
from kshim.access.rules import Need, Rule, each, whole
from kshim.cluster.acl import AclOperation, AclResource
from schemas.api_key import ApiKey

READ, WRITE, DELETE = AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE
ALTER, DESCRIBE = AclOperation.ALTER, AclOperation.DESCRIBE
DESCRIBE_CONFIGS, ALTER_CONFIGS = AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS
TOPIC, GROUP = AclResource.TOPIC, AclResource.GROUP
TRANSACTIONAL_ID = AclResource.TRANSACTIONAL_ID

OF_MEMBER: Final = whole(Need(READ, GROUP, "group_id"))
OF_TRANSACTION: Final = whole(Need(WRITE, TRANSACTIONAL_ID, "transactional_id"))
OF_GROUP_IN_TRANSACTION: Final = whole(
    Need(WRITE, TRANSACTIONAL_ID, "transactional_id"), Need(READ, GROUP, "group_id")
)
ALTERS, DESCRIBES = whole(Need(ALTER)), whole(Need(DESCRIBE))

FAILED: Final = "Cluster authorization failed."

TABLE: Final[Mapping[ApiKey, tuple[Rule, ...]]] = {
    # records
    ApiKey.PRODUCE: (topics.produce,),
    ApiKey.FETCH: (topics.fetch,),
    ApiKey.LIST_OFFSETS: (each("topics", DESCRIBE, TOPIC),),
    ApiKey.DELETE_RECORDS: (each("topics", DELETE, TOPIC),),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (topics.offset_for_leader_epoch,),
    ApiKey.DESCRIBE_PRODUCERS: (topics.describe_producers,),
    # topics
    ApiKey.METADATA: (lists.metadata,),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (lists.describe_topic_partitions,),
    ApiKey.CREATE_TOPICS: (topics.create_topics,),
    ApiKey.DELETE_TOPICS: (topics.delete_topics,),
    ApiKey.CREATE_PARTITIONS: (topics.create_partitions,),
    # groups
    ApiKey.FIND_COORDINATOR: (groups.find_coordinator,),
    ApiKey.JOIN_GROUP: (groups.join_group,),
    ApiKey.SYNC_GROUP: (groups.sync_group,),
    ApiKey.HEARTBEAT: (OF_MEMBER,),
    ApiKey.LEAVE_GROUP: (OF_MEMBER,),
    ApiKey.OFFSET_COMMIT: (OF_MEMBER, each("topics", READ, TOPIC)),
    ApiKey.OFFSET_FETCH: (groups.offset_fetch,),
    ApiKey.OFFSET_DELETE: (whole(Need(DELETE, GROUP, "group_id")), each("topics", READ, TOPIC)),
    ApiKey.DESCRIBE_GROUPS: (groups.describe_groups,),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (groups.consumer_group_heartbeat,),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (groups.consumer_group_describe,),
    ApiKey.LIST_GROUPS: (lists.list_groups,),
    ApiKey.DELETE_GROUPS: (each("groups_names", DELETE, GROUP),),
    # transactions
    ApiKey.INIT_PRODUCER_ID: (transactions.init_producer_id,),
    ApiKey.ADD_PARTITIONS_TO_TXN: (transactions.add_partitions_to_txn,),
    ApiKey.ADD_OFFSETS_TO_TXN: (OF_GROUP_IN_TRANSACTION,),
    ApiKey.TXN_OFFSET_COMMIT: (OF_GROUP_IN_TRANSACTION, each("topics", READ, TOPIC)),
    ApiKey.END_TXN: (OF_TRANSACTION,),
    ApiKey.WRITE_TXN_MARKERS: (transactions.write_txn_markers,),
    ApiKey.DESCRIBE_TRANSACTIONS: (transactions.describe_transactions,),
    ApiKey.LIST_TRANSACTIONS: (lists.list_transactions,),
    # configs
    ApiKey.DESCRIBE_CONFIGS: (configs.describe_configs,),
    ApiKey.ALTER_CONFIGS: (configs.alter_configs,),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (configs.alter_configs,),
    ApiKey.LIST_CONFIG_RESOURCES: (whole(Need(DESCRIBE_CONFIGS)),),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (administration.describe_client_quotas,),
    ApiKey.ALTER_CLIENT_QUOTAS: (whole(Need(ALTER_CONFIGS), message=FAILED),),
    # the cluster
    ApiKey.DESCRIBE_CLUSTER: (lists.describe_cluster,),
    ApiKey.DESCRIBE_ACLS: (DESCRIBES,),
    ApiKey.CREATE_ACLS: (ALTERS,),
    ApiKey.DELETE_ACLS: (ALTERS,),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (administration.describe_user_scram_credentials,),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (ALTERS,),
    ApiKey.DESCRIBE_LOG_DIRS: (administration.describe_log_dirs,),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (ALTERS,),
    ApiKey.ELECT_LEADERS: (administration.elect_leaders,),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (administration.alter_partition_reassignments,),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (administration.list_partition_reassignments,),
    ApiKey.DESCRIBE_QUORUM: (whole(Need(DESCRIBE), message=FAILED),),
    ApiKey.UPDATE_FEATURES: (ALTERS,),
    ApiKey.UNREGISTER_BROKER: (ALTERS,),
    ApiKey.UNREGISTER_CONTROLLER: (ALTERS,),
    ApiKey.ADD_RAFT_VOTER: (whole(Need(ALTER), message=FAILED),),
    ApiKey.REMOVE_RAFT_VOTER: (whole(Need(ALTER), message=FAILED),),
    # whoever asks
    ApiKey.API_VERSIONS: (),
    ApiKey.SASL_HANDSHAKE: (),
    ApiKey.SASL_AUTHENTICATE: (),
    ApiKey.SHARE_GROUP_HEARTBEAT: (),
    ApiKey.STREAMS_GROUP_HEARTBEAT: (),
}
"""The rules of each API that may be served, in the order in which they are applied."""
