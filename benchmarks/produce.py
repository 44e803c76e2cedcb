"""How many batches a second a broker accepts with acks=all, compared with a peer in the same minute.

    python -m benchmarks.produce 127.0.0.1:9092 [PEER_HOST:PORT]

Eight producers, each with its own partition, keep five requests in flight, as clients do. Their batches are
plain or idempotent, and have one small record or 16 KiB.
"""

from __future__ import annotations

import selectors
import struct
import sys
import time
from collections.abc import Iterator
from itertools import count, islice, repeat
from uuid import uuid4

from benchmarks.raw import READY_TIMEOUT_S, Connection
from integration.support.wire import framed
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.create_topics import CreatableTopic, CreateTopicsRequest
from schemas.messages.init_producer_id import InitProducerIdRequest
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.records.batch import Record, encode
from schemas.registry import decode_response

VERSION = 9
PRODUCERS, DEPTH = 8, 5
SECONDS = 3.0
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
        """Requests of one batch each."""
        for number in count():
            batch = encode(
                records,
                producer_id=self.producer_id,
                producer_epoch=self.producer_epoch,
                base_sequence=-1 if self.producer_id < 0 else number * len(records),
            )
            data = PartitionProduceData(index=self.index, records=batch)
            topic = TopicProduceData(name=self.topic, partition_data=(data,))
            request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=9000, topic_data=(topic,))
            frame = framed(VERSION, request)
            if self.producer_id < 0:
                yield from repeat(frame)
            yield frame


def batches_per_second(bootstrap: str, records: list[Record], idempotent: bool) -> float:
    """The rate at which `bootstrap` accepts batches."""
    topic = f"benchmark-{uuid4()}"
    admin = Connection(bootstrap)
    created = CreatableTopic(name=topic, num_partitions=PRODUCERS, replication_factor=1, assignments=())
    admin.ask(5, CreateTopicsRequest(topics=(created,), timeout_ms=10_000))
    selector = selectors.DefaultSelector()
    for index in range(PRODUCERS):
        producer = Producer(bootstrap, topic, index, idempotent)
        frames = producer.frames(records)
        producer.begin(next(frames))
        producer.sendall(b"".join(islice(frames, DEPTH)))
        selector.register(producer, selectors.EVENT_READ, (producer, frames, bytearray()))
    taken, began = 0, time.perf_counter()
    while (took := time.perf_counter() - began) < SECONDS:
        for key, _ in selector.select(SECONDS):
            producer, frames, received = key.data
            received += producer.recv(65536)
            for answer in answers(received):
                check(answer)
                taken += 1
                producer.sendall(next(frames))
    for key in list(selector.get_map().values()):
        key.data[0].close()
    return taken / took


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


SMALL = [Record(0, 1_700_000_000_000, b"key", b"x" * 100)]
LARGE = [Record(number, 1_700_000_000_000, b"key", b"x" * 1000) for number in range(16)]
MANY = [Record(number, 1_700_000_000_000, b"key", b"x" * 90) for number in range(160)]
LOADS = [
    ("1 record of 100 B", SMALL, False),
    ("1 record of 100 B, idempotent", SMALL, True),
    ("16 records of 1 KB", LARGE, False),
    ("16 records of 1 KB, idempotent", LARGE, True),
    ("160 records of 90 B, idempotent", MANY, True),
]


def main(bootstrap: str, peer: str = "") -> None:
    """Print a line for each load."""
    for name, records, idempotent in LOADS:
        rate = batches_per_second(bootstrap, records, idempotent)
        line = f"{name:32} {rate:9,.0f}/s"
        if peer:
            peer_rate = batches_per_second(peer, records, idempotent)
            line += f"   peer {peer_rate:9,.0f}/s   ratio {rate / peer_rate:.2f}"
        print(line, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
