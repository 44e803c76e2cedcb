"""python -m integration.power_loss: see the package."""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from integration.power_loss.disk import possible_files
from integration.power_loss.trace import OPTIONS, events
from integration.support.clients import new_producer
from integration.support.server import COMMAND, Server
from kshim.check.stored import DATA_FILE, Stored
from kshim.check.walk import walk
from kshim.storage.embedded.data_dir import LOCK_FILE

PRODUCERS, PARTITIONS = 3, 3
SIZES = (20, 300, 9000)
TIMEOUT_S = 20

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


def verify(file: Path, topic: str, wanted: Iterable[tuple[int, int]]) -> None:
    """Raises Broken."""
    with Stored(file.parent) as stored:
        found = walk(stored, lambda size: None)
    if found.faults:
        raise Broken("\n".join(map(str, found.faults)))
    ends = {each.index: each.end for each in found.partitions if each.topic == topic}
    for partition, offset in wanted:
        if ends[partition] <= offset:
            raise Broken(f"{topic}-{partition} ends at {ends[partition]}, {offset} was acknowledged")


def run(directory: Path, records: int, seed: int) -> tuple[int, int]:
    """Returns how many records were acknowledged, and how many files were checked. Raises Broken."""
    data_dir, trace, topic = directory / "data", directory / "trace", "power"
    file = data_dir / DATA_FILE
    server = Server(
        data_dir,
        ["--set", f"num.partitions={PARTITIONS}"],
        command=["strace", *OPTIONS, "-o", str(trace), *COMMAND],
    ).start()
    first = new_producer(server.bootstrap)
    for partition in range(PARTITIONS):
        first.send(topic, b"", partition=partition).get(TIMEOUT_S)
    first.close()
    acknowledged = produce(server.bootstrap, topic, records, seed)
    os.kill(int((data_dir / LOCK_FILE).read_text()), signal.SIGTERM)
    server.wait()

    began_s = min(at_s for at_s, _, _ in acknowledged)
    copy = directory / "copy" / DATA_FILE
    copy.parent.mkdir()
    looked_at = 0
    with trace.open() as lines:
        for at_s, content in possible_files(b"", events(lines, file), random.Random(seed)):
            if at_s >= began_s:
                copy.write_bytes(content)
                wanted = [(partition, offset) for then_s, partition, offset in acknowledged if then_s < at_s]
                verify(copy, topic, wanted)
                looked_at += 1
    return len(acknowledged), looked_at


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m integration.power_loss", description=__doc__)
    parser.add_argument("--records", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kshim-power-") as directory:
        try:
            acknowledged, looked_at = run(Path(directory), arguments.records, arguments.seed)
        except Broken as broken:
            print(f"BROKEN, with seed {arguments.seed}: {broken}")
            return 1
    print(f"{acknowledged} records acknowledged; {looked_at} losses of power, and not one of them was lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
