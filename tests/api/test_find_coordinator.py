"""FindCoordinator: the broker that leads the key's partition, at an address that the client can reach."""

from typing import Any

import pytest

from kshim.api.find_coordinator import find_coordinator
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from tests.api.groups import Groups, versions
from tests.api.harness import HeldStore, ask, collect, context, new_broker

VERSIONS = versions(ApiKey.FIND_COORDINATOR)
ONE_KEY, MANY_KEYS = [v for v in VERSIONS if v < 4], [v for v in VERSIONS if v >= 4]


@pytest.fixture(scope="module")
def groups() -> Groups:
    return Groups()


@pytest.mark.parametrize("version", ONE_KEY)
def test_one_key(groups: Groups, version: int) -> None:
    answer = groups.ask(FindCoordinatorRequest(key="group"), version)
    assert (answer.error_code, answer.node_id) == (ErrorCode.NONE, groups.broker.node_id)
    assert (answer.host, answer.port) == ("kshim.example", 9092)
    if version >= 1:
        assert answer.error_message == "NONE", "as in Apache Kafka"


@pytest.mark.parametrize("version", MANY_KEYS)
def test_many_keys(groups: Groups, version: int) -> None:
    answer = groups.ask(FindCoordinatorRequest(coordinator_keys=("a", "", "a")), version)
    here = {"node_id": groups.broker.node_id, "host": "kshim.example", "port": 9092}
    assert answer == FindCoordinatorResponse(
        coordinators=tuple(
            Coordinator(key=key, **here, error_code=ErrorCode.NONE, error_message="")
            for key in ("a", "", "a")
        )
    )


@pytest.mark.parametrize("version", MANY_KEYS)
@pytest.mark.parametrize("key_type", [0, 1, 9])
def test_no_keys(groups: Groups, version: int, key_type: int) -> None:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=())
    assert groups.ask(request, version) == FindCoordinatorResponse()
    assert "__transaction_state" not in groups.broker.cluster.topics


@pytest.mark.parametrize("version", [v for v in VERSIONS if v >= 1])
def test_the_first_request_for_transactions_creates_their_topic(version: int) -> None:
    asker = Groups(transaction_state_log_num_partitions=7)
    request = FindCoordinatorRequest(key="tx", key_type=1, coordinator_keys=("tx",))
    for _ in range(2):
        answer = asker.ask(request, version)
        entry = answer if version < 4 else answer.coordinators[0]
        assert (entry.error_code, entry.node_id, entry.host) == (0, asker.broker.node_id, "kshim.example")
    topic = asker.broker.cluster.topics["__transaction_state"]
    assert (len(topic.partitions), topic.is_internal) == (7, True)
    assert topic.configs["cleanup.policy"] == "compact"


def test_a_topic_that_cannot_be_made_is_asked_for_again() -> None:
    store = HeldStore()
    broker = new_broker(store)
    request = FindCoordinatorRequest(key="tx", key_type=1)
    first = collect(find_coordinator(broker, context(1), request))
    store.fail()
    assert (first[0].error_code, first[0].node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
    again = collect(find_coordinator(broker, context(1), request))
    store.release()
    assert (again[0].error_code, again[0].node_id) == (ErrorCode.NONE, broker.node_id)


@pytest.mark.parametrize("version", [v for v in VERSIONS if v >= 1])
@pytest.mark.parametrize(
    ("key_type", "error"),
    [
        (2, ErrorCode.INVALID_REQUEST),
        (3, ErrorCode.INVALID_REQUEST),
        (-1, ErrorCode.INVALID_REQUEST),
    ],
)
def test_other_kinds_of_keys(groups: Groups, version: int, key_type: int, error: ErrorCode) -> None:
    answer = groups.ask(FindCoordinatorRequest(key="k", key_type=key_type, coordinator_keys=("k",)), version)
    entry = answer if version < 4 else answer.coordinators[0]
    assert (entry.error_code, entry.node_id, entry.host, entry.port) == (error, -1, "", -1)
    assert entry.error_message


def test_who_asks_for_its_coordinator_again_and_again_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    broker = new_broker()
    clock: Any = broker.clock
    caplog.clear()
    for _ in range(8):
        ask(find_coordinator, broker, FindCoordinatorRequest(key="readers"), 2)
        clock.advance(2)
    (message,) = caplog.messages
    assert "asked 6 times in 10 s where the brokers are, and never came to kshim.example:9092: " in message
