"""Stories of administrators of the cluster itself. Each runs at every version of its API."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from integration.differential.stories.admin import (
    APPEND,
    BROKER,
    DELETE,
    SET,
    SUBTRACT,
    alter,
    create,
    made,
    new,
)
from integration.differential.stories.admin_talk import Admin, story
from schemas.api_key import ApiKey
from schemas.messages import describe_quorum as quorum
from schemas.messages.add_raft_voter import AddRaftVoterRequest, Listener
from schemas.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from schemas.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from schemas.messages.describe_log_dirs import DescribeLogDirsRequest
from schemas.messages.remove_raft_voter import RemoveRaftVoterRequest
from schemas.messages.unregister_broker import UnregisterBrokerRequest
from schemas.messages.unregister_controller import UnregisterControllerRequest
from schemas.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

CLUSTER_METADATA, TRANSACTION_VERSION = "__cluster_metadata", "transaction.version"
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
NO_CONTROLLERS = "D-no-controllers"
NOT_HERE = (
    "eligible.leader.replicas.version group.version kraft.version metadata.version share.version "
    "streams.version"
).split()
"""Features that only Apache Kafka has."""
DIRECTORY, NO_DIRECTORY = UUID(int=77), UUID(int=0)
FEATURES = ApiVersionsRequest(client_software_name="story", client_software_version="1")

ALLOWING_DOWNGRADES = UpdateFeaturesRequest(
    feature_updates=(
        FeatureUpdateKey(feature=TRANSACTION_VERSION, max_version_level=1, allow_downgrade=True),
    )
)

Update = tuple[str, int, int]


@story(ApiKey.DESCRIBE_QUORUM)
def the_quorum(admin: Admin) -> None:
    def of(*topics: tuple[str, Sequence[int]]) -> quorum.DescribeQuorumRequest:
        return quorum.DescribeQuorumRequest(
            topics=tuple(
                quorum.RequestTopicData(
                    topic_name=name,
                    partitions=tuple(quorum.RequestPartitionData(partition_index=it) for it in indexes),
                )
                for name, indexes in topics
            )
        )

    admin.look(of((CLUSTER_METADATA, (0,))), meant=NO_CONTROLLERS if admin.version >= 2 else "")
    admin.look(of((CLUSTER_METADATA, (0,))), only="topics")
    asked: Sequence[Sequence[tuple[str, Sequence[int]]]] = [
        [],
        [(CLUSTER_METADATA, ())],
        [(CLUSTER_METADATA, (1,))],
        [(CLUSTER_METADATA, (-1,))],
        [(CLUSTER_METADATA, (0, 1))],
        [(CLUSTER_METADATA, (0, 0))],
        [(CLUSTER_METADATA, (0,)), (CLUSTER_METADATA, (0,))],
        [(CLUSTER_METADATA, (0,)), ("t", (0,))],
        [(CLUSTER_METADATA, (0,)), ("t", ())],
        [("t", ()), (CLUSTER_METADATA, (0,))],
        [("t", (0, 3))],
        [("", ())],
    ]
    for topics in asked:
        admin.look(of(*topics))


def updating(*updates: Update, validate_only: bool = False) -> UpdateFeaturesRequest:
    return UpdateFeaturesRequest(
        feature_updates=tuple(
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level, kind in updates
        ),
        validate_only=validate_only,
    )


@story(ApiKey.UPDATE_FEATURES)
def features(admin: Admin) -> None:
    """The end undoes every change. v0 can only upgrade, and names no kind of change."""
    steps: Sequence[Sequence[Update]] = [
        [(TRANSACTION_VERSION, 1, UPGRADE)],
        [(TRANSACTION_VERSION, 1, SAFE_DOWNGRADE)],
        [(TRANSACTION_VERSION, 2, SAFE_DOWNGRADE)],
        [(TRANSACTION_VERSION, 1, UNSAFE_DOWNGRADE)],
        [(TRANSACTION_VERSION, 0, UNSAFE_DOWNGRADE)],
        [(TRANSACTION_VERSION, 2, UPGRADE), ("no.such", 1, UPGRADE)],
        [(TRANSACTION_VERSION, 1, UPGRADE)],
        [(TRANSACTION_VERSION, 0, SAFE_DOWNGRADE), (TRANSACTION_VERSION, 2, UPGRADE)],
        [],
        [(TRANSACTION_VERSION, 2, UPGRADE)],
    ]
    for updates in steps:
        admin.change(updating(*updates, validate_only=True))
        admin.change(updating(*updates))
        admin.look(FEATURES, version=4, only="finalized_features", but_for=NOT_HERE)
    admin.look(FEATURES, version=4, only="supported_features", but_for=NOT_HERE)


@story(ApiKey.UPDATE_FEATURES)
def bad_updates_of_features(admin: Admin) -> None:
    for name in (TRANSACTION_VERSION, "no.such", ""):
        for level in (3, 1, 0, -1):
            for kind in (0, UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, 4, -1):
                admin.change(updating((name, level, kind), validate_only=True))
    admin.change(ALLOWING_DOWNGRADES, version=0)
    admin.look(FEATURES, version=4, only="finalized_features", but_for=NOT_HERE)


@story(ApiKey.UNREGISTER_BROKER)
def brokers_that_are_not_registered(admin: Admin) -> None:
    for node_id in (0, 2, -1, 2**31 - 1):
        admin.change(UnregisterBrokerRequest(broker_id=node_id))


@story(ApiKey.UNREGISTER_CONTROLLER)
def controllers_to_forget(admin: Admin) -> None:
    for node_id in (1, 0, 2, -1, 2**31 - 1):
        admin.change(UnregisterControllerRequest(controller_id=node_id))


@story(ApiKey.ADD_RAFT_VOTER)
def new_voters(admin: Admin) -> None:
    controller, other = Listener(name="Controller", host="h", port=1), Listener(name="x", host="::1", port=2)
    later = Listener(name="X", host="", port=65535)
    for cluster_id in (admin.cluster_id(), None, "", "another"):
        for node_id, directory in ((1, DIRECTORY), (2, DIRECTORY), (-1, DIRECTORY), (2, NO_DIRECTORY)):
            for listeners in ((controller,), (controller, other), (), (other,), (other, later)):
                admin.change(
                    AddRaftVoterRequest(
                        cluster_id=cluster_id,
                        timeout_ms=-1,
                        voter_id=node_id,
                        voter_directory_id=directory,
                        listeners=listeners,
                    )
                )


@story(ApiKey.REMOVE_RAFT_VOTER)
def voters_to_remove(admin: Admin) -> None:
    for cluster_id in (admin.cluster_id(), None, "", "another"):
        for node_id, directory in ((1, DIRECTORY), (2, DIRECTORY), (-1, DIRECTORY), (1, NO_DIRECTORY)):
            admin.change(
                RemoveRaftVoterRequest(cluster_id=cluster_id, voter_id=node_id, voter_directory_id=directory)
            )


def moving(*dirs: tuple[str, Sequence[tuple[str, Sequence[int]]]]) -> AlterReplicaLogDirsRequest:
    return AlterReplicaLogDirsRequest(
        dirs=tuple(
            AlterReplicaLogDir(
                path=path,
                topics=tuple(
                    AlterReplicaLogDirTopic(name=name, partitions=tuple(indexes)) for name, indexes in topics
                ),
            )
            for path, topics in dirs
        )
    )


@story(ApiKey.ALTER_REPLICA_LOG_DIRS)
def replicas_in_directories(admin: Admin) -> None:
    t, here = admin.topic("t"), admin.log_dir()
    made(admin, new(t, 2), new("x" * 212), new("x" * 213), new("x" * 214))
    asked: Sequence[Sequence[tuple[str, Sequence[tuple[str, Sequence[int]]]]]] = [
        [],
        [(here, [])],
        [(here, [(t, ())])],
        [(here, [(t, (0, 1))])],
        [(here, [(t, (0, 0))])],
        [(here, [(t, (7, -1))])],
        [(here, [("nope", (0, -1)), ("", (0,)), ("a b", (0,)), ("__cluster_metadata", (0,))])],
        [(here, [(t, (1,)), ("nope", (0,)), (t, (0,))])],
        [(here, [(t, (0,))]), (here, [(t, (1,))])],
        [(here, [(t, (0,))]), ("/nowhere", [(t, (0,))])],
        [("/nowhere", [(t, (0,))]), (here, [(t, (0,))])],
        *(
            [(path, [(t, (0,)), ("nope", (0,))])]
            for path in (f"{here}/", f"{here}/.", "/nowhere", "nowhere", "")
        ),
        *(
            [(path, [("x" * size, (0,))])]
            for size in (212, 213, 214, 249, 250)
            for path in (here, "/nowhere")
        ),
        [(here, [("x" * 212, (10,))])],
    ]
    for dirs in asked:
        admin.change(moving(*dirs))


@story(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def cordoned_directories(admin: Admin) -> None:
    t, config, here = admin.topic("t"), "cordoned.log.dirs", admin.log_dir()
    made(admin, new(t, 1))
    reassignment = AlterPartitionReassignmentsRequest(
        timeout_ms=10_000,
        topics=(
            ReassignableTopic(name=t, partitions=(ReassignablePartition(partition_index=0, replicas=(1,)),)),
        ),
    )

    def grow(assignments: tuple[CreatePartitionsAssignment, ...] | None) -> CreatePartitionsRequest:
        topic = CreatePartitionsTopic(name=t, count=2, assignments=assignments)
        return CreatePartitionsRequest(topics=(topic,), timeout_ms=10_000, validate_only=True)

    def look() -> None:
        """Ask until the controller has heard of it from the broker."""
        admin.look(DescribeLogDirsRequest(topics=()), version=5)
        for topic in (new("a"), new("a", 1, 2), new("a", 0, 1), new("a", -1, -1, [(0, [1])])):
            admin.look(create(topic, validate_only=True), version=4)
        for replicas in ([2], [1, 1], [1, 2], [0, 1], [1, 1, 2], [1]):
            assigned = new("a", -1, -1, [(0, replicas)])
            admin.look(create(assigned, validate_only=True), version=4)
        admin.look(grow(None), version=3)
        admin.look(grow((CreatePartitionsAssignment(broker_ids=(1,)),)), version=3)
        admin.change(reassignment, version=0)

    for name in ("1", ""):
        for value in (
            "/nowhere",
            f"{here},/nowhere",
            "/a, /b",
            f"{here},*",
            "*,*",
            "/a,",
            "",
            None,
            here,
            f" {here}",
        ):
            admin.change(alter((BROKER, name, [(config, SET, value)]), validate_only=True))
        for operation in (APPEND, SUBTRACT):
            for value in ("*", "/nowhere", here):
                admin.change(alter((BROKER, name, [(config, operation, value)]), validate_only=True))
    for value in ("*", here):
        admin.change(alter((BROKER, "1", [(config, SET, value)])))
        look()
        admin.change(alter((BROKER, "1", [(config, DELETE, None)])))
        look()
