"""Bad input ends its connection with one line in the log, and no other client notices."""

from __future__ import annotations

import contextlib
import random
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from integration.support.awaiting import wait_until
from integration.support.clients import Admin, new_consumer, new_producer, poll_records
from integration.support.handmade import (
    API_VERSIONS,
    CLIENT_ID,
    FETCH,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    PRODUCE,
    SYNC_GROUP,
    Raw,
    array,
    produce,
    record_batch,
    request,
    sized,
    string,
)
from integration.support.server import FOREIGN_COMMAND, Server

MIB = 1 << 20
INT_MAX = 2**31 - 1
RSS_SLACK_BYTES = 12 * MIB


class Bystander:
    """Another client, which produces and consumes all the time, and records its slowest round trip."""

    def __init__(self, server: Server, topic: str) -> None:
        self.rounds = 0
        self.slowest_s = 0.0
        self.fault: Exception | None = None
        self._producer = new_producer(server.bootstrap)
        self._consumer = new_consumer(server.bootstrap, topic, group_id=topic)
        self._round(topic)  # joins before anything bad happens
        self.slowest_s = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(topic,), daemon=True)
        self._thread.start()

    def _run(self, topic: str) -> None:
        while not self._stopping.wait(0.05):
            try:
                self._round(topic)
            except Exception as error:
                self.fault = error
                return

    def _round(self, topic: str) -> None:
        began = time.monotonic()
        value = str(self.rounds).encode()
        self._producer.send(topic, value).get(timeout=20)
        assert [record.value for record in poll_records(self._consumer, 1)] == [value]
        self._consumer.commit()
        self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        self.rounds += 1

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(30)
        self._producer.close()
        self._consumer.close()

    def check_unharmed(self) -> None:
        rounds = self.rounds
        wait_until(lambda: self.rounds > rounds + 2 or self.fault, 20, "the bystander's next records")
        assert self.fault is None
        assert self.slowest_s < 3


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """At its debug level it logs each closed connection, also where others of that address went before."""
    options = [] if FOREIGN_COMMAND else ["--log-level", "debug"]
    server = Server(tmp_path_factory.mktemp("bad-input") / "data", options).start()
    yield server
    assert server.stop() in (0, 143), server.report()  # 143: a JVM's own


def why_closed(client: Raw) -> list[str]:
    """The log's lines that say why the connection was closed."""
    return [line for line in client.log_lines() if "closed the connection of" in line]


@pytest.fixture(scope="module")
def bystander(server: Server) -> Iterator[Bystander]:
    bystander = Bystander(server, "bystander")
    yield bystander
    bystander.stop()


@pytest.fixture(autouse=True)
def nobody_else_notices(server: Server, bystander: Bystander) -> Iterator[None]:
    """Around every test: the bystander goes on, memory stays flat, and the log has no traceback."""
    lines = len(server.log)
    before = server.rss_bytes()
    yield
    bystander.check_unharmed()
    if not FOREIGN_COMMAND:
        wait_until(
            lambda: server.rss_bytes() < before + RSS_SLACK_BYTES,
            10,
            lambda: f"resident memory: {before >> 20} MiB before, {server.rss_bytes() >> 20} after",
        )
        assert not [line for line in server.log[lines:] if "Traceback" in line or "our fault" in line]


def assert_refused(server: Server, frame: bytes, *said: str) -> None:
    """The server closes the connection, and its one log line about it contains all of `said`."""
    with Raw(server) as client:
        client.sendall(frame)
        assert client.is_closed_by_server()
        if FOREIGN_COMMAND:
            return
        wait_until(lambda: why_closed(client), 5, f"a log line about {client.address}")
        (line,) = why_closed(client)
        for words in said:
            assert words.lower() in line.lower(), line


# ---- frames


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(struct.pack(">i", -1), id="negative size"),
        pytest.param(struct.pack(">i", -(2**31)), id="smallest size"),
        pytest.param(struct.pack(">i", 100 * MIB + 1), id="one above the limit"),
        pytest.param(struct.pack(">i", INT_MAX), id="largest size"),
    ],
)
def test_a_size_that_cannot_be(server: Server, start: bytes) -> None:
    (size,) = struct.unpack(">i", start[:4])
    assert_refused(server, start + bytes(100), str(size))


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"", id="empty frame"),
        pytest.param(b"\x00\x12", id="cut in the header"),
        pytest.param(
            struct.pack(">hhih", API_VERSIONS, 0, 1, 100) + b"short", id="client_id beyond the frame"
        ),
    ],
)
def test_a_header_that_cannot_be(server: Server, payload: bytes) -> None:
    assert_refused(server, sized(payload), "header")


@pytest.mark.kshim_only("Kafka allocates what was announced: this takes 4 GB of its heap")
def test_a_frame_that_never_ends(server: Server) -> None:
    """40 connections announce 100 MiB each and send 1 KB: memory grows only with what was sent."""
    before = server.rss_bytes()
    clients = [Raw(server) for _ in range(40)]
    for client in clients:
        client.sendall(struct.pack(">i", 100 * MIB) + bytes(1000))
    with Raw(server) as other:
        assert other.answer_to(request(API_VERSIONS, 0, correlation_id=5))[:4] == struct.pack(">i", 5)
    if not FOREIGN_COMMAND:
        assert server.rss_bytes() < before + RSS_SLACK_BYTES
    for client in clients:
        client.close()


# ---- headers and bodies


@pytest.mark.parametrize("api_key", [-1, 999, 4, 32767])
def test_an_unknown_api(server: Server, api_key: int) -> None:
    assert_refused(server, request(api_key, 0), CLIENT_ID, f"({api_key})", "not served")


@pytest.mark.parametrize(
    ("api_key", "api_version", "name"),
    [
        (METADATA, 99, "Metadata"),
        (JOIN_GROUP, 32767, "JoinGroup"),
        (HEARTBEAT, -1, "Heartbeat"),
        (FETCH, 3, "Fetch"),
        (PRODUCE, 2, "Produce"),
    ],
)
def test_an_unsupported_version(server: Server, api_key: int, api_version: int, name: str) -> None:
    frame = request(api_key, api_version)
    assert_refused(server, frame, CLIENT_ID, f"{name} ({api_key}) v{api_version}", "versions")


def test_an_unsupported_version_of_api_versions_is_answered(server: Server) -> None:
    with Raw(server) as client:
        reply = client.answer_to(request(API_VERSIONS, 99, bytes(20), correlation_id=7))
        assert struct.unpack(">ih", reply[:6]) == (7, 35)
        (count,) = struct.unpack(">i", reply[6:10])
        ranges = {
            key: (low, high) for key, low, high in struct.iter_unpack(">hhh", reply[10 : 10 + 6 * count])
        }
        assert ranges[API_VERSIONS][0] == 0
        assert ranges[API_VERSIONS][1] < 99
        assert len(reply) == 10 + 6 * count  # a v0 body, with nothing behind it
        assert client.answer_to(request(API_VERSIONS, 0, correlation_id=8))[:6] == struct.pack(">ih", 8, 0)


JOIN_BODY = (
    string("group")
    + struct.pack(">i", 6000)
    + string("")
    + string("consumer")
    + array(string("range") + struct.pack(">i", 3) + b"abc")
)


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        pytest.param(request(JOIN_GROUP, 0, JOIN_BODY[:-1]), "JoinGroup", id="last byte missing"),
        pytest.param(request(JOIN_GROUP, 0, JOIN_BODY[:9]), "JoinGroup", id="half of the body"),
        pytest.param(request(JOIN_GROUP, 0), "JoinGroup", id="no body"),
        pytest.param(
            request(METADATA, 1, struct.pack(">i", INT_MAX)), "Metadata", id="array of 2^31-1 strings"
        ),
        pytest.param(
            request(METADATA, 1, struct.pack(">i", 100_000) + bytes(64)), "Metadata", id="array too long"
        ),
        pytest.param(
            request(HEARTBEAT, 0, struct.pack(">h", 32767)), "Heartbeat", id="string beyond the frame"
        ),
        pytest.param(request(HEARTBEAT, 0, struct.pack(">h", -1) + bytes(6)), "Heartbeat", id="null string"),
        pytest.param(
            request(HEARTBEAT, 0, struct.pack(">h", -5) + bytes(6)), "Heartbeat", id="negative length"
        ),
    ],
)
def test_a_body_that_does_not_parse(server: Server, frame: bytes, said: str) -> None:
    assert_refused(server, frame, CLIENT_ID, f"{said}Request v")


def test_a_group_id_that_is_not_utf_8(server: Server) -> None:
    """An invalid byte is read as U+FFFD, and the group is like any other: one without members."""
    with Raw(server) as client:
        body = client.answer_to(request(HEARTBEAT, 0, b"\x00\x02\xff\xfe" + struct.pack(">ih", 0, 0)))
    unknown_member_id = 25
    assert body[-2:] == struct.pack(">h", unknown_member_id)


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(sized(struct.pack(">hhih", API_VERSIONS, 0, 5, -2)), id="a negative length is null"),
        pytest.param(request(API_VERSIONS, 0, b"abc", correlation_id=5), id="bytes behind the body"),
    ],
)
def test_what_kafka_reads_is_read(server: Server, frame: bytes) -> None:
    with Raw(server) as client:
        assert client.answer_to(frame)[:4] == struct.pack(">i", 5)


def test_random_bodies(server: Server) -> None:
    """A good header, then noise: 10 bodies for each API are answered or refused, and none hangs."""
    chance = random.Random(11)
    keys = [PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR]
    for api_key in [*keys, JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, API_VERSIONS]:
        for _ in range(10):
            noise = chance.randbytes(chance.randrange(200))
            assert_ends_or_answers(server, request(api_key, 4, noise))


def test_random_frames(server: Server) -> None:
    chance = random.Random(12)
    for _ in range(100):
        assert_ends_or_answers(server, sized(chance.randbytes(chance.randrange(1, 300))))


def assert_ends_or_answers(server: Server, frame: bytes) -> None:
    """The server closes the connection with one line in the log, or answers this frame and the next."""
    with Raw(server) as client:
        client.sendall(frame + request(API_VERSIONS, 0, correlation_id=424242))
        answered = False
        try:
            while not answered:
                answered = client.frame()[:4] == struct.pack(">i", 424242)
        except ConnectionError:
            pass
        if not FOREIGN_COMMAND:
            if not answered:
                wait_until(lambda: why_closed(client), 5, f"a log line about {client.address}")
            assert len(why_closed(client)) == (0 if answered else 1)


def fetch(topic: str, *, max_wait_ms: int = 0, max_bytes: int = 64 * MIB, **header: object) -> bytes:
    partition = struct.pack(">iqi", 0, 0, max_bytes)
    body = struct.pack(">iiiib", -1, max_wait_ms, 1, max_bytes, 0) + array(string(topic) + array(partition))
    return request(FETCH, 4, body, **header)


def good_frames(topic: str) -> dict[str, bytes]:
    return {
        "ApiVersions": request(API_VERSIONS, 0),
        "Metadata": request(METADATA, 1, array(string(topic))),
        "Produce": produce(topic, record_batch()),
        "Fetch": fetch(topic),
        "ListOffsets": request(
            LIST_OFFSETS, 1, struct.pack(">i", -1) + array(string(topic) + array(struct.pack(">iq", 0, -1)))
        ),
        "FindCoordinator": request(FIND_COORDINATOR, 0, string(topic)),
        "OffsetFetch": request(
            OFFSET_FETCH, 1, string(topic) + array(string(topic) + array(struct.pack(">i", 0)))
        ),
        "OffsetCommit": request(
            OFFSET_COMMIT,
            2,
            string(topic)
            + struct.pack(">i", -1)
            + string("")
            + struct.pack(">q", -1)
            + array(string(topic) + array(struct.pack(">iq", 0, 5) + string("noted"))),
        ),
        "Heartbeat": request(HEARTBEAT, 0, string(topic) + struct.pack(">i", 1) + string("m")),
        "SyncGroup": request(SYNC_GROUP, 0, string(topic) + struct.pack(">i", 1) + string("m") + array()),
        "LeaveGroup": request(LEAVE_GROUP, 0, string(topic) + string("m")),
    }


FLIPPED = [
    pytest.param(
        name, marks=pytest.mark.kshim_only("Kafka waits for max_wait_ms whatever is behind the Fetch")
    )
    if name == "Fetch"
    else name
    for name in good_frames("")
]


@pytest.mark.parametrize("name", FLIPPED)
def test_bit_flips(server: Server, admin: Admin, topic: str, name: str) -> None:
    """40 bits of each good frame are flipped, one at a time; the size stays as it is."""
    admin.create_topic(topic)
    good = good_frames(topic)[name]
    with Raw(server) as client:
        assert client.answer_to(good)[:4] == struct.pack(">i", 1)
    chance = random.Random(name)
    for bit in chance.sample(range(32, 8 * len(good)), 40):
        flipped = bytearray(good)
        flipped[bit // 8] ^= 1 << bit % 8
        assert_ends_or_answers(server, bytes(flipped))


def test_a_record_batch_with_a_flipped_bit_is_refused(server: Server, admin: Admin, topic: str) -> None:
    """The CRC is wrong: CORRUPT_MESSAGE, and nothing of the batch is kept."""
    admin.create_topic(topic)
    good = record_batch(b"v" * 100)
    base = len(string(topic)) + 14
    with Raw(server) as client:
        for number, at in enumerate((len(good) - 1, len(good) - 60, 21, 30)):
            flipped = bytearray(good)
            flipped[at] ^= 0x10
            reply = client.answer_to(produce(topic, bytes(flipped), correlation_id=number))
            correlation_id, error_code = struct.unpack(">i", reply[:4])[0], reply[base + 2 : base + 4]
            assert (correlation_id, struct.unpack(">h", error_code)[0]) == (number, 2)
        reply = client.answer_to(produce(topic, good))
        assert struct.unpack(">hq", reply[base + 2 : base + 12]) == (0, 0)


# ---- clients that do not behave


def test_clients_that_say_nothing(server: Server) -> None:
    clients = [Raw(server) for _ in range(200)]
    with Raw(server) as other:
        assert other.answer_to(request(API_VERSIONS, 0))[:6] == struct.pack(">ih", 1, 0)
    for client in clients:
        assert client.log_lines() == []
        client.close()


def test_a_client_that_sends_one_byte_a_second(server: Server) -> None:
    frame = request(API_VERSIONS, 0, correlation_id=3)
    with Raw(server) as client:
        for byte in frame[:5]:
            client.sendall(bytes([byte]))
            time.sleep(1)  # this is the client's pace, not a wait
        client.sendall(frame[5:])
        assert client.frame()[:6] == struct.pack(">ih", 3, 0)


def test_a_client_that_goes_away_in_a_frame(server: Server) -> None:
    frame = good_frames("topic")["Produce"]
    for length in range(1, len(frame), 5):
        with Raw(server) as client:
            client.sendall(frame[:length])
    with Raw(server) as other:
        assert other.answer_to(request(API_VERSIONS, 0))[:6] == struct.pack(">ih", 1, 0)


def test_a_client_that_never_reads(server: Server, admin: Admin, topic: str, bystander: Bystander) -> None:
    """It asks for 1 MiB again and again and reads nothing: the server stops reading from it."""
    admin.create_topic(topic)
    producer = new_producer(server.bootstrap)
    producer.send(topic, random.Random(1).randbytes(MIB - 1000)).get(timeout=20)
    producer.close()
    before = server.rss_bytes()
    padding = "x" * 30_000
    sent = 0
    with Raw(server, receive_buffer_bytes=4096) as client:
        client.settimeout(3)
        with contextlib.suppress(TimeoutError):
            while sent < 3000:
                client.sendall(fetch(topic, correlation_id=sent, client_id=padding))
                sent += 1
        assert 0 < sent < 3000
        bystander.check_unharmed()
        if not FOREIGN_COMMAND:
            assert server.rss_bytes() < before + 64 * MIB
        # once it reads, all its requests are answered, in order
        client.settimeout(20)
        for correlation_id in range(sent):
            reply = client.frame()
            assert struct.unpack(">i", reply[:4]) == (correlation_id,)
            assert len(reply) > MIB - 1000


def test_pipelined_requests_are_answered_in_order(server: Server, topic: str) -> None:
    frames = [request(API_VERSIONS, 0, correlation_id=n) for n in range(1000)]
    with Raw(server) as client:
        sender = threading.Thread(target=client.sendall, args=(b"".join(frames),))
        sender.start()
        assert [client.frame()[:4] for _ in frames] == [struct.pack(">i", n) for n in range(1000)]
        sender.join()
