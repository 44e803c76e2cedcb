"""A kshim as far as one shard is concerned: it takes the shard over, leads it, and answers commits and reads.

The decisions are the real ones, of `Takeover` and `Tenure`; here is only what carries them out. Its clock has
a rate of its own, and it may be paused: all that would happen meanwhile happens when it wakes up, in an order
that nobody has promised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any
from uuid import UUID

from kshim.upstream.shards.answers import NO_ANSWER, Answer, Meaning
from kshim.upstream.shards.takeover import Append, Batch, GiveUp, Lead, Read, Takeover, Wait
from kshim.upstream.shards.tenure import Outgoing, Tenure
from schemas.internal_topics.shard_claim import KEY, ShardClaim, encode_claim
from tests.simulation.groups.clock import SimulatedClock
from tests.simulation.shards.kafka import Kafka, Stored, value_of

LEASE_MS = 500
REQUEST_TIMEOUT_MS = 3_000
PAUSE_MS = 100
"""Before a takeover that was lost is tried again."""

Tell = Callable[[str, str, object], None]
Reply = Callable[[bytes | None], None]
"""Called with what was committed or read; None if the node cannot tell."""


class Network:
    """Requests on their way to Kafka, and answers on their way back: late, or lost."""

    def __init__(self, clock: SimulatedClock, chance: Random) -> None:
        self._clock, self._chance = clock, chance
        self.loss = 0.0
        self.slowest_ms = 5

    def delay_ms(self) -> int:
        if self._chance.random() < 0.02:
            return self._chance.randint(0, 20 * self.slowest_ms)
        return self._chance.randint(0, self.slowest_ms)

    def send(self, do: Callable[..., None], *arguments: Any) -> None:
        """Do it later, or never."""
        if self._chance.random() >= self.loss:
            self._clock.after(self.delay_ms(), do, *arguments)


class Node:
    """One process. `crash` ends it for good; another one takes its place."""

    def __init__(
        self, name: str, kafka: Kafka, clock: SimulatedClock, network: Network, chance: Random, tell: Tell
    ) -> None:
        self.name = name
        self.is_alive = True
        self.is_wanted = False
        """Whether the assignment says that it is to lead."""
        self.wakes_ms = 0
        """Until when it sleeps."""
        self.tenure: Tenure | None = None
        self.takeovers = 0
        self.value: bytes | None = None
        self._kafka, self._clock, self._network, self._chance = kafka, clock, network, chance
        self._tell = tell
        self._rate = chance.uniform(0.97, 1.03)
        self._offset_ms = chance.randint(0, 10**9)
        self._takeover: Takeover | None = None
        self._claim: ShardClaim | None = None
        self._claimed_ms = 0
        self._replies: dict[int, tuple[Reply, bytes | None]] = {}

    # ---- its time

    def now_ms(self) -> int:
        return int(self._clock.now_ms * self._rate) + self._offset_ms

    def later(self, delay_ms: float, do: Callable[..., None], *arguments: Any) -> None:
        """Do it by the node's clock; while it sleeps, nothing is done."""
        self._clock.after(int(delay_ms / self._rate) + 1, self._awake, do, *arguments)

    def _awake(self, do: Callable[..., None], *arguments: Any) -> None:
        if not self.is_alive:
            return
        if self._clock.now_ms < self.wakes_ms:
            wait_ms = self.wakes_ms - self._clock.now_ms + self._chance.randint(0, 2)
            self._clock.after(wait_ms, self._awake, do, *arguments)
        else:
            do(*arguments)

    def _hear(self, do: Callable[..., None], *arguments: Any) -> None:
        """An answer from Kafka is on its way."""
        self._network.send(self._awake, do, *arguments)

    # ---- what others do with it

    def assign(self, is_wanted: bool) -> None:
        if is_wanted == self.is_wanted:
            return
        self.is_wanted = is_wanted
        self._tell(self.name, "is to lead" if is_wanted else "is not to lead", "")
        if is_wanted:
            self._begin()
        elif self.tenure is not None:
            self._release()
        else:
            self._takeover = None

    def commit(self, number: int, reply: Reply) -> None:
        ((_, value),) = value_of(number)
        if (tenure := self.tenure) is None:
            reply(None)
            return
        self.value = value
        self._replies[tenure.append(value_of(number), self.now_ms())] = (reply, value)
        self._go_on()

    def read(self, reply: Reply) -> None:
        if (tenure := self.tenure) is None:
            reply(None)
        elif not self._replies and tenure.is_fresh(self.now_ms()):
            self._tell(self.name, "reads at once", self.value)
            reply(self.value or b"")
        else:
            self._replies[tenure.prove(self.now_ms())] = (reply, self.value or b"")
            self._go_on()

    def crash(self) -> None:
        self.is_alive = False
        self.tenure = None

    # ---- taking over

    def _begin(self) -> None:
        if not self.is_wanted or self.tenure is not None or self._takeover is not None:
            return
        self.takeovers += 1
        claim_id = UUID(int=self._chance.getrandbits(128))
        self._claim = ShardClaim(claim_id=claim_id, host=self.name, port=9092, lease_ms=LEASE_MS)
        self._takeover = Takeover(self._claim)
        self.value = None
        self._do(self._takeover)

    def _do(self, takeover: Takeover) -> None:
        """Do what the takeover wants, unless it was called off."""
        if takeover is not self._takeover:
            return
        want = takeover.wants()
        match want:
            case Read():
                self._ask(
                    lambda heard: heard(*self._kafka.fetch(want.offset)),
                    partial(self._read, takeover),
                    partial(self._do, takeover),
                )
            case Append():
                outgoing = Outgoing(want.term, 0, ((KEY, encode_claim(want.claim)),))
                self._claimed_ms = self.now_ms()
                self._send(outgoing, partial(self._claimed, takeover))
            case Wait():
                self.later(want.wait_ms, self._waited, takeover)
            case GiveUp():
                self._tell(self.name, "has lost", takeover.newest)
                self._takeover = None
                self.later(self._chance.randint(0, PAUSE_MS), self._begin)
            case Lead():
                self._lead(want)

    def _ask(self, ask: Callable[..., None], heard: Callable[..., None], again: Callable[[], None]) -> None:
        """Ask Kafka; if no answer comes in time, do `again`, and do not listen any more."""
        is_open = True

        def listen(*answer: Any) -> None:
            nonlocal is_open
            if is_open:
                is_open = False
                heard(*answer)

        def give_up() -> None:
            nonlocal is_open
            if is_open:
                is_open = False
                again()

        self._network.send(ask, lambda *answer: self._hear(listen, *answer))
        self.later(REQUEST_TIMEOUT_MS, give_up)

    def _send(self, batch: Outgoing, heard: Callable[[Answer], None]) -> None:
        self._ask(lambda listen: self._kafka.append(batch, listen), heard, lambda: heard(NO_ANSWER))

    def _read(self, takeover: Takeover, stored: list[Stored], high_watermark: int) -> None:
        if takeover is self._takeover:
            for each in stored:
                for value in each.values:
                    self.value = value
            takeover.was_read([each.batch for each in stored], high_watermark)
            self._do(takeover)

    def _claimed(self, takeover: Takeover, answer: Answer) -> None:
        if takeover is self._takeover:
            takeover.was_answered(answer)
            pause_ms = self._chance.randint(1, 20) if answer.meaning is Meaning.AGAIN else 0
            self.later(pause_ms, self._do, takeover)

    def _waited(self, takeover: Takeover) -> None:
        if takeover is self._takeover:
            takeover.has_waited()
            self._do(takeover)

    # ---- leading

    def _lead(self, lead: Lead) -> None:
        assert self._claim is not None
        self._takeover = None
        entry = (KEY, encode_claim(self._claim))
        self.tenure = Tenure(lead, LEASE_MS, self._claimed_ms, entry)
        self._tell(self.name, "leads", lead)
        self._poll(self.tenure)

    def _poll(self, tenure: Tenure) -> None:
        """Ask for a proof, several times in a lease."""
        if tenure is not self.tenure:
            return
        self._go_on()
        if tenure is self.tenure and tenure.asks(self.now_ms()):
            self._ask(
                lambda listen: listen(self._kafka.high_watermark),
                lambda end: self._settle(tenure, tenure.learn_end(end)),
                lambda: self._settle(tenure, tenure.learn_end(None)),
            )
        self.later(LEASE_MS / 3, self._poll, tenure)

    def _go_on(self) -> None:
        """Send what is to be sent."""
        if (tenure := self.tenure) is None:
            return
        if (offset := tenure.to_read()) is not None:
            self._ask(
                lambda listen: listen(*self._kafka.fetch(offset)),
                lambda stored, _: self._was_read(tenure, [each.batch for each in stored]),
                lambda: self._was_read(tenure, None),
            )
        elif (batch := tenure.to_send(self.now_ms())) is not None:
            self._tell(self.name, "sends", batch)
            self._send(batch, lambda answer: self._answered(tenure, answer))
        self._look(tenure)

    def _was_read(self, tenure: Tenure, batches: list[Batch] | None) -> None:
        """Take in what others have written."""
        tenure.was_read(batches)
        self._settle(tenure, tenure.settled())

    def _answered(self, tenure: Tenure, answer: Answer) -> None:
        self._tell(self.name, "hears", answer)
        self._settle(tenure, tenure.was_answered(answer))
        if answer.meaning is Meaning.AGAIN and not tenure.over:
            self.later(self._chance.randint(1, 20), self._again, tenure)

    def _again(self, tenure: Tenure) -> None:
        if (batch := tenure.to_send_again(self.now_ms())) is not None:
            self._send(batch, lambda answer: self._answered(tenure, answer))
        self._look(tenure)

    def _settle(self, tenure: Tenure, tokens: list[int]) -> None:
        if tenure is not self.tenure:
            return
        for token in tokens:
            if (waiting := self._replies.pop(token, None)) is not None:
                reply, value = waiting
                reply(value)
        self._go_on()

    def _look(self, tenure: Tenure) -> None:
        """Take the shard over again if the tenure is over."""
        if tenure is self.tenure and tenure.over:
            self._tell(self.name, "leads no more", tenure.over)
            self._drop()
            self.later(self._chance.randint(0, PAUSE_MS), self._begin)

    def _drop(self) -> None:
        self.tenure = None
        replies, self._replies = self._replies, {}
        for reply, _ in replies.values():
            reply(None)

    def _release(self) -> None:
        """Answer nothing more, and say so in the log: the next leader need not wait."""
        tenure = self.tenure
        assert tenure is not None
        assert self._claim is not None
        if tenure.is_idle:
            last = tenure.release((KEY, encode_claim(replace(self._claim, is_released=True))))
            self._network.send(self._kafka.append, last, lambda _: None)
        self._drop()
