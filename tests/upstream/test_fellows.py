"""Several kshim in front of one upstream, as clients see them."""

from __future__ import annotations

import pytest

from kshim.configs.endpoint import Endpoint
from kshim.configs.host_pattern import HostPattern
from kshim.upstream.fellows import (
    FIRST_NODE_ID,
    REMEMBERED_S,
    Gone,
    fault_in_reach,
    new_fellow,
    place_at,
    port_id,
    with_fellows,
)
from kshim.upstream.shards.said import Said, decode_said, encode_said
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


def test_a_port_has_a_node_id_for_each_kshim_and_broker() -> None:
    again = new_fellow({"PLAIN": Endpoint("b", 9092)}, {1: 0, 2: 1})
    assert again == B
    ids = {port_id(fellow, broker_id) for fellow in (A, B) for broker_id in (1, 2)}
    assert len(ids | {A.node_id, B.node_id}) == 6
    assert port_id(again, 2) == port_id(B, 2)
    assert all(FIRST_NODE_ID <= each < 1 << 31 for each in ids)


def test_the_ports_of_all_are_among_the_brokers() -> None:
    """In Metadata, where librdkafka looks a coordinator up; tools that ask for brokers alone see no ports."""
    far = new_fellow({"PLAIN": Endpoint("b", 9092)}, {1: 2, 9: 0})
    found = with_fellows(ApiKey.METADATA, MetadataResponse(brokers=(BROKER,)), (A, far), (), "PLAIN")
    assert found.brokers[3:] == (MetadataResponseBroker(node_id=port_id(far, 1), host="b", port=9094),)
    found = with_fellows(ApiKey.DESCRIBE_CLUSTER, DescribeClusterResponse(), (A, far), (), "PLAIN")
    assert len(found.brokers) == 2


def test_brokers_that_share_a_port_of_a_kshim_are_found_by_name() -> None:
    addresses = {"SSL": Endpoint("k2.example.com", 9093), "PLAIN": Endpoint("k2", 9092)}
    far = new_fellow(addresses, {1: 2}, {"SSL": HostPattern("b$(nodeId).k2.example.com")})
    found = with_fellows(ApiKey.METADATA, MetadataResponse(brokers=(BROKER,)), (far,), (), "SSL")
    assert (found.brokers[-1].host, found.brokers[-1].port) == ("b1.k2.example.com", 9093)
    assert place_at(far, "SSL")(1, Endpoint("", 0)) == Endpoint("b1.k2.example.com", 9093)
    assert place_at(far, "PLAIN")(1, Endpoint("", 0)) == Endpoint("k2", 9094)
    assert place_at(far, "SSL")(9, Endpoint("", 0)) is None


def test_what_a_kshim_says_of_its_names_is_read() -> None:
    names = {"SSL": HostPattern("b$(nodeId).k2.example.com")}
    said = Said({"SSL": Endpoint("k2.example.com", 9093)}, 4, {}, {1: 0}, (), names)
    assert decode_said(encode_said(said)) == said
