"""python -m integration.power_loss: see the package."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from integration.power_loss import members
from integration.power_loss.disk import possible_files
from integration.power_loss.trace import OPTIONS, events
from integration.support.clients import new_producer
from integration.support.server import COMMAND, Server
from kshim.check.stored import Stored
from kshim.check.walk import walk
from kshim.storage.embedded.data_dir import LOCK_FILE
from kshim.storage.embedded.data_file import DATA_FILE
from kshim.testing.wire import Wire
from schemas.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

T = TypeVar("T")

PRODUCERS, PARTITIONS = 3, 3
SIZES = (20, 300, 9000)
TIMEOUT_S = 20
DELETIONS = 20
"""How many requests that delete nothing are under way."""
FILES_OF_FAILED = 12
"""How many of the possible files are looked at for each sync that fails."""

Acknowledged = list[tuple[float, int, int]]
"""When each record was acknowledged, its partition and its offset."""


class Broken(AssertionError):
    """An acknowledged record is missing, or the file is damaged."""


def produce(bootstrap: str, topic: str, records: int, seed: int) -> Acknowledged:
    """Produce, and return what was acknowledged. Each producer has several batches in flight, and sometimes
    flushes."""
    acknowledged: Acknowledged = []

    def work(number: int) -> None:
        chance = random.Random(f"{seed}-{number}")
        producer = new_producer(bootstrap, enable_idempotence=number > 0, linger_ms=0)

        def note(stored: Any) -> None:
            acknowledged.append((time.time(), stored.partition, stored.offset))

        for _ in range(records // PRODUCERS):
            value = bytes(chance.choice(SIZES))
            producer.send(topic, value, partition=chance.randrange(PARTITIONS)).add_callback(note)
            if chance.random() < 0.2:
                producer.flush()
        producer.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(PRODUCERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return acknowledged


def verify(
    directory: Path, topic: str, wanted: Iterable[tuple[int, int]], of_members: Collection[members.Kept]
) -> None:
    """Raises Broken."""
    with Stored(directory) as stored:
        found = walk(stored, lambda size: None)
        lost = members.missing(stored, topic, of_members)
    if found.faults:
        raise Broken("\n".join(map(str, found.faults)))
    if lost:
        raise Broken(lost)
    ends = {each.partition: each.end for each in found.partitions if each.topic == topic}
    for partition, offset in wanted:
        if ends[partition] <= offset:
            raise Broken(f"{topic}-{partition} ends at {ends[partition]}, {offset} was acknowledged")


@contextmanager
def nothing_deleted(server: Server, topic: str) -> Iterator[None]:
    """Meanwhile a client deletes the records before the first, again and again: no page changes."""
    stopping = threading.Event()
    partitions = tuple(DeleteRecordsPartition(partition_index=index, offset=0) for index in range(PARTITIONS))
    request = DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name=topic, partitions=partitions),), timeout_ms=TIMEOUT_S * 1000
    )

    def delete() -> None:
        with Wire(server.host, server.port, timeout_s=TIMEOUT_S) as wire:
            while not stopping.is_set():
                for _ in range(DELETIONS):
                    wire.request(2, request)
                for _ in range(DELETIONS):
                    wire.frame()

    def work() -> None:
        while not stopping.is_set():
            with suppress(ConnectionError):  # after a failed sync the log is not read for a moment
                delete()

    thread = threading.Thread(target=work)
    thread.start()
    yield
    stopping.set()
    thread.join()


def run(
    directory: Path, records: int, seed: int, failing: int = 0, flush: str = "commit"
) -> tuple[int, int, int]:
    """Returns how many records were acknowledged, how many epochs and offsets of a group, and how many files
    were checked. Raises Broken.

    flush: the server's flush.policy. With "os" sound files are promised, and no record.
    failing: the number of the sync that fails; a server that does not start then has acknowledged nothing.
    """
    data_dir, trace, topic = directory / "data", directory / "trace", "power"
    inject = ["-e", f"inject=fdatasync:error=EIO:when={failing}"] if failing else []
    server = Server(
        data_dir,
        ["--set", f"num.partitions={PARTITIONS}", "--set", f"flush.policy={flush}"],
        command=["strace", *OPTIONS, *inject, "-o", str(trace), *COMMAND],
    )
    try:
        server.start()
    except AssertionError:
        if failing and "Input/output error" in server.report():
            return 0, 0, 0
        raise
    first = new_producer(server.bootstrap)
    for partition in range(PARTITIONS):
        first.send(topic, b"", partition=partition).get(TIMEOUT_S)
    first.close()
    with (
        nothing_deleted(server, topic),
        members.members_at_work(server.host, server.port, topic, seed) as group,
    ):
        acknowledged = produce(server.bootstrap, topic, records, seed)
    os.kill(int((data_dir / LOCK_FILE).read_text()), signal.SIGTERM)
    server.wait()
    began_s = min(at_s for at_s, _, _ in acknowledged)
    is_promised = flush == "commit"
    looked_at = look(
        directory,
        topic,
        began_s,
        acknowledged if is_promised else [],
        group.acknowledged if is_promised else [],
        random.Random(seed),
        FILES_OF_FAILED if failing else None,
    )
    return len(acknowledged), len(group.acknowledged), looked_at


def look(
    directory: Path,
    topic: str,
    began_s: float,
    acknowledged: Acknowledged,
    of_members: Collection[members.Kept],
    chance: random.Random,
    most: int | None,
) -> int:
    """Verify the files that the disk may have held after the first record was acknowledged: all of them, or
    `most` of them by chance, and the last. Returns how many that were. Raises Broken.
    """
    copy = directory / "copy"
    looked_at = 0
    with (directory / "trace").open() as lines:
        images = possible_files(events(lines, directory / "data"), chance)
        chosen = (
            (at_s, image)
            for at_s, image in images
            if at_s >= began_s and (acknowledged or DATA_FILE in image)
        )
        for at_s, image in chosen if most is None else sample(chosen, most, chance):
            shutil.rmtree(copy, ignore_errors=True)
            copy.mkdir()
            for name, content in image.items():
                (copy / name).write_bytes(content)
            wanted = [(partition, offset) for then_s, partition, offset in acknowledged if then_s < at_s]
            verify(copy, topic, wanted, [each for each in of_members if each.at_s < at_s])
            looked_at += 1
    return looked_at


def sample(items: Iterable[T], most: int, chance: random.Random) -> list[T]:
    """`most` of the items, each as likely as any other, and the last."""
    kept: list[T] = []
    item = None
    for number, item in enumerate(items):
        if number < most:
            kept.append(item)
        elif (place := chance.randrange(number + 1)) < most:
            kept[place] = item
    return kept if item is None else [*kept, item]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m integration.power_loss", description=__doc__)
    parser.add_argument("--records", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--flush", choices=("commit", "os"), default="commit", help="flush.policy")
    parser.add_argument(
        "--fail-syncs",
        type=int,
        default=0,
        metavar="N",
        help="let the first sync of a server fail, the second of another, and so on up to the Nth",
    )
    arguments = parser.parse_args()
    totals = [0, 0, 0]
    for failing in range(1, arguments.fail_syncs + 1) or (0,):
        with tempfile.TemporaryDirectory(prefix="kshim-power-") as directory:
            try:
                found = run(Path(directory), arguments.records, arguments.seed, failing, arguments.flush)
            except Broken as broken:
                print(f"BROKEN, with seed {arguments.seed}, sync {failing} failed: {broken}")
                return 1
        totals = [one + other for one, other in zip(totals, found, strict=True)]
    of_records, of_group, looked_at = totals
    print(
        f"{of_records} records, and {of_group} epochs and offsets of a group acknowledged; "
        f"{looked_at} losses of power, and not one of them was lost"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
