"""From frame to reply, byte for byte as in Apache Kafka 4.2; and the answers to bad input."""

import logging
import struct
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock

from kshim.answering.replies import Replies
from kshim.callers import Client, Refused, RequestContext
from kshim.callers.arrivals import Arrivals
from kshim.callers.mistake import Mistake
from kshim.callers.once import Once
from kshim.cluster.features import LATEST
from kshim.configs.endpoint import Endpoint
from kshim.network import dispatch, large_answers
from kshim.network.dispatch import API, answer
from kshim.storage.interfaces import StorageError
from kshim.turns import Turn, unread
from kshim.turns.promise import Promise
from kshim.turns.rounds import Rounds
from kshim.turns.unread import LOOK_S, MOST_BYTES, Unread
from schemas.api_key import ApiKey, api_title
from schemas.compiled import Size
from schemas.error_code import ErrorCode
from schemas.header import RequestHeader
from schemas.messages.create_topics import CreatableTopic, CreateTopicsRequest
from schemas.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from schemas.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from schemas.pieces import Pieces
from schemas.registry import encode_request
from tests.api.harness import AtOnce, HeldStore, collect, new_broker, result

HERE = Endpoint("10.0.0.1", 9092)
WRITER = SimpleNamespace(offset=1, version=1)
CLUSTER = SimpleNamespace(cluster_id="cluster", features=SimpleNamespace(levels=LATEST), writer=WRITER)
CLOCK = Clock()
NO_QUOTAS = SimpleNamespace(in_force=False)
BROKER: Any = SimpleNamespace(
    quotas=NO_QUOTAS,
    node_id=1,
    aside=AtOnce(),
    rounds=Rounds(CLOCK),
    cluster=CLUSTER,
    once=Once(CLOCK),
    arrivals=Arrivals(CLOCK),
    authorizer=None,
    replies=Replies(WRITER),
)
TURN = Turn()

# What Apache Kafka 4.4.0 announces of the APIs that kshim serves.
KAFKA_4_4 = {
    "Produce": (0, 13),
    "Fetch": (4, 18),
    "ListOffsets": (1, 11),
    "Metadata": (0, 13),
    "OffsetCommit": (2, 10),
    "OffsetFetch": (1, 10),
    "FindCoordinator": (0, 6),
    "JoinGroup": (0, 9),
    "Heartbeat": (0, 4),
    "LeaveGroup": (0, 5),
    "SyncGroup": (0, 5),
    "DescribeGroups": (0, 6),
    "SaslHandshake": (0, 1),
    "SaslAuthenticate": (0, 2),
    "ListGroups": (0, 5),
    "CreateTopics": (2, 7),
    "DeleteTopics": (1, 6),
    "DeleteRecords": (0, 2),
    "InitProducerId": (0, 5),
    "AddPartitionsToTxn": (0, 5),
    "AddOffsetsToTxn": (0, 4),
    "EndTxn": (0, 5),
    "WriteTxnMarkers": (1, 2),
    "DescribeProducers": (0, 0),
    "DescribeTransactions": (0, 0),
    "ListTransactions": (0, 2),
    "TxnOffsetCommit": (0, 6),
    "DescribeConfigs": (1, 4),
    "AlterConfigs": (0, 2),
    "DescribeLogDirs": (1, 5),
    "CreatePartitions": (0, 3),
    "DeleteGroups": (0, 3),
    "IncrementalAlterConfigs": (0, 1),
    "ElectLeaders": (0, 2),
    "AlterPartitionReassignments": (0, 1),
    "ListPartitionReassignments": (0, 0),
    "OffsetDelete": (0, 0),
    "OffsetForLeaderEpoch": (2, 4),
    "DescribeClientQuotas": (0, 1),
    "DescribeUserScramCredentials": (0, 0),
    "AlterUserScramCredentials": (0, 0),
    "DescribeAcls": (1, 3),
    "CreateAcls": (1, 3),
    "DeleteAcls": (1, 3),
    "DescribeCluster": (0, 2),
    "AlterReplicaLogDirs": (1, 2),
    "AlterClientQuotas": (0, 1),
    "DescribeQuorum": (0, 2),
    "UpdateFeatures": (0, 2),
    "UnregisterBroker": (0, 0),
    "UnregisterController": (0, 0),
    "AddRaftVoter": (0, 1),
    "RemoveRaftVoter": (0, 0),
    "ListConfigResources": (0, 1),
    "DescribeTopicPartitions": (0, 0),
    "ConsumerGroupDescribe": (0, 1),
    "ConsumerGroupHeartbeat": (0, 1),
    "ShareGroupHeartbeat": (1, 1),
    "StreamsGroupHeartbeat": (0, 1),
    "ApiVersions": (0, 5),
}


def header(api_key: int, version: int, *, client_id: bytes | None = b"c", flexible: bool = False) -> bytes:
    client = b"\xff\xff" if client_id is None else struct.pack(">h", len(client_id)) + client_id
    return struct.pack(">hhi", api_key, version, 7) + client + (b"\0" if flexible else b"")


def compact(text: bytes) -> bytes:
    return bytes([len(text) + 1]) + text


def caller() -> Client:
    return Client("/10.0.0.7", Endpoint("10.0.0.7", 51000), HERE)


def ask(frame: bytes | memoryview) -> Any:
    return answer(BROKER, frame, caller(), TURN)


def refusal(frame: bytes) -> str:
    with pytest.raises(Refused) as caught:
        ask(frame)
    assert caught.value.level == logging.WARNING
    assert "\n" not in str(caught.value)
    return str(caught.value)


HEARTBEAT_V0 = header(12, 0) + b"\0\1g\0\0\0\1\0\1m"


@pytest.fixture
def heartbeats(monkeypatch: pytest.MonkeyPatch) -> list[tuple[RequestContext, HeartbeatRequest]]:
    """Answers heartbeats, and records them."""
    seen: list[tuple[RequestContext, HeartbeatRequest]] = []

    def heartbeat(broker: Any, context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
        seen.append((context, request))
        return HeartbeatResponse(error_code=16)

    served_by(heartbeat, monkeypatch)
    return seen


def served_by(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(API[ApiKey.HEARTBEAT], "function", function)


def test_the_table_announces_what_kafka_does() -> None:
    assert {api_title(key): (s.versions[0], s.versions[-1]) for key, s in API.items()} == KAFKA_4_4


@pytest.mark.parametrize("key", API, ids=api_title)
def test_the_table_finds_the_function_of_each_api(key: ApiKey) -> None:
    function = API[key].function
    name = function.__name__
    assert (name, function.__module__) == (key.name.lower(), f"kshim.api.{name}")


@pytest.mark.parametrize("kind", [bytes, memoryview])
def test_a_request_goes_to_its_function_and_its_response_back(kind: Any, heartbeats: list[Any]) -> None:
    assert ask(kind(HEARTBEAT_V0)) == bytes.fromhex("000000070010")
    ((context, request),) = heartbeats
    assert request == HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert (context.api_version, context.client_id, context.client_host) == (0, "c", "/10.0.0.7")
    assert context.advertised == HERE
    assert context.turn is TURN


def test_a_null_client_id_is_empty(heartbeats: list[Any]) -> None:
    ask(header(12, 0, client_id=None) + HEARTBEAT_V0[len(header(12, 0)) :])
    assert heartbeats[0][0].client_id == ""


def test_a_response_that_comes_later(monkeypatch: pytest.MonkeyPatch) -> None:
    parked: Promise[Any] = Promise()
    served_by(lambda *_: parked, monkeypatch)
    replies: list[Any] = []
    ask(HEARTBEAT_V0).listen(replies.append)
    assert replies == []
    parked.answer_alone(HeartbeatResponse(error_code=16))
    assert replies == [bytes.fromhex("000000070010")]


def test_an_answer_that_repeats_a_string_too_long_to_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte that is not UTF-8 is decoded to a character of three bytes. Apache Kafka does not answer."""

    def describe(_broker: Any, _context: Any, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
        return DescribeGroupsResponse(groups=tuple(DescribedGroup(group_id=it) for it in request.groups))

    monkeypatch.setattr(API[ApiKey.DESCRIBE_GROUPS], "function", describe)
    name = b"\xff" * 10_923
    frame = header(15, 0) + b"\0\0\0\1" + len(name).to_bytes(2) + name
    assert "DescribeGroups (15) v0: the answer cannot be written" in refusal(frame)


def test_a_request_without_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    served_by(lambda *_: None, monkeypatch)
    assert ask(HEARTBEAT_V0) is None


def fail(*_: Any) -> None:
    raise KeyError("member")


def test_a_fault_of_ours_names_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    served_by(fail, monkeypatch)
    with pytest.raises(Refused, match=r"51000 \(client_id 'c'\): Heartbeat \(12\) v0: .*KeyError") as caught:
        ask(HEARTBEAT_V0)
    assert caught.value.level == logging.ERROR
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_function_may_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Produce with acks=0 does so: it has no other way to report an error."""
    refused, parked = Refused("acks=0: not the leader"), Promise[Any]()

    def refuse(*_: Any) -> None:
        raise refused

    served_by(refuse, monkeypatch)
    assert refusal(HEARTBEAT_V0) == "acks=0: not the leader"
    served_by(lambda *_: parked, monkeypatch)
    failures: list[Exception] = []
    ask(HEARTBEAT_V0).listen(failures.append)
    parked.answer_alone(refused)
    assert failures == [refused]


def test_a_disk_that_cannot_be_read_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise StorageError("a sync has failed")

    served_by(fail, monkeypatch)
    with pytest.raises(Refused, match=r"Heartbeat \(12\) v0: a sync has failed$") as caught:
        ask(HEARTBEAT_V0)
    assert caught.value.level == logging.WARNING


@pytest.mark.parametrize("late", [HeartbeatResponse(error_code="x"), KeyError("member")])
def test_a_late_fault_of_ours_names_the_request(late: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    parked: Promise[Any] = Promise()
    served_by(lambda *_: parked, monkeypatch)
    failures: list[Exception] = []
    ask(HEARTBEAT_V0).listen(failures.append)
    parked.answer_alone(late)
    (refused,) = failures
    assert isinstance(refused, Refused)
    assert refused.level == logging.ERROR
    assert refused.__cause__ is not None


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (header(999, 0), "(client_id 'c'): unknown API (999) v0: not served"),
        (header(-1, 0), "unknown API (-1) v0: not served"),
        (header(4, 0), "LeaderAndIsr (4) v0: not served"),
        (
            header(12, 5, flexible=True),
            "asks for Heartbeat (12) v5, but only versions 0 to 4 are served: the cli",
        ),
        (header(12, -1), "asks for Heartbeat (12) v-1, but only versions 0 to 4 are served: upgr"),
        (header(0, 2), "asks for Produce (0) v2, but only versions 3 to 13 are served: upgrade"),
        (HEARTBEAT_V0[:-1], "(client_id 'c'): HeartbeatRequest v0.member_id at byte 20"),
        (header(12, 0) + b"\xff\xff\0\0\0\1\0\1m", "HeartbeatRequest v0.group_id at byte 13: null"),
        (
            struct.pack(">hhih", 18, 9, 7, -1) + b"\1",
            "10.0.0.7:51000: RequestHeader v2.tagged fields at byte 11",
        ),
        (b"", "10.0.0.7:51000: "),
        (b"\0\x0c\0", "10.0.0.7:51000: "),
        (struct.pack(">hhi", 12, 0, 7) + b"\0\5ab", "10.0.0.7:51000: "),
    ],
)
def test_what_has_no_answer_is_refused_in_one_line(frame: bytes, why: str, heartbeats: list[Any]) -> None:
    assert why in refusal(frame)
    assert heartbeats == []


@pytest.mark.parametrize("token", ["6082026406092a864886f71201020201006e82", "600000000000000000000000"])
def test_a_bare_token_of_gssapi_is_known(token: str) -> None:
    with pytest.raises(Refused, match=f"^10.0.0.7:51000: {Mistake.GSSAPI.value}$") as caught:
        ask(bytes.fromhex(token))
    assert caught.value.once is Mistake.GSSAPI


def test_a_line_names_the_software_that_its_connection_has_told() -> None:
    client = caller()
    answer(BROKER, api_versions_v3(b"librdkafka", b"2.16.1"), client, TURN)
    with pytest.raises(Refused, match=r"^10.0.0.7:51000 \(client_id 'c', librdkafka 2.16.1\): "):
        answer(BROKER, header(999, 0), client, TURN)


def test_a_request_that_is_no_question_shows_that_its_client_has_come(heartbeats: list[Any]) -> None:
    arrivals = BROKER.arrivals
    arrivals.asked(caller(), names_any=True)
    ask(header(18, 0))
    assert arrivals.asking
    ask(HEARTBEAT_V0)
    assert not arrivals.asking


def test_a_long_name_of_software_is_cut() -> None:
    client = caller()
    answer(BROKER, api_versions_v3(b"x" * 100, b"2"), client, TURN)
    assert client.software == "x" * 100


def api_versions_v3(name: bytes, software_version: bytes) -> bytes:
    return header(18, 3, flexible=True) + compact(name) + compact(software_version) + b"\0"


def test_bytes_behind_a_body_are_ignored(heartbeats: list[Any]) -> None:
    client = caller()
    plain, longer = (answer(BROKER, frame, client, TURN) for frame in (HEARTBEAT_V0, HEARTBEAT_V0 + b"zz"))
    assert plain == longer
    assert heartbeats[0] == heartbeats[1]


@pytest.mark.parametrize("version", [6, 100, 32767, -1])
def test_api_versions_of_an_unknown_version_is_answered_in_v0_with_our_range(version: int) -> None:
    """Byte for byte as Apache Kafka 4.4.0."""
    frame = header(18, version, flexible=True) + compact(b"kafka") + compact(b"5.0") + b"\0"
    assert ask(frame) == bytes.fromhex("00000007002300000001001200000005")


@pytest.mark.parametrize("version", [0, 1, 2])
def test_api_versions_before_v3(version: int) -> None:
    entries = "".join(
        f"{key:04x}{versions[0]:04x}{versions[-1]:04x}"
        for key, versions in sorted((key, served.versions) for key, served in API.items())
    )
    throttle_time_ms = "00000000" if version else ""
    assert ask(header(18, version)) == bytes.fromhex(
        f"00000007 0000 {len(API):08x} {entries} {throttle_time_ms}"
    )


GROUPS, TRANSACTIONS = compact(b"group.version").hex(), compact(b"transaction.version").hex()
SUPPORTED = f"00 2d 03 {GROUPS} 0000 0001 00 {TRANSACTIONS} 0000 0002 00"
EPOCH = "01 08 0000000000000001"
FINALIZED = f"02 2d 03 {GROUPS} 0001 0001 00 {TRANSACTIONS} 0002 0002 00"


@pytest.mark.parametrize(
    ("version", "features"), [(3, f"02 {EPOCH} {FINALIZED}"), (4, f"03 {SUPPORTED} {EPOCH} {FINALIZED}")]
)
def test_api_versions_from_v3_announces_groups_of_the_consumer_protocol_and_an_epoch_for_each_transaction(
    version: int, features: str
) -> None:
    """Both features are supported from level 0 on, which only v4 can express."""
    frame = header(18, version, flexible=True) + compact(b"apache-kafka-java") + compact(b"4.2.0") + b"\0"
    entries = "".join(
        f"{key:04x}{versions[0]:04x}{versions[-1]:04x}00"
        for key, versions in sorted((key, served.versions) for key, served in API.items())
    )
    assert ask(frame) == bytes.fromhex(f"00000007 0000 {len(API) + 1:02x} {entries} 00000000 {features}")


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "error"),
    [
        (None, -1, ErrorCode.NONE),
        (b"cluster", 1, ErrorCode.NONE),
        (b"cluster", 2, ErrorCode.REBOOTSTRAP_REQUIRED),
        (b"cluster", -5, ErrorCode.REBOOTSTRAP_REQUIRED),
        (b"another", 1, ErrorCode.REBOOTSTRAP_REQUIRED),
        (b"another", -1, ErrorCode.INVALID_REQUEST),
        (None, 1, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_client_that_expects_another_cluster_or_node_bootstraps_again(
    cluster_id: bytes | None, node_id: int, error: ErrorCode
) -> None:
    """As Apache Kafka 4.4.0 (KIP-1242)."""
    cluster = b"\0" if cluster_id is None else compact(cluster_id)
    expected = cluster + struct.pack(">i", node_id)
    answer = ask(header(18, 5, flexible=True) + compact(b"kafka") + compact(b"4.4.0") + expected + b"\0")
    assert answer[4:6] == error.to_bytes(2)
    if error is not ErrorCode.NONE:
        assert answer[6:] == bytes.fromhex("01 00000000 00")


@pytest.mark.parametrize(
    ("name", "software_version"),
    [(b"", b"1"), (b"-x", b"1"), (b"x", b"1.0 "), (b"x", b""), (b"x-", b"1"), (b"x\n", b"1")],
)
def test_client_software_must_have_a_name_and_a_version(name: bytes, software_version: bytes) -> None:
    """Byte for byte as Apache Kafka 4.4.0: INVALID_REQUEST, and no API."""
    frame = header(18, 3, flexible=True) + compact(name) + compact(software_version) + b"\0"
    assert ask(frame) == bytes.fromhex("00000007 002a 01 00000000 00")


def test_requests_are_told_to_the_debug_log(heartbeats: list[Any], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger=dispatch.__name__)
    ask(HEARTBEAT_V0)
    assert caplog.messages == ["10.0.0.7:51000 (client_id 'c'): Heartbeat (12) v0"]


def answered_or_refused(frame: bytes) -> None:
    """Answered or refused; a bug of ours would be a Refused of level error, or another exception."""
    refused: list[int] = []
    try:
        assert isinstance(ask(frame), bytes)
    except Refused as refusal:
        refused.append(refusal.level)
    assert logging.ERROR not in refused


@given(st.binary(max_size=64))
def test_random_frames(frame: bytes) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        served_by(lambda *_: HeartbeatResponse(), monkeypatch)
        answered_or_refused(struct.pack(">h", ApiKey.HEARTBEAT) + frame)
        answered_or_refused(struct.pack(">h", ApiKey.API_VERSIONS) + frame)


@pytest.mark.parametrize(
    "frame",
    [HEARTBEAT_V0, header(18, 3, flexible=True) + compact(b"kafka") + compact(b"5.0") + b"\0"],
    ids=["Heartbeat", "ApiVersions"],
)
def test_flipped_and_missing_bits(frame: bytes, heartbeats: list[Any]) -> None:
    # The API key is kept: another one would call a real function, which needs a broker.
    for bit in range(16, len(frame) * 8):
        flipped = bytearray(frame)
        flipped[bit // 8] ^= 1 << bit % 8
        answered_or_refused(bytes(flipped))
    for end in range(len(frame)):
        refusal(frame[:end])


# ---- messages of many elements


UNREAD = Unread(CLOCK, Rounds(CLOCK))


def describe_groups(groups: int) -> bytes:
    return header(15, 0) + struct.pack(">i", groups) + b"\0\1g" * groups


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers DescribeGroups with a group for each that was asked for."""

    def describe(broker: Any, context: RequestContext, request: DescribeGroupsRequest) -> Any:
        return DescribeGroupsResponse(groups=tuple(DescribedGroup(group_id=g) for g in request.groups))

    monkeypatch.setattr(API[ApiKey.DESCRIBE_GROUPS], "function", describe)


def large_broker() -> Any:
    return SimpleNamespace(
        node_id=1,
        aside=AtOnce(),
        rounds=Rounds(CLOCK),
        arrivals=Arrivals(CLOCK),
        authorizer=None,
        quotas=NO_QUOTAS,
        unread=UNREAD,
    )


def described(groups: int) -> tuple[Any, AtOnce, Turn]:
    broker, turn = large_broker(), Turn()
    return result(answer(broker, describe_groups(groups), caller(), turn)), broker.aside, turn


@pytest.mark.usefixtures("answered")
def test_a_message_of_few_elements_is_decoded_and_encoded_at_once() -> None:
    reply, aside, turn = described(dispatch.LIGHT_ELEMENTS)
    assert reply[4:8] == struct.pack(">i", dispatch.LIGHT_ELEMENTS)
    assert (aside.count, turn.is_alone) == (0, False)


@pytest.mark.usefixtures("answered")
def test_messages_of_many_elements_are_decoded_and_encoded_aside() -> None:
    few, _, _ = described(1)
    count = dispatch.LIGHT_ELEMENTS + 1
    reply, aside, turn = described(count)
    assert bytes(reply) == few[:4] + struct.pack(">i", count) + few[8:] * count
    assert (aside.count, turn.is_alone) == (3, True)  # decoded, measured, encoded
    assert UNREAD.bytes == 0


def test_a_connection_has_one_change_of_the_cluster_under_way() -> None:
    store = HeldStore()
    broker, turn = new_broker(store), Turn()
    request = CreateTopicsRequest(topics=(CreatableTopic(name="t", num_partitions=1, replication_factor=1),))
    header = RequestHeader(api_key=ApiKey.CREATE_TOPICS, api_version=4)
    answered = collect(answer(broker, encode_request(header, request), caller(), turn))
    assert (answered, turn.is_alone) == ([], True)
    store.release()
    assert len(answered) == 1


@pytest.mark.usefixtures("answered")
def test_a_request_of_too_many_elements_is_refused() -> None:
    with pytest.raises(Refused, match=r"client_id 'c'\): a request of more than 100000 elements"):
        described(dispatch.MAX_ELEMENTS + 1)


@pytest.mark.usefixtures("answered")
def test_an_answer_of_too_many_elements_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread, "MAX_ANSWER_ELEMENTS", dispatch.LIGHT_ELEMENTS + 1)
    described(dispatch.LIGHT_ELEMENTS + 1)
    with pytest.raises(Refused, match=r"DescribeGroups \(15\) v0: an answer of more than 2001 elements"):
        described(dispatch.LIGHT_ELEMENTS + 2)


@pytest.mark.usefixtures("answered")
@pytest.mark.parametrize(("groups", "long"), [(3_000, 0), (3_001, 2)])
def test_an_answer_that_may_take_a_second_is_made_where_nothing_short_waits(
    monkeypatch: pytest.MonkeyPatch, groups: int, long: int
) -> None:
    """It is measured and written there."""
    monkeypatch.setattr(large_answers, "SHORT", Size(bytes=1_000_000, elements=3_000))
    _, aside, _ = described(groups)
    assert aside.long_count == long


@pytest.mark.usefixtures("answered")
def test_an_answer_of_too_many_bytes_is_refused_before_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(described(dispatch.LIGHT_ELEMENTS + 1)[0]) - 4
    monkeypatch.setattr(large_answers, "encode_in_pieces", None)
    monkeypatch.setattr(unread, "MAX_ANSWER_BYTES", size - 1)
    with pytest.raises(Refused, match=rf"DescribeGroups \(15\) v0: an answer of more than {size - 1} bytes"):
        described(dispatch.LIGHT_ELEMENTS + 1)
    assert UNREAD.bytes == 0


@pytest.mark.usefixtures("answered")
def test_a_large_answer_waits_unwritten_for_room(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []
    usual = large_answers.encode_in_pieces

    def encode(*arguments: Any) -> Pieces:
        encoded.append(UNREAD.bytes)
        return usual(*arguments)

    monkeypatch.setattr(large_answers, "encode_in_pieces", encode)
    many = 10_000
    monkeypatch.setattr(UNREAD, "bytes", MOST_BYTES)
    monkeypatch.setattr(UNREAD, "holders", {Reads()})
    answered = answer(large_broker(), describe_groups(many), caller(), Turn())
    replies: list[Any] = []
    answered.listen(replies.append)
    CLOCK.advance(LOOK_S)
    assert (encoded, replies) == ([], [])
    UNREAD.bytes = 0
    CLOCK.advance(LOOK_S)
    assert (len(encoded), len(replies)) == (1, 1)
    assert encoded == [len(replies[0]) - 4]
    assert UNREAD.bytes == 0


class Reads:
    """A connection whose client reads."""

    def unread_bytes(self) -> int:
        return MOST_BYTES

    def read_bytes(self) -> int:
        return 0

    def abort_slow(self, why: str) -> None:
        raise AssertionError(why)


def test_a_request_of_many_elements_that_cannot_be_read_is_refused() -> None:
    frame = describe_groups(dispatch.LIGHT_ELEMENTS + 1)[:-1]
    with pytest.raises(Refused, match=r"DescribeGroupsRequest v0\.groups at byte"):
        answer(BROKER, frame, caller(), Turn())
