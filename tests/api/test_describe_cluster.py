"""DescribeCluster: brokers and what the caller may do. The facts are Apache Kafka 4.2's."""

from __future__ import annotations

import pytest

from kshim.api.describe_cluster import describe_cluster
from schemas.error_code import ErrorCode
from schemas.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest
from tests.api.harness import ask, new_broker


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_brokers(version: int) -> None:
    broker = new_broker(node_id=4)
    request = DescribeClusterRequest(include_cluster_authorized_operations=False)
    response = ask(describe_cluster, broker, request, version)
    assert (response.error_code, response.endpoint_type) == (0, 1)
    assert (response.cluster_id, response.controller_id) == (broker.cluster.cluster_id, 4)
    here = DescribeClusterBroker(broker_id=4, host="kshim.example", port=9092, rack=None, is_fenced=False)
    assert response.brokers == (here,)
    assert response.cluster_authorized_operations == -(1 << 31)


def test_operations_if_asked_for() -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert ask(describe_cluster, new_broker(), request, 1).cluster_authorized_operations == 8096


@pytest.mark.parametrize(
    ("endpoint_type", "error"),
    [
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_there_are_only_brokers(endpoint_type: int, error: ErrorCode) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=endpoint_type)
    response = ask(describe_cluster, new_broker(), request, 1)
    assert (response.error_code, response.cluster_id, response.brokers) == (error, "", ())
    assert (response.controller_id, response.endpoint_type) == (-1, 1)
