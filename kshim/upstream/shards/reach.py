"""Which shards do not answer this process, though it keeps asking for them. Pure.

A process asks for the ends of all shards: its own several times in a lease, the others' once in PROBE_S. So
each knows which brokers it can reach, and says so when it joins the group of the processes. A shard that does
not answer the process that leads it goes to one that it answers.

Time is counted in polls, not by a clock: a process that was stopped for a while has asked nobody meanwhile.
"""

from __future__ import annotations

PROBE_S = 1.0
SILENT_S = 5.0
"""A shard that has not answered for so long is to be led by another process, if it answers that one."""
DOUBTFUL_S = 2.5
"""A shard that has not answered for so long is not given to this process, if there is a choice."""


class Reach:
    """How long each shard has not answered."""

    def __init__(self, shards: int, poll_s: float) -> None:
        """poll_s: the time between two polls."""
        self._polls = [0] * shards
        """The number of polls since each shard has answered."""
        self._silent_polls = round(SILENT_S / poll_s)
        self._doubtful_polls = round(DOUBTFUL_S / poll_s)
        self._probe_polls = max(1, round(PROBE_S / poll_s))
        self._count = 0

    def poll(self) -> bool:
        """Note that the shards are asked once more. True if those of others are to be asked, too."""
        self._polls = [polls + 1 for polls in self._polls]
        self._count += 1
        return self._count % self._probe_polls == 0

    def heard(self, shard: int) -> None:
        """Note that a shard has answered."""
        self._polls[shard] = 0

    def silent(self) -> frozenset[int]:
        """Return the shards that have not answered for SILENT_S."""
        return self._unheard(self._silent_polls)

    def doubtful(self) -> frozenset[int]:
        """Return the shards that have not answered for DOUBTFUL_S."""
        return self._unheard(self._doubtful_polls)

    def _unheard(self, polls: int) -> frozenset[int]:
        return frozenset(shard for shard, count in enumerate(self._polls) if count >= polls)
