"""FindCoordinator: this broker, at the address where the client should connect."""

import pytest

from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from tests.api.groups import Groups, versions

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
        assert answer.error_message == "NONE", "as Apache Kafka says it"


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
def test_no_keys(groups: Groups, version: int) -> None:
    assert groups.ask(FindCoordinatorRequest(coordinator_keys=()), version) == FindCoordinatorResponse()


@pytest.mark.parametrize("version", [v for v in VERSIONS if v >= 1])
@pytest.mark.parametrize(
    ("key_type", "error"),
    [
        (1, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
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
