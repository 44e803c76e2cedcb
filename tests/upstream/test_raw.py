"""Frames of requests about share groups and streams groups."""

from __future__ import annotations

from uuid import UUID

import pytest

from kshim.configs.endpoint import Endpoint
from kshim.upstream.raw import Unreadable, groups, joined, only, with_endpoints, written
from schemas.api_key import ApiKey
from schemas.header import RequestHeader
from schemas.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from schemas.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from schemas.registry import encode_request
from tests.upstream.raw_bytes import TAGS, request, string


def names(api_key: ApiKey, frame: bytes) -> list[str]:
    return [each.group_id for each in groups(api_key, frame)]


def header(api_key: ApiKey, version: int) -> RequestHeader:
    return RequestHeader(api_key=api_key, api_version=version, correlation_id=7, client_id="a client")


def test_the_group_of_a_heartbeat() -> None:
    share = ShareGroupHeartbeatRequest(group_id="g\u00e4", member_id="m", member_epoch=0)
    frame = encode_request(header(ApiKey.SHARE_GROUP_HEARTBEAT, 1), share)
    assert names(ApiKey.SHARE_GROUP_HEARTBEAT, frame) == ["g\u00e4"]
    streams = StreamsGroupHeartbeatRequest(group_id="s" * 200, member_id="m", member_epoch=0)
    frame = encode_request(header(ApiKey.STREAMS_GROUP_HEARTBEAT, 0), streams)
    assert names(ApiKey.STREAMS_GROUP_HEARTBEAT, frame) == ["s" * 200]


@pytest.mark.parametrize("client_id", [b"\xff\xff", b"\0\0", b"\0\3abc"])
def test_the_groups_of_a_description(client_id: bytes) -> None:
    body = written(2) + string("a") + string("b") + b"\1" + TAGS
    frame = request(ApiKey.SHARE_GROUP_DESCRIBE, body, client_id)
    assert names(ApiKey.SHARE_GROUP_DESCRIBE, frame) == ["a", "b"]
    one = only(ApiKey.SHARE_GROUP_DESCRIBE, frame, {"b"})
    assert one == request(ApiKey.SHARE_GROUP_DESCRIBE, written(1) + string("b") + b"\1" + TAGS, client_id)


def test_the_groups_whose_offsets_are_described() -> None:
    topics = written(1) + string("t") + written(2) + bytes(8) + TAGS
    first, second = string("a") + topics + TAGS, string("b") + b"\0" + TAGS
    frame = request(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, written(2) + first + second + TAGS)
    assert names(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, frame) == ["a", "b"]
    for group_id, kept in (("a", first), ("b", second)):
        one = only(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, frame, {group_id})
        assert one == request(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, written(1) + kept + TAGS)


@pytest.mark.parametrize("api_key", [ApiKey.ALTER_SHARE_GROUP_OFFSETS, ApiKey.DELETE_SHARE_GROUP_OFFSETS])
def test_the_group_whose_offsets_are_changed(api_key: ApiKey) -> None:
    assert names(api_key, request(api_key, string("g") + b"\1" + TAGS)) == ["g"]


@pytest.mark.parametrize(
    "body", [b"", b"\x05a", b"\xff\xff\xff\xff\xff\1", b"\3\xff\xff", written(1_000_000)]
)
def test_what_cannot_be_read(body: bytes) -> None:
    for api_key in (ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_DESCRIBE):
        with pytest.raises(Unreadable):
            groups(api_key, request(api_key, body))


def test_answers_about_several_groups_are_joined() -> None:
    head = (7).to_bytes(4) + TAGS + bytes(4)
    first, second = head + written(2) + b"AABB" + TAGS, head + written(1) + b"CC" + TAGS
    assert joined([first, second]) == head + written(3) + b"AABBCC" + TAGS


def endpoint(host: str, port: int) -> bytes:
    return (3).to_bytes(4) + string(host) + port.to_bytes(4) + b"\0" + TAGS


LEADER = bytes(8) + TAGS
UUID_BYTES = UUID(int=9).bytes


def fetched(version: int, *endpoints: bytes, records: bytes = b"\1\0" * 100) -> bytes:
    acquired = written(1) + bytes(18) + TAGS
    data = bytes(4) + b"\0\6" + string("not the leader") + b"\0\0" + b"\0" + LEADER
    partition = data + written(len(records)) + records + acquired + TAGS
    topics = written(1) + UUID_BYTES + written(1) + partition + TAGS
    head = (7).to_bytes(4) + TAGS + bytes(4) + b"\0\0" + b"\0" + bytes(4)
    return head + topics + written(len(endpoints)) + b"".join(endpoints) + TAGS


def acknowledged(version: int, *endpoints: bytes) -> bytes:
    partition = bytes(4) + b"\0\6" + b"\0" + LEADER + TAGS
    topics = written(1) + UUID_BYTES + written(1) + partition + TAGS
    head = (7).to_bytes(4) + TAGS + bytes(4) + b"\0\0" + b"\0" + (bytes(4) if version >= 2 else b"")
    return head + topics + written(len(endpoints)) + b"".join(endpoints) + TAGS


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("api_key", "made"),
    [(ApiKey.SHARE_FETCH, fetched), (ApiKey.SHARE_ACKNOWLEDGE, acknowledged)],
)
def test_new_leaders_are_at_kshims_ports(api_key: ApiKey, version: int, made: object) -> None:
    assert callable(made)
    asked = []

    def place(node_id: int, address: Endpoint) -> Endpoint | None:
        asked.append((node_id, address))
        return Endpoint("kshim.example.org", 19092) if address.port == 9092 else None

    plain = made(version)
    assert with_endpoints(api_key, version, plain, place) == plain
    assert not asked
    named = made(version, endpoint("10.0.0.3", 9092), endpoint("10.0.0.4", 1))
    found = with_endpoints(api_key, version, named, place)
    assert found == made(version, endpoint("kshim.example.org", 19092))
    assert asked == [(3, Endpoint("10.0.0.3", 9092)), (3, Endpoint("10.0.0.4", 1))]
    with pytest.raises(Unreadable):
        with_endpoints(api_key, version, named[:40], place)
