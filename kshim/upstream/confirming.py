"""Asks the upstream whether topic names still have the ids that kshim knows: a topic may be deleted and
recreated.

Offsets are kept with the id of their topic. A client that knows the new topic must not get the offsets of the
old one. So a request that names a topic waits until the upstream was asked lately. Many requests share one
question. If the upstream does not answer in time, the known ids stay in use.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from uuid import UUID

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kshim.upstream.learning import Key
from kshim.upstream.link import LinkError
from kshim.upstream.topics import Topics

logger = logging.getLogger(__name__)

FRESH_S = 0.1
"""How old an answer may be for a commit: nobody recreates, finds and reads a topic in that time."""
PATIENCE_S = 1.0
"""How long a request waits for the answer."""


class Confirming:
    """Asks one question at a time; names that come meanwhile go into the next one."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._clock = topics.clock
        self._wanted: dict[str, None] = {}
        self._waiting: list[Deferred[None]] = []
        self._asked_s: float | None = None
        """When the question that is under way was asked; None if there is none."""

    def is_known(self, keys: Iterable[Key], age_s: float = FRESH_S) -> bool:
        """True if all topics were confirmed within the last `age_s`. False for ids: use `know` for them."""
        confirmed_s, since_s = self._topics.confirmed_s, self._clock.seconds() - age_s
        for key in keys:
            if confirmed_s.get(key, since_s) <= since_s:
                break
        else:
            return True
        return False

    def know(self, keys: Collection[Key], age_s: float = FRESH_S) -> Deferred[None] | None:
        """Learn unknown topics and confirm known ones; None if neither is necessary.

        age_s: how old the upstream's last answer may be. Errbacks LinkError if topics cannot be learned.
        """
        missing, stale = self._topics.missing(keys), self.stale(keys, age_s)
        confirmed = self.confirm(stale) if stale else None
        if not missing:
            return confirmed
        learned = self._topics.learn(missing)
        return learned if confirmed is None else learned.addCallback(lambda _: confirmed)

    def stale(self, keys: Iterable[Key], age_s: float = FRESH_S) -> list[str]:
        """Return the names of known topics among `keys` that were not confirmed within the last `age_s`.

        Empty while the upstream takes longer than PATIENCE_S to answer.
        """
        topics, now_s = self._topics, self._clock.seconds()
        if self._asked_s is not None and now_s - self._asked_s >= PATIENCE_S:
            return []
        since_s = now_s - age_s
        names = []
        for key in keys:
            topic = topics.by_id.get(key) if isinstance(key, UUID) else topics.by_name.get(key)
            if topic is not None and topics.confirmed_s[topic.name] <= since_s:
                names.append(topic.name)
        return names

    def confirm(self, names: Iterable[str]) -> Deferred[None]:
        """Ask which topics the names stand for now. Fires after the answer, or when it takes too long."""
        self._wanted.update(dict.fromkeys(names))
        confirmed: Deferred[None] = Deferred()
        self._waiting.append(confirmed)
        if self._asked_s is None:
            self._ask_next()
        return confirmed

    def _ask_next(self) -> None:
        wanted, self._wanted = list(self._wanted), {}
        waiting, self._waiting = self._waiting, []
        self._asked_s = self._clock.seconds()

        def too_late() -> None:
            waits, self._waiting = self._waiting, []
            for each in (*waiting, *waits):
                each.callback(None)
            waiting.clear()

        late = self._clock.callLater(PATIENCE_S, too_late)

        def answered(_: object) -> None:
            if late.active():
                late.cancel()
            self._asked_s = None
            for each in waiting:
                each.callback(None)
            if self._waiting and self._asked_s is None:
                self._ask_next()

        Deferred.fromCoroutine(self._topics.ask_again(wanted)).addErrback(_not_now).addCallback(answered)


def _not_now(failure: Failure) -> None:
    failure.trap(LinkError)
    logger.debug("topics cannot be asked for: %s", failure.value)
