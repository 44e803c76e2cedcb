"""Requests cut from what was received: a large Produce in parts, all else whole, however they come."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.network.frames import Beginning, FrameError, Frames
from kshim.upstream.peek import LARGE_BYTES, large_produce
from tests.network.frames import frame
from tests.upstream.produced import TOPIC_ID, produce

MOST_BYTES = 1 << 20


LARGE = produce(LARGE_BYTES)


class Sender:
    """Gives out what comes out of `Frames` again as frames, and remembers what was begun."""

    def __init__(self, *, may_begin: bool = True) -> None:
        self.may_begin = may_begin
        self.topics: list[bytes] = []
        self.requests = Frames(MOST_BYTES, self._begins)
        self.frames: list[bytes] = []
        self.begun: list[bytes] = []
        self.most_held = 0
        self._parts = b""
        self._size = 0

    def _begins(self, size: int, start: memoryview) -> bool:
        topic = large_produce(size, start)
        if topic is not None:
            self.topics.append(topic)
        return topic is not None and self.may_begin

    def receive(self, data: bytes) -> None:
        self.requests.receive(data)
        while True:
            if (part := self.requests.next_part()) is not None:
                self._part(bytes(part))
            elif (one := self.requests.next_frame()) is None:
                break
            elif isinstance(one, Beginning):
                self.begun.append(one)
                self._size = one.size
                self._part(one)
            else:
                assert not self._size
                self.frames.append(bytes(one))
        self.most_held = max(self.most_held, self.requests.cut_bytes)
        assert self.requests.left_bytes == self._size - len(self._parts)

    def _part(self, data: bytes) -> None:
        self._parts += data
        assert len(self._parts) <= self._size
        if len(self._parts) == self._size:
            self.frames.append(self._parts)
            self._parts, self._size = b"", 0


@given(
    st.lists(
        st.sampled_from([b"", b"\0\3small", produce(), LARGE, produce(2 * LARGE_BYTES), b"x" * LARGE_BYTES]),
        max_size=5,
    ),
    st.lists(st.integers(1, LARGE_BYTES), max_size=40),
)
def test_all_come_out_as_they_went_in(payloads: list[bytes], cuts: list[int]) -> None:
    sender, data = Sender(), b"".join(map(frame, payloads))
    while data:
        cut = cuts.pop() if cuts else len(data)
        sender.receive(data[:cut])
        data = data[cut:]
    assert sender.frames == payloads
    assert sender.requests.cut_bytes == 0


@pytest.mark.parametrize("version", [3, 9, 13])
@pytest.mark.parametrize("names", [("c", None), ("a client", "a transaction")])
def test_a_large_produce_is_begun_at_each_byte_behind_its_topic(
    version: int, names: tuple[str, str | None]
) -> None:
    request = produce(LARGE_BYTES, version, *names)
    topic = TOPIC_ID.bytes if version == 13 else b"to"
    topic_end = request.index(topic, 40 if names[1] else 0) + len(topic)
    for cut in range(1, topic_end + 20):
        sender = Sender()
        sender.receive(frame(b"before") + frame(request)[:cut])
        assert bool(sender.begun) == (cut >= 4 + topic_end), cut
        assert set(sender.topics) <= {topic}
        sender.receive(frame(request)[cut:] + frame(b"behind"))
        assert sender.frames == [b"before", request, b"behind"]


def test_bytes_one_by_one() -> None:
    sender = Sender()
    for number, byte in enumerate(frame(LARGE)):
        sender.receive(bytes([byte]))
        assert number < 100 or sender.begun
    assert sender.frames == [LARGE]
    assert sender.most_held < 100


@pytest.mark.parametrize(
    "payload",
    [
        produce(LARGE_BYTES // 2),
        b"\0\1" + produce(LARGE_BYTES)[2:],
        produce(LARGE_BYTES)[:8] + b"\x7f\xff" + bytes(LARGE_BYTES),
        produce(LARGE_BYTES, topics=("to", "from")),
    ],
    ids=["small", "another request", "no topic to be seen", "several topics"],
)
def test_all_else_is_given_whole(payload: bytes) -> None:
    sender = Sender()
    half = len(payload) // 3
    sender.receive(frame(payload)[:half])
    assert not sender.begun
    sender.receive(frame(payload)[half:])
    assert sender.frames == [payload]


def test_nothing_is_begun_while_somebody_looks_into_requests() -> None:
    sender = Sender(may_begin=False)
    sender.receive(frame(LARGE)[:1000])
    assert not sender.begun
    sender.receive(frame(LARGE)[1000:])
    assert sender.frames == [LARGE]


def test_what_was_begun_goes_on_when_somebody_begins_to_look() -> None:
    sender = Sender()
    sender.receive(frame(LARGE)[:1000])
    sender.may_begin = False
    sender.receive(frame(LARGE)[1000:])
    assert sender.frames == [LARGE]


def test_some_may_go_on_without_having_been_here() -> None:
    sender = Sender()
    sender.receive(frame(LARGE)[:1000])
    left = sender.requests.left_bytes
    assert left == len(LARGE) - 996
    sender.requests.passed(left - 10)
    assert sender.requests.left_bytes == 10
    sender.requests.receive(LARGE[-10:] + frame(b"behind"))
    assert sender.requests.left_bytes == 0
    assert sender.requests.next_part() == LARGE[-10:]
    assert sender.requests.next_frame() == b"behind"


@pytest.mark.parametrize("size", [-1, MOST_BYTES + 1, 2**31 - 1])
def test_a_size_that_cannot_be_is_refused(size: int) -> None:
    before = frame(b"before")
    for cut in (1, 3, 0):
        sender = Sender()
        wire = size.to_bytes(4, signed=True) + LARGE[:1000]
        sender.receive(before + wire[:cut])
        with pytest.raises(FrameError, match=f"a request of {size} bytes"):
            sender.receive(wire[cut:])
        assert sender.frames == [b"before"]


def test_those_that_announce_much_and_send_little_take_no_memory() -> None:
    start = MOST_BYTES.to_bytes(4) + LARGE[:1000]
    tracemalloc.start()
    try:
        waiting = []
        for _ in range(100):
            requests = Frames(MOST_BYTES, lambda *_: True)
            requests.receive(start)
            assert isinstance(requests.next_frame(), Beginning)
            for _ in range(100):
                requests.receive(b"x" * 1000)
                assert len(requests.next_part() or b"") == 1000
            assert requests.left_bytes == MOST_BYTES - 101_000
            waiting.append(requests)
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()
