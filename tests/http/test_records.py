"""Records over HTTP: where they begin, how they are decoded, what bounds them, and who may read them."""

from __future__ import annotations

import json

import pytest

from kshim.cluster import NewTopic
from kshim.cluster.acl import Acl, AclOperation, AclResource, Pattern, PatternType, Permission
from kshim.configs.access import STANDARD_AUTHORIZER
from kshim.http.records import MOST_CHARACTERS, MOST_RECORDS, as_text
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.records.batch import Record, encode
from schemas.records.end_txn_marker import EndTxnMarker, encode_marker
from tests.http.harness import Kshim, create_topic

ORDERS = "/topics/orders/records"


def send(kshim: Kshim, *records: Record, topic: str = "orders", **how: object) -> None:
    batch = encode(list(records), **how)  # type: ignore[arg-type]
    data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=batch),))
    request = ProduceRequest(acks=-1, timeout_ms=1, topic_data=(data,))
    (answered,) = kshim.client().ask(ApiKey.PRODUCE, request, 9).responses
    assert answered.partition_responses[0].error_code == ErrorCode.NONE


@pytest.fixture
def kshim() -> Kshim:
    kshim = Kshim()
    create_topic(kshim.client(), "orders", 2)
    return kshim


def offsets(kshim: Kshim, query: str = "") -> list[int]:
    return [each["offset"] for each in kshim.get(f"{ORDERS}{query}").json["records"]]


def test_the_last_records_are_shown_or_those_from_an_offset_or_a_time(kshim: Kshim) -> None:
    for number in range(5):
        send(kshim, *(Record(delta, 1000 * number, None, b"x") for delta in range(10)))
    assert offsets(kshim) == list(range(30, 50))
    assert offsets(kshim, "?offset=7&count=3") == [7, 8, 9]
    assert offsets(kshim, "?time=2500&count=2") == [30, 31]
    assert offsets(kshim, "?time=9000") == []
    assert offsets(kshim, "?partition=1") == []
    assert len(offsets(kshim, "?offset=0&count=100")) == 50
    told = kshim.get(f"{ORDERS}?offset=7&count=3").json
    assert (told["start"], told["end"], told["next_offset"], told["note"]) == (0, 50, 10, "")


@pytest.mark.parametrize(
    ("query", "status", "says"),
    [
        ("?partition=2", 404, "orders has the partitions 0 to 1, and no 2"),
        ("?as=yaml", 400, "as=yaml: expected one of auto, text, json, hex"),
        ("?count=101", 400, "count=101: expected a whole number from 1 to 100"),
        ("?offset=-1", 400, "offset=-1: expected a whole number"),
        ("?from=1", 400, "/topics/{topic}/records has no parameter 'from'"),
    ],
)
def test_questions_that_are_none(kshim: Kshim, query: str, status: int, says: str) -> None:
    reply = kshim.get(ORDERS + query)
    assert reply.status == status
    assert reply.json["error"].startswith(says)
    assert kshim.get("/topics/nope/records").status == 404


@pytest.mark.parametrize(
    ("data", "form", "text"),
    [
        (None, "auto", None),
        (b"", "auto", ""),
        ("grün".encode(), "auto", "grün"),
        (b'{"a":[1,2]}', "auto", json.dumps({"a": [1, 2]}, indent=2)),
        (b'{"a":', "json", '{"a":'),
        (b'{"a":1}', "text", '{"a":1}'),
        (b"\x00\x01\xff", "auto", "0001ff"),
        (b"\x00ab", "auto", "006162"),
        (b"\xff", "text", "\ufffd"),
        (b"ab", "hex", "6162"),
        (b"x" * 10_000, "auto", "x" * MOST_CHARACTERS + "…"),
        (b"\xff" * 10_000, "auto", "ff" * (MOST_CHARACTERS // 2) + "…"),
        ("ü".encode() * 10_000, "auto", "ü" * MOST_CHARACTERS + "…"),
        (b"[" * 8_000, "auto", "[" * MOST_CHARACTERS + "…"),
    ],
)
def test_bytes_as_people_read_them(data: bytes | None, form: str, text: str | None) -> None:
    assert as_text(data, form) == text


def test_keys_headers_and_sizes(kshim: Kshim) -> None:
    send(kshim, Record(0, 5, b"k", b"\x00", (("h", b"v"), ("none", None))))
    (record,) = kshim.get(ORDERS).json["records"]
    assert record == {
        "partition": 0,
        "offset": 0,
        "timestamp_ms": 5,
        "key": "k",
        "value": "00",
        "headers": [["h", "v"], ["none", None]],
        "bytes": 2,
    }


def test_no_more_is_read_than_asked_for(kshim: Kshim) -> None:
    for _ in range(10):
        send(kshim, *(Record(delta, 1, None, bytes(1000)) for delta in range(100)))
    told = kshim.get(f"{ORDERS}?offset=0&count={MOST_RECORDS}").json
    assert [each["offset"] for each in told["records"]] == list(range(100))
    assert told["next_offset"] == 100


def test_records_of_aborted_transactions_are_left_out(kshim: Kshim) -> None:
    partition_no = kshim.facts.cluster.topics["orders"].partitions[0].partition_no
    log = kshim.store.log
    for committed in (False, True):
        batch = encode(
            [Record(delta, 1, None, b"t") for delta in range(2)],
            producer_id=7,
            producer_epoch=0,
            base_sequence=0 if not committed else 2,
            is_transactional=True,
        )
        log.append(partition_no, batch, now_ms=1)
        marker = EndTxnMarker(7, 0, committed, 0, 1)
        log.append(partition_no, encode_marker(marker), now_ms=1)
        kshim.reactor.advance(0)
    assert offsets(kshim, "?offset=0") == [3, 4]


def test_records_are_read_with_the_rights_of_a_client_that_has_not_authenticated() -> None:
    kshim = Kshim(authorizer_class_name=STANDARD_AUTHORIZER, super_users="User:root")
    acls = kshim.backend.cluster.acls
    assert acls is not None
    kshim.backend.cluster.create_topics([NewTopic("orders", num_partitions=1)])
    kshim.reactor.advance(0)
    reply = kshim.get(ORDERS)
    assert (reply.status, reply.json["error"].partition(":")[0]) == (403, "User")
    page = kshim.get("/page/topics/orders").body.decode()
    assert "User:ANONYMOUS may not read the topic orders" in page
    pattern = Pattern(AclResource.TOPIC, "orders", PatternType.LITERAL)
    acls.authorizer.add(Acl(pattern, "User:ANONYMOUS", "*", AclOperation.READ, Permission.ALLOW))
    assert kshim.get(ORDERS).status == 200


def test_in_front_of_an_upstream_there_are_none(kshim: Kshim, monkeypatch: pytest.MonkeyPatch) -> None:
    object.__setattr__(kshim.facts, "ask", None)
    assert kshim.get(ORDERS).json == {"error": "the records are at the upstream, and not shown here"}
