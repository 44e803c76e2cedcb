"""From a frame to a message and back, for every message in the table."""

import random
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas import registry
from schemas.api_key import ApiKey
from schemas.compiled import encoder
from schemas.header import RequestHeader
from schemas.message import MalformedMessage, definition
from schemas.messages import fetch, join_group
from schemas.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from schemas.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from schemas.pieces import Pieces
from schemas.registry import (
    MESSAGES,
    VERSIONS,
    UnsupportedVersion,
    decode_request,
    decode_request_header,
    decode_response,
    encode_reply,
    encode_request,
    encode_response,
)
from tests.schemas.strategies import messages

pytestmark = pytest.mark.thorough

EVERY_VERSION = pytest.mark.parametrize(
    ("api_key", "version"), [(key, version) for key, versions in VERSIONS.items() for version in versions]
)
FEW = settings(max_examples=2, deadline=None, database=None, suppress_health_check=list(HealthCheck))
HEADER = RequestHeader(api_key=12, api_version=4, correlation_id=7, client_id="me")
HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
FRAME = bytes.fromhex("000c 0004 00000007 00026d65 00  0267 00000001 026d 00 00")


def test_the_table_names_each_class_under_its_key() -> None:
    for key, (request, response) in MESSAGES.items():
        assert definition(request).api_key == definition(response).api_key == key
        assert definition(request).versions == definition(response).versions == VERSIONS[key]
        assert definition(request).flexible == definition(response).flexible
        assert request.__name__.removesuffix("Request") == response.__name__.removesuffix("Response")


def test_a_frame_and_its_message() -> None:
    assert encode_request(HEADER, HEARTBEAT) == FRAME
    assert decode_request(FRAME) == (HEADER, HEARTBEAT)
    assert decode_request(memoryview(FRAME)) == (HEADER, HEARTBEAT)
    assert decode_request_header(FRAME) == (HEADER, 13)
    assert decode_request_header(memoryview(FRAME)) == (HEADER, 13)


def test_a_response_and_its_header() -> None:
    response = HeartbeatResponse(error_code=27)
    flexible = bytes.fromhex("00000007 00  00000000 001b 00")
    assert encode_response(ApiKey.HEARTBEAT, 4, 7, response) == flexible
    assert encode_response(12, 0, -1, response) == bytes.fromhex("ffffffff 001b")
    assert decode_response(12, 4, flexible) == (7, response)
    with pytest.raises(MalformedMessage, match=r"HeartbeatResponse v4 at byte 12: 1 bytes too many"):
        decode_response(12, 4, flexible + b"\0")


def test_the_api_versions_response_has_no_tags_in_its_header() -> None:
    frame = encode_response(ApiKey.API_VERSIONS, 3, 7, ApiVersionsResponse())
    assert frame == bytes.fromhex("00000007  0000 01 00000000 00")
    assert decode_response(ApiKey.API_VERSIONS, 3, frame) == (7, ApiVersionsResponse())
    request = encode_request(RequestHeader(api_key=18, api_version=3, client_id=None), ApiVersionsRequest())
    assert request == bytes.fromhex("0012 0003 00000000 ffff 00  01 01 00")


@EVERY_VERSION
@FEW
@given(data=st.data())
def test_requests_and_responses_come_back(api_key: ApiKey, version: int, data: st.DataObject) -> None:
    request, response = (data.draw(messages(cls, version)) for cls in MESSAGES[api_key])
    header = RequestHeader(api_key=api_key, api_version=version, correlation_id=-7, client_id="ü")
    frame = encode_request(header, request)
    assert decode_request(frame) == (header, request)
    assert decode_response(api_key, version, encode_response(api_key, version, 9, response)) == (9, response)
    for end in random.Random(len(frame)).sample(range(len(frame)), min(len(frame), 50)):
        with pytest.raises(MalformedMessage):
            decode_request(frame[:end])
    assert decode_request(frame + b"abc") == (header, request)  # some bodies of librdkafka end in such bytes


def test_unknown_tags_of_header_and_body_come_back() -> None:
    header = RequestHeader(api_key=12, api_version=4, unknown_tags=((0, b"x"), (9, b"")))
    request = HeartbeatRequest(unknown_tags=((3, b"y"),))
    assert decode_request(encode_request(header, request)) == (header, request)


@pytest.mark.parametrize(
    ("start", "name"),
    [
        ("000c 0005", "HEARTBEAT v5"),
        ("000c ffff", "HEARTBEAT v-1"),
        ("0000 0002", "PRODUCE v2"),
        ("0012 7fff", "API_VERSIONS v32767"),
        ("0004 0000", "LEADER_AND_ISR v0"),
        ("03e7 0000", "api key 999 v0"),
        ("ffff 0000", "api key -1 v0"),
    ],
)
def test_what_is_not_in_the_table(start: str, name: str) -> None:
    frame = bytes.fromhex(start + "00000007 00026d65 00") + b"whatever follows"
    with pytest.raises(UnsupportedVersion, match=f"^{name}.api_version at byte 2: unsupported$") as caught:
        decode_request(frame)
    header = caught.value.header
    assert (header.correlation_id, header.client_id) == (7, "me")
    assert decode_request_header(frame) == (header, 13 if name.startswith("API_VERSIONS") else 12)


@pytest.mark.parametrize(
    ("data", "field", "offset"),
    [
        ("", "api_key", 0),
        ("00", "api_key", 0),
        ("000c 00", "api_version", 2),
        ("000c 0001 000000", "correlation_id", 4),
        ("000c 0001 00000000", "client_id", 8),
        ("000c 0001 00000000 0005 61", "client_id", 10),
        ("0012 7fff 00000000 ffff 01", "tagged fields", 11),
        ("000c 0004 00000000 ffff", "tagged fields", 10),
        ("03e7 0000 0000", "correlation_id", 4),
    ],
)
def test_a_header_that_cannot_be_read(data: str, field: str, offset: int) -> None:
    for decode in (decode_request, decode_request_header):
        with pytest.raises(MalformedMessage) as caught:
            decode(bytes.fromhex(data))
        assert not isinstance(caught.value, UnsupportedVersion)
        assert (caught.value.api, caught.value.field, caught.value.offset) == ("RequestHeader", field, offset)


def test_random_bytes_are_refused_or_read() -> None:
    chance = random.Random(11)
    for _ in range(3000):
        key = chance.choice([*VERSIONS, 4, 999])
        version = chance.choice(VERSIONS.get(key, range(3)))
        start = key.to_bytes(2) + version.to_bytes(2) + chance.randbytes(4) + b"\xff\xff\0"
        frame = start + chance.choice([chance.randbytes(40), bytes(chance.choices((0, 1, 2, 3), k=40))])
        with suppress(MalformedMessage):
            decode_request(frame)


def test_nothing_is_kept_for_frames_that_are_not_in_the_table() -> None:
    before = dict(registry._decoders)
    for start in range(1000):
        with pytest.raises(MalformedMessage):
            decode_request(start.to_bytes(2) + b"\x40\0" + bytes(10))
    assert registry._decoders == before


def test_a_value_that_the_version_cannot_carry() -> None:
    broken: Any = HeartbeatResponse(error_code=40000)
    with pytest.raises(ValueError, match=r"^HeartbeatResponse v4\.throttle_time_ms, error_code: "):
        encode_response(12, 4, 7, broken)


@pytest.mark.parametrize("version", VERSIONS[ApiKey.FETCH])
def test_records_leave_as_they_are(version: int) -> None:
    records = bytes(1_000_000)
    partition = fetch.PartitionData(partition_index=0, high_watermark=1, records=records)
    response = fetch.FetchResponse(responses=(fetch.FetchableTopicResponse(partitions=(partition,)),))
    pieces = encode_reply(ApiKey.FETCH, version, 7, response)
    assert isinstance(pieces, Pieces)
    assert any(piece is records for piece in pieces)
    assert bytes(pieces) == encode_response(ApiKey.FETCH, version, 7, response)
    header = (7).to_bytes(4) + b"\0" * definition(fetch.FetchResponse).is_flexible(version)
    assert bytes(pieces) == encoder(fetch.FetchResponse, version)(response, header)
    assert len(pieces) == len(bytes(pieces))


@pytest.mark.parametrize("decode_frame", [bytes, bytearray, memoryview])
def test_a_request_is_read_the_same_from_any_memory(decode_frame: Any) -> None:
    header = RequestHeader(
        api_key=11, api_version=9, correlation_id=1, client_id="c", unknown_tags=((3, b"x"),)
    )
    protocol = join_group.JoinGroupRequestProtocol(name="range", metadata=b"\0\1")
    frame = encode_request(header, join_group.JoinGroupRequest(group_id="g", protocols=(protocol,)))
    found = decode_request(decode_frame(frame))
    assert found == decode_request(frame)
    assert type(found[1].protocols[0].metadata) is bytes
    assert type(found[0].unknown_tags[0][1]) is bytes
