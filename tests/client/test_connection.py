"""A client's connection to a broker that is played by hand."""

from __future__ import annotations

import socket
import ssl
from typing import Any

import pytest

from kshim.client.connection import Connection
from kshim.client.faults import ClientError, Unreachable
from kshim.client.settings import ClientSettings
from kshim.configs.endpoint import Endpoint
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.api_versions import ApiVersion, ApiVersionsResponse
from schemas.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from schemas.registry import VERSIONS, encode_response
from tests.client.broker import PlayedBroker

GROUPS = ListGroupsResponse(groups=(ListedGroup(group_id="g", protocol_type="consumer"),))


def connect(broker: PlayedBroker, **more: Any) -> Connection:
    settings = broker.settings(**more)
    return Connection(settings.bootstrap[0], settings)


def test_a_request_is_answered_in_the_newest_version_of_both() -> None:
    versions = {**VERSIONS, ApiKey.LIST_GROUPS: range(1, 4)}
    with PlayedBroker({ApiKey.LIST_GROUPS: lambda header, request: GROUPS}, versions) as broker:
        connection = connect(broker, client_id="me")
        assert connection.ask(ListGroupsRequest()).groups[0].group_id == "g"
        ((header, _),) = broker.requests
        assert (header.api_version, header.client_id) == (3, "me")
        connection.close()


def test_responses_come_in_the_order_of_the_requests() -> None:
    answers = iter(("a", "b"))

    def answer(header: Any, request: Any) -> ListGroupsResponse:
        return ListGroupsResponse(groups=(ListedGroup(group_id=next(answers), protocol_type=""),))

    with PlayedBroker({ApiKey.LIST_GROUPS: answer}) as broker:
        connection = connect(broker)
        connection.send(ListGroupsRequest())
        connection.send(ListGroupsRequest())
        assert connection.under_way == 2
        assert [connection.receive().groups[0].group_id for _ in "ab"] == ["a", "b"]
        connection.close()


def test_an_older_broker_is_asked_for_its_versions_again() -> None:
    asked = []

    def older(header: Any, request: Any) -> Any:
        asked.append(header.api_version)
        own = (ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=2),)
        if header.api_version <= 2:
            return ApiVersionsResponse(api_keys=own)
        refused = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own)
        data = encode_response(ApiKey.API_VERSIONS, 0, header.correlation_id, refused)
        return len(data).to_bytes(4) + data

    with PlayedBroker({ApiKey.API_VERSIONS: older}) as broker:
        connection = connect(broker)
        assert asked == [5, 2]
        with pytest.raises(ClientError, match="serves no version of ListGroups that kshim knows"):
            connection.ask(ListGroupsRequest())
        connection.close()


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak Kafka's protocol: it begins with b'HTTP/1.1"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "speaks TLS at this port (security.protocol)"),
        (None, "closed the connection without an answer: is security.protocol right?"),
    ],
)
def test_another_protocol_is_one_line_that_names_the_broker(sent: bytes | None, why: str) -> None:
    with PlayedBroker({ApiKey.API_VERSIONS: lambda header, request: sent}) as broker:
        with pytest.raises(ClientError) as failed:
            connect(broker)
        assert str(failed.value).startswith(f"broker 127.0.0.1:{broker.port} {why}")


def test_tls_to_a_broker_without_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = ClientSettings(bootstrap=[], timeout_s=0.2, tls=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        with pytest.raises(ClientError, match="does not go on with TLS"):
            Connection(Endpoint("127.0.0.1", silent.getsockname()[1]), settings)


def test_a_port_where_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = Endpoint("127.0.0.1", closed.getsockname()[1])
    with pytest.raises(Unreachable, match=f"broker {address} cannot be reached: Connection refused"):
        Connection(address, ClientSettings(bootstrap=[address]))


def test_a_broker_that_does_not_answer_in_time() -> None:
    with PlayedBroker({ApiKey.LIST_GROUPS: lambda header, request: b""}) as broker:
        connection = connect(broker)
        with pytest.raises(Unreachable, match=r"has not answered ListGroups within 0\.1 s"):
            connection.ask(ListGroupsRequest(), timeout_s=0.1)
        connection.close()


def test_a_connection_that_is_lost_between_two_requests() -> None:
    with PlayedBroker({ApiKey.LIST_GROUPS: lambda header, request: None}) as broker:
        connection = connect(broker)
        with pytest.raises(Unreachable, match="closed the connection"):
            connection.ask(ListGroupsRequest())
        connection.close()
