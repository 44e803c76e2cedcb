"""A rate over the last samples, and the time that a client must wait until its rate falls to the quota
(KIP-13).

A sample begins with the first value that is recorded after the sample before it is complete. The rate is the
sum of all samples that are not too old, divided by the time since the oldest of them began. That time is
counted as if all samples but the newest were complete. So a first request may be larger than the quota allows
for one second.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final, NamedTuple

MOST_THROTTLE_MS: Final = 2**31 - 1
"""The largest throttle_time_ms, which is an INT32."""


class Window(NamedTuple):
    """The number of samples that are kept, and the length of each: quota.window.num and
    quota.window.size.seconds.
    """

    samples: int
    sample_ms: int

    @property
    def ms(self) -> int:
        """The time after which a recorded value no longer counts."""
        return self.samples * self.sample_ms


class _Sample:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, start_ms: int) -> None:
        self.start_ms = start_ms
        self.last_ms = start_ms
        self.value = 0.0


class Rate:
    """The recently recorded values. Times are in milliseconds, and never go back."""

    __slots__ = ("_samples", "_window")

    def __init__(self, window: Window) -> None:
        self._window = window
        self._samples: deque[_Sample] = deque()

    def record(self, value: float, now_ms: int) -> None:
        """Add `value`. A negative value takes back what was added before."""
        samples, window = self._samples, self._window
        if not samples or now_ms - samples[-1].start_ms >= window.sample_ms:
            samples.append(_Sample(now_ms))
            if len(samples) > window.samples + 1:  # the oldest may overlap the time that counts
                samples.popleft()
        samples[-1].value += value
        samples[-1].last_ms = now_ms

    def throttle_ms(self, per_s: float, now_ms: int) -> int:
        """The time, without any further value, until the rate has fallen to `per_s`; 0 if it is not above
        that.
        """
        elapsed_ms = self._elapsed_ms(now_ms)
        rate = sum(sample.value for sample in self._samples) / (elapsed_ms / 1000)
        if rate <= per_s:
            return 0
        if per_s <= 0:
            return MOST_THROTTLE_MS
        return min(rounded((rate - per_s) / per_s * elapsed_ms), MOST_THROTTLE_MS)

    def is_idle(self, now_ms: int) -> bool:
        """True if no recorded value counts any more."""
        return not self._samples or now_ms - self._samples[-1].last_ms >= self._window.ms

    def _elapsed_ms(self, now_ms: int) -> int:
        """The time by which the sum of the samples is divided."""
        samples, window = self._samples, self._window
        while samples and now_ms - samples[0].last_ms >= window.ms:
            samples.popleft()
        elapsed_ms = now_ms - samples[0].start_ms if samples else 0
        missing = window.samples - 1 - elapsed_ms // window.sample_ms
        return max(elapsed_ms + max(missing, 0) * window.sample_ms, 1)


def rounded(ms: float) -> int:
    """Round to the nearest whole number as Java does: halves upwards."""
    return math.floor(ms + 0.5)
