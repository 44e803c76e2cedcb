"""UnregisterBroker: a broker that was stopped is forgotten until it is started again."""

from __future__ import annotations

from kshim.answering import Broker
from kshim.api.describe_cluster import describe_cluster
from kshim.api.unregister_broker import unregister_broker
from kshim.cluster.leaders import start_broker, stop_broker
from schemas.error_code import ErrorCode
from schemas.messages.describe_cluster import DescribeClusterRequest
from schemas.messages.unregister_broker import UnregisterBrokerRequest
from tests.api.harness import ask, new_broker, result


def unregister(broker: Broker, node_id: int) -> tuple[int, str | None]:
    response = ask(unregister_broker, broker, UnregisterBrokerRequest(broker_id=node_id), 0)
    return response.error_code, response.error_message


def registered(broker: Broker) -> list[tuple[int, bool]]:
    response = ask(describe_cluster, broker, DescribeClusterRequest(include_fenced_brokers=True), 2)
    return [(each.broker_id, each.is_fenced) for each in response.brokers]


def test_a_stopped_broker_is_forgotten_until_it_is_started() -> None:
    broker = new_broker(node_id=1, brokers=2)
    result(stop_broker(broker.cluster, 2))
    assert registered(broker) == [(1, False), (2, True)]
    assert unregister(broker, 2)[0] == ErrorCode.NONE
    assert registered(broker) == [(1, False)]
    unknown = (ErrorCode.BROKER_ID_NOT_REGISTERED, "Broker ID 2 is not currently registered")
    assert unregister(broker, 2) == unknown
    result(start_broker(broker.cluster, 2))
    assert registered(broker) == [(1, False), (2, False)]


def test_a_broker_that_runs_goes_on() -> None:
    broker = new_broker(node_id=1)
    assert unregister(broker, 1) == (ErrorCode.POLICY_VIOLATION, "Broker ID 1 is running")
    assert registered(broker) == [(1, False)]


def test_a_broker_that_there_never_was() -> None:
    for node_id in (0, -1, 2**31 - 1):
        message = f"Broker ID {node_id} is not currently registered"
        assert unregister(new_broker(node_id=1), node_id) == (ErrorCode.BROKER_ID_NOT_REGISTERED, message)
