"""Several kshim in front of one upstream, as clients see them."""

from __future__ import annotations

import pytest

from kshim.configs.endpoint import Endpoint
from kshim.upstream.fellows import (
    FIRST_NODE_ID,
    REMEMBERED_S,
    Gone,
    fault_in_reach,
    new_fellow,
    with_fellows,
)
from schemas.api_key import ApiKey
from schemas.messages.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from schemas.messages.metadata import MetadataResponse, MetadataResponseBroker, MetadataResponseTopic
from schemas.messages.produce import ProduceResponse

A = new_fellow({"PLAIN": Endpoint("a", 9092), "TLS": Endpoint("a", 9094)})
B = new_fellow({"PLAIN": Endpoint("b", 9092)})
BROKER = MetadataResponseBroker(node_id=1, host="a", port=9092)


def test_a_kshim_has_the_same_node_id_wherever_it_is_asked_for() -> None:
    again = new_fellow({"TLS": Endpoint("a", 9094), "PLAIN": Endpoint("a", 9092)})
    assert again.node_id == A.node_id != B.node_id
    assert FIRST_NODE_ID <= A.node_id < 1 << 31


def test_they_are_among_the_brokers() -> None:
    found = with_fellows(ApiKey.METADATA, MetadataResponse(brokers=(BROKER,)), (A, B), (), "PLAIN")
    assert found.brokers == (
        BROKER,
        MetadataResponseBroker(node_id=A.node_id, host="a", port=9092),
        MetadataResponseBroker(node_id=B.node_id, host="b", port=9092),
    )
    found = with_fellows(ApiKey.DESCRIBE_CLUSTER, DescribeClusterResponse(), (B,), (), "PLAIN")
    assert found.brokers == (DescribeClusterBroker(broker_id=B.node_id, host="b", port=9092),)


def test_each_at_the_listener_by_which_the_client_has_come() -> None:
    found = with_fellows(ApiKey.METADATA, MetadataResponse(brokers=(BROKER,)), (A, B), (), "TLS")
    assert found.brokers[1:] == (MetadataResponseBroker(node_id=A.node_id, host="a", port=9094),)


def test_whoever_is_alone_changes_nothing() -> None:
    response, produced = MetadataResponse(brokers=(BROKER,)), ProduceResponse()
    assert with_fellows(ApiKey.METADATA, response, (), (), "PLAIN") is response
    assert with_fellows(ApiKey.PRODUCE, produced, (A, B), (), "PLAIN") is produced


def test_whoever_asks_for_topics_is_told_of_those_that_have_gone() -> None:
    asked = MetadataResponse(brokers=(BROKER,), topics=(MetadataResponseTopic(name="orders"),))
    found = with_fellows(ApiKey.METADATA, asked, (), (B,), "PLAIN")
    assert found.brokers == (BROKER, MetadataResponseBroker(node_id=B.node_id, host="b", port=9092))


def test_whoever_asks_for_brokers_is_told_of_those_that_run() -> None:
    for api_key, response in (
        (ApiKey.METADATA, MetadataResponse(brokers=(BROKER,))),
        (ApiKey.DESCRIBE_CLUSTER, DescribeClusterResponse()),
    ):
        assert with_fellows(api_key, response, (), (B,), "PLAIN") is response


def test_those_that_have_gone_are_known_until_they_are_back_or_a_while_is_over() -> None:
    gone = Gone()
    gone.note((), (A, B), 0)
    assert gone.at(1) == ()
    gone.note((A, B), (A,), 10)
    assert gone.at(10) == (B,)
    gone.note((A,), (A,), 20)
    assert (gone.at(9 + REMEMBERED_S), gone.at(10 + REMEMBERED_S)) == ((B,), ())
    gone.note((A,), (A, B), 30)
    assert gone.at(30) == ()
    gone.note((A, B), (A,), 40)
    gone.note((A,), (A,), 41 + REMEMBERED_S)
    assert gone.at(50) == ()


@pytest.mark.parametrize(
    ("host", "at"),
    [("0.0.0.0", "0.0.0.0:9092"), ("::", "[::]:9092"), ("0:0::0", "[0:0::0]:9092"), ("", ":9092")],
)
def test_several_have_addresses_to_connect_to(host: str, at: str) -> None:
    everywhere = new_fellow({"TLS": Endpoint("c", 9094), "PLAIN": Endpoint(host, 9092)})
    assert not everywhere.is_reached
    assert fault_in_reach([everywhere]) == "", "whoever is alone needs none"
    for others in ([A], [A, B], [everywhere]):
        assert fault_in_reach([*others, everywhere]) == (
            f"several kshim share the groups, and {at}, where one of them listens, is no address for the "
            "clients of the others: start it with --advertise HOST:PORT (advertised.listeners)"
        )
    assert fault_in_reach([A, B]) == ""
