"""Frames are read the same however they are cut: whole, byte by byte, in two, or several together."""

import time
import tracemalloc
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.network.frames import FrameError, Frames, framed
from tests.network.frames import frame

HEARTBEAT = bytes.fromhex("000c0000000000070001630001670000000100016d")
WIRE = bytes.fromhex("00000015") + HEARTBEAT
LIMIT = 1024


def read(chunks: Iterable[bytes], limit: int = LIMIT) -> list[bytes]:
    frames = Frames(limit)
    return [received for chunk in chunks for received in taken(frames, chunk)]


def taken(frames: Frames, chunk: bytes) -> Iterator[bytes]:
    frames.receive(chunk)
    while (received := frames.next_frame()) is not None:
        yield bytes(received)


def one_by_one(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


def test_a_payload_is_framed_with_its_size() -> None:
    assert frame(HEARTBEAT) == WIRE


def test_a_payload_is_not_copied_for_its_size() -> None:
    assert framed(HEARTBEAT)[1] is HEARTBEAT


def test_a_whole_frame_in_one_chunk() -> None:
    assert read([WIRE]) == [HEARTBEAT]


def test_a_frame_byte_by_byte() -> None:
    assert read(one_by_one(WIRE)) == [HEARTBEAT]


@pytest.mark.parametrize("cut", range(len(WIRE) + 1))
def test_a_frame_cut_in_two(cut: int) -> None:
    assert read([WIRE[:cut], WIRE[cut:]]) == [HEARTBEAT]


def test_frames_in_one_chunk_and_the_beginning_of_another() -> None:
    frames = Frames(LIMIT)
    assert list(taken(frames, WIRE + WIRE + WIRE[:9])) == [HEARTBEAT, HEARTBEAT]
    assert list(taken(frames, WIRE[9:])) == [HEARTBEAT]


def test_an_empty_frame() -> None:
    assert read([frame(b"") + WIRE]) == [b"", HEARTBEAT]
    assert read(one_by_one(frame(b"") + WIRE)) == [b"", HEARTBEAT]


def test_nothing_received_gives_nothing() -> None:
    assert read([b"", b""]) == []


def test_frames_wait_until_they_are_asked_for() -> None:
    frames = Frames(LIMIT)
    for _ in range(3):
        frames.receive(WIRE)
    assert [bytes(frames.next_frame() or b"") for _ in range(3)] == [HEARTBEAT] * 3
    assert frames.next_frame() is None


@given(st.lists(st.binary(max_size=40)), st.data())
def test_however_it_is_cut_the_same_frames_come_out(payloads: list[bytes], data: st.DataObject) -> None:
    wire = b"".join(map(frame, payloads))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)))))
    chunks = [wire[a:b] for a, b in zip([0, *cuts], [*cuts, len(wire)], strict=True)]
    assert read(chunks) == payloads


@pytest.mark.parametrize("chunked", [lambda data: [data], one_by_one], ids=["whole", "byte by byte"])
@pytest.mark.parametrize("size", [-1, -(2**31), LIMIT + 1, 2**31 - 1])
def test_a_size_that_cannot_be_is_refused_after_the_frames_before_it(size: int, chunked) -> None:
    chunks = chunked(WIRE + size.to_bytes(4, "big", signed=True) + b"rest")
    frames = Frames(LIMIT)
    seen: list[bytes] = []
    with pytest.raises(FrameError, match=f"a request of {size} bytes"):
        seen.extend(received for chunk in chunks for received in taken(frames, chunk))
    assert seen == [HEARTBEAT]


def test_the_largest_frame_is_accepted() -> None:
    payload = bytes(LIMIT)
    assert read([frame(payload)]) == [payload]


def test_no_memory_for_a_size_of_which_nothing_came() -> None:
    tracemalloc.start()
    try:
        waiting = []
        for _ in range(100):
            frames = Frames(104857600)
            frames.receive((104857600).to_bytes(4, "big") + b"only this")
            assert frames.next_frame() is None
            waiting.append(frames)
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()


def test_the_rest_of_a_large_frame_is_received_where_it_is_to_lie() -> None:
    payload = bytes(range(256)) * 4096
    wire = frame(payload) + WIRE
    frames = Frames(len(payload))
    assert frames.room(int) is None
    frames.receive(wire[:65536])
    assert frames.next_frame() is None
    at, rooms = 65536, []
    while (room := frames.room(int)) is not None:
        assert frames.next_frame() is None
        size = min(len(room), 100_000)
        room[:size] = wire[at : at + size]
        frames.filled(size)
        at += size
        rooms.append(room.obj)
    assert len({id(room) for room in rooms}) <= 3, "it moves when it has become three times as large"
    assert frames.cut_bytes == at
    frames.receive(wire[at:])
    received = frames.next_frame()
    assert received is rooms[-1]
    assert received == payload
    assert frames.next_frame() == HEARTBEAT
    assert frames.cut_bytes == 0


def test_there_is_room_for_what_the_system_has_received() -> None:
    frames = Frames(100_000_000)
    frames.receive((100_000_000).to_bytes(4) + bytes(1000))
    assert frames.next_frame() is None
    for arrived in (0, 1000, 1_000_000):
        room = frames.room(lambda arrived=arrived: arrived)
        assert room is not None
        assert arrived <= len(room) <= 3 * (frames.cut_bytes + arrived)
        frames.filled(len(room))


def test_a_frame_that_fills_its_memory_is_there() -> None:
    payload = bytes(100_000)
    frames = Frames(len(payload))
    frames.receive(frame(payload)[:60_000])
    assert frames.next_frame() is None
    room = frames.room(int)
    assert room is not None
    assert len(room) == len(payload) + 4 - 60_000
    frames.filled(len(room))
    assert frames.next_frame() == payload
    assert frames.next_frame() is None


def test_nothing_is_received_past_a_chunk_that_waits() -> None:
    frames = Frames(1_000_000)
    frames.receive(frame(bytes(1_000_000))[:1000])
    assert frames.next_frame() is None
    frames.receive(bytes(1000))
    assert frames.room(int) is None


def test_cost_is_linear_in_what_is_received() -> None:
    """64 times the data in chunks of the same size takes far less than 4096 times as long."""

    def seconds(size: int) -> float:
        chunks = [bytes(4096)] * (size // 4096)
        frames = Frames(size)
        frames.receive(size.to_bytes(4, "big"))
        begin = time.thread_time()
        for chunk in chunks:
            frames.receive(chunk)
            received = frames.next_frame()
        assert received is not None
        assert len(received) == size
        return time.thread_time() - begin

    small = min(seconds(2**18) for _ in range(5))
    assert min(seconds(2**24) for _ in range(3)) < 1000 * small
