"""The first bytes of requests, read without decoding them: the same as what decoding finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.upstream import peek
from schemas.api_key import ApiKey
from schemas.header import RequestHeader
from schemas.messages.produce import ProduceRequest
from schemas.registry import VERSIONS, encode_request


def produce(version: int, client_id: str | None, transactional_id: str | None, acks: int) -> bytes:
    header = RequestHeader(
        api_key=ApiKey.PRODUCE, api_version=version, correlation_id=-5, client_id=client_id
    )
    return encode_request(header, ProduceRequest(transactional_id=transactional_id, acks=acks))


ids = st.none() | st.text(max_size=200)


@given(st.sampled_from(VERSIONS[ApiKey.PRODUCE]), ids, ids, st.sampled_from([-1, 0, 1]))
def test_a_produce(version: int, client_id: str | None, transactional_id: str | None, acks: int) -> None:
    frame = produce(version, client_id, transactional_id, acks)
    assert peek.head(frame) == (ApiKey.PRODUCE, version, -5)
    assert peek.client_id(frame) == (client_id or "")
    assert peek.acks(frame, version) == acks


def test_tagged_fields_of_the_header_are_skipped() -> None:
    frame = produce(9, "c", None, 1)
    behind_client_id = 8 + 2 + 1
    assert frame[behind_client_id] == 0
    tagged = frame[:behind_client_id] + b"\2\0\3abc\x81\1\0" + frame[behind_client_id + 1 :]
    assert peek.acks(tagged, 9) == 1


@pytest.mark.parametrize("version", [3, 9])
def test_what_is_cut_has_no_acks(version: int) -> None:
    frame = produce(version, "client", "transactional", -1)
    at = frame.index(b"\xff\xff", 8)
    for length in range(peek.HEAD_BYTES, at + 2):
        assert peek.acks(frame[:length], version) is None
    assert peek.acks(b"\0\0\0\x09\0\0\0\1\0\0" + b"\xff" * 20, 9) is None
