"""What the metrics show of an upstream, and of kshim's work in front of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from kshim.http.families import Figure

if TYPE_CHECKING:
    from kshim.upstream.interfaces import SeenShards
    from kshim.upstream.shards.mirrored import MirroredOffsets


def figures(
    seen: SeenShards, running: Mapping[int, bool], mirrored: MirroredOffsets | None, *, answers: bool
) -> Iterator[Figure]:
    """Yield all figures.

    running: whether each broker of the upstream runs, by node id. mirrored: None if offsets are not copied.
    answers: False while the upstream does not answer.
    """
    yield Figure("kshim_upstream_answers", answers)
    for node_id, runs in running.items():
        yield Figure("kshim_upstream_broker_runs", answers and runs, (str(node_id),))
    yield Figure("kshim_upstream_shards_assigned", seen.assigned)
    yield Figure("kshim_upstream_shards_led", seen.led)
    yield Figure("kshim_upstream_shards_taken_over", seen.taken_over)
    yield Figure("kshim_upstream_shards_lost", seen.lost)
    yield Figure("kshim_upstream_proof_age_seconds", seen.proof_age_s)
    yield Figure("kshim_upstream_journal_queued_writes", seen.queued)
    yield Figure("kshim_upstream_journal_lag_seconds", seen.lag_s)
    if mirrored is not None:
        yield Figure("kshim_upstream_offsets_uncopied", mirrored.unsent)
        yield Figure("kshim_upstream_offsets_lag_seconds", mirrored.lag_s)
