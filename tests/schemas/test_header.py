"""Request and response headers, version by version."""

import pytest

from schemas.api_key import ApiKey
from schemas.compiled import decode, encode
from schemas.header import RequestHeader, ResponseHeader, request_header_version, response_header_version

HEADER = RequestHeader(api_key=12, api_version=4, correlation_id=7, client_id="me")


@pytest.mark.parametrize(
    ("version", "header", "data"),
    [
        (1, HEADER, "000c 0004 00000007 00026d65"),
        (2, HEADER, "000c 0004 00000007 00026d65 00"),
        (1, RequestHeader(client_id=None), "0000 0000 00000000 ffff"),
        (2, RequestHeader(client_id=None), "0000 0000 00000000 ffff 00"),
    ],
)
def test_client_id_is_never_compact(version: int, header: RequestHeader, data: str) -> None:
    assert encode(header, version) == bytes.fromhex(data)
    assert decode(RequestHeader, version, bytes.fromhex(data)) == header


def test_response_header() -> None:
    assert encode(ResponseHeader(correlation_id=-2), 0) == bytes.fromhex("fffffffe")
    assert encode(ResponseHeader(correlation_id=-2), 1) == bytes.fromhex("fffffffe 00")


def test_version_follows_from_flexible_except_for_api_versions() -> None:
    assert [request_header_version(it) for it in (False, True)] == [1, 2]
    assert [response_header_version(ApiKey.HEARTBEAT, it) for it in (False, True)] == [0, 1]
    assert [response_header_version(ApiKey.API_VERSIONS, it) for it in (False, True)] == [0, 0]
