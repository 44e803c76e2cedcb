"""Several kshim in front of one upstream, as clients see them."""

from __future__ import annotations

from kshim.configs.endpoint import Endpoint
from kshim.upstream.fellows import FIRST_NODE_ID, new_fellow, with_fellows
from schemas.api_key import ApiKey
from schemas.messages.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from schemas.messages.metadata import MetadataResponse, MetadataResponseBroker
from schemas.messages.produce import ProduceResponse

A = new_fellow({"PLAIN": Endpoint("a", 9092), "TLS": Endpoint("a", 9094)})
B = new_fellow({"PLAIN": Endpoint("b", 9092)})
BROKER = MetadataResponseBroker(node_id=1, host="a", port=9092)


def test_a_kshim_has_the_same_node_id_wherever_it_is_asked_for() -> None:
    again = new_fellow({"TLS": Endpoint("a", 9094), "PLAIN": Endpoint("a", 9092)})
    assert again.node_id == A.node_id != B.node_id
    assert FIRST_NODE_ID <= A.node_id < 1 << 31


def test_they_are_among_the_brokers() -> None:
    found = with_fellows(ApiKey.METADATA, MetadataResponse(brokers=(BROKER,)), (A, B), "PLAIN")
    assert found.brokers == (
        BROKER,
        MetadataResponseBroker(node_id=A.node_id, host="a", port=9092),
        MetadataResponseBroker(node_id=B.node_id, host="b", port=9092),
    )
    found = with_fellows(ApiKey.DESCRIBE_CLUSTER, DescribeClusterResponse(), (B,), "PLAIN")
    assert found.brokers == (DescribeClusterBroker(broker_id=B.node_id, host="b", port=9092),)


def test_each_at_the_listener_by_which_the_client_has_come() -> None:
    found = with_fellows(ApiKey.METADATA, MetadataResponse(brokers=(BROKER,)), (A, B), "TLS")
    assert found.brokers[1:] == (MetadataResponseBroker(node_id=A.node_id, host="a", port=9094),)


def test_whoever_is_alone_changes_nothing() -> None:
    response, produced = MetadataResponse(brokers=(BROKER,)), ProduceResponse()
    assert with_fellows(ApiKey.METADATA, response, (), "PLAIN") is response
    assert with_fellows(ApiKey.PRODUCE, produced, (A, B), "PLAIN") is produced
