"""Rate of batches that a server accepts with acks=all, without a client library in between.

Eight producers, each with its own partition, keep five requests in flight, as clients do. Their batches are
plain or idempotent, of few records or many.
"""

from __future__ import annotations

import selectors
import struct
import time
from collections.abc import Iterator
from itertools import count, islice, repeat

from crc32c import crc32c

from benchmarks.generator import Load
from benchmarks.processor import Measured, Window
from benchmarks.raw import READY_TIMEOUT_S, Connection
from benchmarks.servers import Target
from kshim.testing.wire import framed
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.init_producer_id import InitProducerIdRequest
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.records.batch import Record, encode
from schemas.registry import decode_response

VERSION = 9
PRODUCERS, DEPTH = 8, 5
CRC_AT, SEQUENCE_AT = 17, 53
"""Where in a batch they are; the CRC is of all that comes behind it."""
_CRC, _SEQUENCE = struct.Struct(">I"), struct.Struct(">i")
NOT_LED = {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


class Producer(Connection):
    """A connection that produces to one partition."""

    def __init__(self, bootstrap: str, topic: str, index: int, idempotent: bool) -> None:
        super().__init__(bootstrap)
        self.topic, self.index = topic, index
        self.producer_id = self.producer_epoch = -1
        if idempotent:
            asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
            given = self.ask(4, asked)
            self.producer_id, self.producer_epoch = given.producer_id, given.producer_epoch

    def begin(self, frame: bytes) -> None:
        """Send the first request, again until the broker leads the partition: a topic needs a moment."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while True:
            self.sendall(frame)
            answer = self.frame()
            if error_of(answer) not in NOT_LED or time.monotonic() > deadline:
                check(answer)
                return

    def frames(self, records: list[Record]) -> Iterator[bytes]:
        """Requests of one batch each, which is encoded once; its sequence and its CRC are put into it."""
        batch = encode(records, producer_id=self.producer_id, producer_epoch=self.producer_epoch)
        data = PartitionProduceData(index=self.index, records=batch)
        topic = TopicProduceData(name=self.topic, partition_data=(data,))
        request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=9000, topic_data=(topic,))
        frame = bytearray(framed(VERSION, request))
        if self.producer_id < 0:
            yield from repeat(bytes(frame))
        begin = frame.index(batch)
        end = begin + len(batch)
        for sequence in count(0, len(records)):
            _SEQUENCE.pack_into(frame, begin + SEQUENCE_AT, sequence)
            _CRC.pack_into(frame, begin + CRC_AT, crc32c(bytes(frame[begin + CRC_AT + _CRC.size : end])))
            yield bytes(frame)


def batches(target: Target, load: Load, seconds: float) -> Measured:
    """The rate of batches with so many `records` of `value_bytes`."""
    value = b"x" * load["value_bytes"]
    records = [Record(number, 1_700_000_000_000, b"key", value) for number in range(load["records"])]
    topic = Connection(target.bootstrap).new_topic(PRODUCERS)
    selector = selectors.DefaultSelector()
    for index in range(PRODUCERS):
        producer = Producer(target.bootstrap, topic, index, load["idempotent"])
        frames = producer.frames(records)
        producer.begin(next(frames))
        selector.register(producer, selectors.EVENT_READ, (producer, frames, bytearray()))
    taken = 0
    with Window(target.pid) as window:
        for key in selector.get_map().values():
            key.data[0].sendall(b"".join(islice(key.data[1], DEPTH)))
        while window.so_far_s < seconds:
            for key, _ in selector.select(seconds):
                producer, frames, received = key.data
                received += producer.recv(65536)
                for answer in answers(received):
                    check(answer)
                    taken += 1
                    producer.sendall(next(frames))
    for key in list(selector.get_map().values()):
        key.data[0].close()
    return window.measured(taken, {"batches/s": taken / window.seconds})


def answers(received: bytearray) -> Iterator[bytes]:
    """Takes the complete frames out of the buffer."""
    while len(received) >= 4 and len(received) >= 4 + (size := struct.unpack_from(">i", received)[0]):
        yield bytes(received[4 : 4 + size])
        del received[: 4 + size]


def error_of(frame: bytes) -> ErrorCode:
    """The error of the one partition in an answer."""
    _, response = decode_response(ApiKey.PRODUCE, VERSION, frame)
    return ErrorCode(response.responses[0].partition_responses[0].error_code)


def check(frame: bytes) -> None:
    """Raises RuntimeError for an answer with an error."""
    if error := error_of(frame):
        raise RuntimeError(f"the broker answered {error.name}")
