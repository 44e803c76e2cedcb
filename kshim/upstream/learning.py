"""Asks the upstream for topics in fair turns, so that many topics of one client do not delay another's few.

A call of `learn` is a job. Each request to the upstream takes some keys of each job, those with few keys
first. So a small job waits only for the requests that are under way, not for all keys of a large one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeVar
from uuid import UUID

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

Key = str | UUID
"""A topic's name or id."""
AT_ONCE = 500
"""Limit of topics in one request."""
FEW = 50
"""A job with at most so many keys is done whole, with the next request."""
UNDER_WAY = 2
"""Limit of requests without an answer. A broker answers the requests of a connection one after the other."""
T = TypeVar("T")


class _Job:
    """The keys that one caller waits for: all names, or all ids."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self.keys = deque(keys)
        self.under_way = 0
        """Number of requests under way that have keys of this job."""
        self.learned: Deferred[None] = Deferred()

    @property
    def is_by_id(self) -> bool:
        return isinstance(self.keys[0], UUID)


class Learning:
    """The jobs, and the requests under way for them."""

    def __init__(self, ask: Callable[[Sequence[Key]], Deferred[None]]) -> None:
        """ask: asks for some names or some ids, and notes the answer; errbacks LinkError."""
        self._ask = ask
        self._jobs: deque[_Job] = deque()
        """Jobs with keys that have not been asked for."""
        self._under_way = 0
        self._is_asking = False

    def learn(self, keys: Iterable[Key]) -> Deferred[None]:
        """Ask for topics. Fires when all were asked for; errbacks LinkError."""
        names, ids = _parted(dict.fromkeys(keys), lambda key: isinstance(key, UUID))
        jobs = [_Job(some) for some in (names, ids) if some]
        self._jobs += jobs
        learned: Deferred[None] = _all(jobs)
        self._go_on()
        return learned

    def _go_on(self) -> None:
        if self._is_asking:
            return
        self._is_asking = True
        while self._jobs and self._under_way < UNDER_WAY:
            self._ask_next()
        self._is_asking = False

    def _ask_next(self) -> None:
        is_by_id = self._jobs[0].is_by_id
        taken: dict[Key, None] = {}
        jobs = []
        for job, count in self._turns([job for job in self._jobs if job.is_by_id is is_by_id]):
            taken.update(dict.fromkeys(job.keys.popleft() for _ in range(count)))
            job.under_way += 1
            jobs.append(job)
        self._jobs.rotate(-1)  # the other kind (names or ids) is next, and another job is first
        self._jobs = deque(job for job in self._jobs if job.keys)
        self._under_way += 1
        self._ask(list(taken)).addBoth(self._answered, jobs)

    def _turns(self, jobs: Sequence[_Job]) -> Iterator[tuple[_Job, int]]:
        """Yield the jobs that take part in the next request, with their number of keys in it."""
        left = AT_ONCE
        small, large = _parted(jobs, lambda job: len(job.keys) > FEW)
        for job in small:
            if len(job.keys) <= left - (AT_ONCE // 2 if large else 0):
                left -= len(job.keys)
                yield job, len(job.keys)
        share = max(1, left // len(large)) if large else 0
        for job in large:
            count = min(share, len(job.keys), left)
            if count:
                left -= count
                yield job, count

    def _answered(self, result: Failure | None, jobs: Collection[_Job]) -> None:
        self._under_way -= 1
        for job in jobs:
            job.under_way -= 1
            if job.learned.called:
                continue
            if isinstance(result, Failure):
                job.keys.clear()
                job.learned.errback(result)
            elif not job.keys and not job.under_way:
                job.learned.callback(None)
        self._jobs = deque(job for job in self._jobs if job.keys)
        self._go_on()


def _parted(values: Iterable[T], is_second: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    parts: tuple[list[T], list[T]] = [], []
    for value in values:
        parts[is_second(value)].append(value)
    return parts


def _all(jobs: Sequence[_Job]) -> Deferred[None]:
    """Fires when all jobs are done; errbacks with the first failure."""
    done: Deferred[None] = Deferred()
    left = len(jobs)

    def one_done(result: Failure | None) -> None:
        nonlocal left
        left -= 1
        if done.called:
            return
        if isinstance(result, Failure):
            done.errback(result)
        elif not left:
            done.callback(None)

    for job in jobs:
        job.learned.addBoth(one_done)
    if not jobs:
        done.callback(None)
    return done
