"""Produces the records that a program is to process, at an even rate, while it is tortured."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from kshim.torture.evidence import Input, Place
from kshim.torture.outputs import NUMBER_HEADER, VALUE, input_value
from kshim.torture.processes import now_ms
from kshim.torture.stage import Outgoing, Refused, Stage

EVERY_S = 0.4
"""Records come in bursts, so that a program has some in hand at most times."""


class Producing:
    """A thread that appends records until it is stopped."""

    def __init__(self, stage: Stage, topic: str, rate: int, keys: int, value: str = VALUE) -> None:
        """rate: records per second. keys: how many keys take turns. value: the template of the values."""
        self._stage, self._topic, self._rate, self._keys = stage, topic, rate, keys
        self._value = value
        self._inputs: list[Input] = []
        self._next = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._produce, daemon=True)
        self.undisturbed = threading.Lock()
        """Held while records are under way. Whoever stops a broker holds it: a batch that is sent twice would
        be two records.
        """
        self.failure: Refused | None = None

    @property
    def inputs(self) -> Sequence[Input]:
        """What was produced so far."""
        return tuple(self._inputs)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Produce no more."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def append(self, count: int) -> None:
        """Append so many records at once. Raises Refused."""
        with self.undisturbed:
            records = self._new(count)
            at_ms = now_ms()
            placed = self._stage.append(self._topic, records)
            self._keep(records, placed, at_ms, is_aborted=False)

    def append_aborted(self, partitions: int, each: int) -> int:
        """Append some records to every partition, and abort their transaction; return how many. Raises
        Refused.
        """
        with self.undisturbed:
            records = [
                record._replace(partition=number % partitions)
                for number, record in enumerate(self._new(partitions * each))
            ]
            at_ms = now_ms()
            placed = self._stage.append_aborted(self._topic, records)
            self._keep(records, placed, at_ms, is_aborted=True)
        return len(records)

    def _produce(self) -> None:
        try:
            while not self._over.wait(EVERY_S):
                self.append(max(1, round(self._rate * EVERY_S)))
        except Refused as failure:
            self.failure = failure

    def _new(self, count: int) -> list[Outgoing]:
        found = []
        for _ in range(count):
            key = f"key-{self._next % self._keys}"
            value = input_value(self._value, self._next, key)
            found.append(Outgoing(key, value, {NUMBER_HEADER: str(self._next)}))
            self._next += 1
        return found

    def _keep(
        self,
        records: Sequence[Outgoing],
        placed: Sequence[tuple[int, int]],
        at_ms: float,
        *,
        is_aborted: bool,
    ) -> None:
        for record, (partition, offset) in zip(records, placed, strict=True):
            number = int(record.headers[NUMBER_HEADER])
            place = Place(self._topic, partition, offset)
            self._inputs.append(Input(number, record.key, place, at_ms, is_aborted))
