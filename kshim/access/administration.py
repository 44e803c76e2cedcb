"""Rules for administrators' requests. Kafka writes the refusal of each in a different way."""

from __future__ import annotations

from collections.abc import Awaitable

from kshim.access.asker import Asker
from kshim.access.rules import Perform, needs
from kshim.cluster.acl import AclOperation, AclResource
from schemas.error_code import ErrorCode
from schemas.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from schemas.messages.describe_client_quotas import DescribeClientQuotasResponse
from schemas.messages.describe_log_dirs import DescribeLogDirsResponse
from schemas.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from schemas.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from schemas.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

ALTER, DESCRIBE = AclOperation.ALTER, AclOperation.DESCRIBE
CLUSTER = AclResource.CLUSTER
DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
FIRST_VERSION_OF_LOG_DIRS_WITH_ERROR = 3


def describe_log_dirs(
    asker: Asker, request: object, perform: Perform[object, DescribeLogDirsResponse]
) -> DescribeLogDirsResponse | Awaitable[DescribeLogDirsResponse]:
    """Refuse without any directory. Below v3 the answer has no place for the error."""
    if asker.may(DESCRIBE, CLUSTER):
        return perform(request)
    with_error = asker.version >= FIRST_VERSION_OF_LOG_DIRS_WITH_ERROR
    return DescribeLogDirsResponse(error_code=DENIED if with_error else ErrorCode.NONE, results=())


def elect_leaders(
    asker: Asker, request: ElectLeadersRequest, perform: Perform[ElectLeadersRequest, ElectLeadersResponse]
) -> ElectLeadersResponse | Awaitable[ElectLeadersResponse]:
    """Refuse with the error for the whole request and for each partition."""
    if asker.may(ALTER, CLUSTER):
        return perform(request)
    return ElectLeadersResponse(
        error_code=DENIED,
        replica_election_results=tuple(
            ReplicaElectionResult(
                topic=topic.topic,
                partition_result=tuple(
                    PartitionResult(partition_id=index, error_code=DENIED, error_message=needs(ALTER))
                    for index in topic.partitions
                ),
            )
            for topic in request.topic_partitions or ()
        ),
    )


def alter_partition_reassignments(
    asker: Asker,
    request: AlterPartitionReassignmentsRequest,
    perform: Perform[AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse],
) -> AlterPartitionReassignmentsResponse | Awaitable[AlterPartitionReassignmentsResponse]:
    """Refuse with the error for the whole request and for each partition."""
    if asker.may(ALTER, CLUSTER):
        return perform(request)
    message = needs(ALTER)
    return AlterPartitionReassignmentsResponse(
        error_code=DENIED,
        error_message=message,
        responses=tuple(
            ReassignableTopicResponse(
                name=topic.name,
                partitions=tuple(
                    ReassignablePartitionResponse(
                        partition_index=each.partition_index, error_code=DENIED, error_message=message
                    )
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def list_partition_reassignments(
    asker: Asker,
    request: ListPartitionReassignmentsRequest,
    perform: Perform[ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse],
) -> ListPartitionReassignmentsResponse | Awaitable[ListPartitionReassignmentsResponse]:
    """Refuse, and repeat the requested partitions without replicas."""
    if asker.may(DESCRIBE, CLUSTER):
        return perform(request)
    return ListPartitionReassignmentsResponse(
        error_code=DENIED,
        error_message=needs(DESCRIBE),
        topics=tuple(
            OngoingTopicReassignment(
                name=topic.name,
                partitions=tuple(
                    OngoingPartitionReassignment(partition_index=index) for index in topic.partition_indexes
                ),
            )
            for topic in request.topics or ()
        ),
    )


def describe_client_quotas(
    asker: Asker, request: object, perform: Perform[object, DescribeClientQuotasResponse]
) -> DescribeClientQuotasResponse | Awaitable[DescribeClientQuotasResponse]:
    """Refuse, with null entries."""
    if asker.may(AclOperation.DESCRIBE_CONFIGS, CLUSTER):
        return perform(request)
    return DescribeClientQuotasResponse(error_code=DENIED, error_message=None, entries=None)


def describe_user_scram_credentials(
    asker: Asker,
    request: DescribeUserScramCredentialsRequest,
    perform: Perform[DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse],
) -> DescribeUserScramCredentialsResponse | Awaitable[DescribeUserScramCredentialsResponse]:
    """Refuse, with a result without a name for each requested user."""
    if asker.may(DESCRIBE, CLUSTER):
        return perform(request)
    result = DescribeUserScramCredentialsResult(error_code=DENIED, error_message=None)
    return DescribeUserScramCredentialsResponse(
        error_code=DENIED, error_message=None, results=(result,) * len(request.users or ())
    )
