"""Members of groups that are not served are refused as by Apache Kafka, and the log says what to change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kshim.api.api_versions import REFUSED
from kshim.callers.mistake import Mistake
from kshim.network.dispatch import API
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.registry import MESSAGES, encode_response
from tests.api.harness import ask, context, new_broker

SAYS = {
    ApiKey.SHARE_GROUP_HEARTBEAT: Mistake.SHARE_GROUP,
    ApiKey.STREAMS_GROUP_HEARTBEAT: Mistake.STREAMS_PROTOCOL,
}
KAFKA_4_4 = {
    ApiKey.SHARE_GROUP_HEARTBEAT: "00000007 00 00000000 0023 00 00 00000000 00000000 ff 00",
    ApiKey.STREAMS_GROUP_HEARTBEAT: "00000007 00 00000000 0023 00 01 00000000 00000000 00000000 "
    "ffffffffffffffff 01 00 00 00 00 00000000 00 00",
}
"""The answers of a broker with share.version=0 and streams.version=0."""


def test_each_has_its_line() -> None:
    assert SAYS.keys() == REFUSED == KAFKA_4_4.keys()


@pytest.mark.parametrize("key", SAYS)
def test_a_member_is_refused_with_one_line(key: ApiKey, caplog: pytest.LogCaptureFixture) -> None:
    broker = new_broker()
    caplog.clear()
    request: Any = MESSAGES[key][0](group_id="g", member_id="m")
    for version in API[key].versions:
        for _ in range(2):
            answer = ask(API[key].function, broker, request, version)
            assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
            assert answer.error_message.startswith("kshim serves ")
    assert caplog.messages == [f"127.0.0.1:51000 (client_id 'test'): {SAYS[key].line(group='g')}"]


@pytest.mark.parametrize("key", SAYS)
def test_each_group_and_client_behind_one_address_is_named(
    key: ApiKey, caplog: pytest.LogCaptureFixture
) -> None:
    broker = new_broker()
    caplog.clear()
    for client_id, group in (("a", "g"), ("a", "h"), ("b", "g"), ("a", "g")):
        request: Any = MESSAGES[key][0](group_id=group, member_id="m")
        API[key].function(broker, replace(context(0), client_id=client_id), request)
    assert caplog.messages == [
        f"127.0.0.1:51000 (client_id {client_id!r}): {SAYS[key].line(group=group)}"
        for client_id, group in (("a", "g"), ("a", "h"), ("b", "g"))
    ]


@pytest.mark.parametrize("key", SAYS)
def test_but_for_its_message_the_answer_is_kafkas(key: ApiKey) -> None:
    version = API[key].versions[-1]
    request: Any = MESSAGES[key][0](group_id="g", member_id="m")
    answer = ask(API[key].function, new_broker(), request, version)
    plain = type(answer)(error_code=answer.error_code)
    assert answer == type(answer)(error_code=answer.error_code, error_message=answer.error_message)
    assert encode_response(key, version, 7, plain) == bytes.fromhex(KAFKA_4_4[key])
