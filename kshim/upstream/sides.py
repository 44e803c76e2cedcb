"""Makes the parts that know which side has a group, kshim or the upstream."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kshim.upstream.consumer_groups_there import ConsumerGroupsThere
from kshim.upstream.merged_groups import MergedGroups
from kshim.upstream.moving_in import MovingIn
from kshim.upstream.moving_out import MovingOut
from kshim.upstream.one_side import OneSide
from kshim.upstream.other_groups import OtherGroups
from kshim.upstream.their_groups import TheirGroups

if TYPE_CHECKING:
    from kshim.callers.once import Once
    from kshim.configs.config import Config
    from kshim.coordination.group_runtime import GroupRuntime
    from kshim.storage.clock import Clock
    from kshim.turns.aside import Aside
    from kshim.upstream.member_topics import MemberTopics
    from kshim.upstream.shards.mirrored import MirroredOffsets
    from kshim.upstream.topics import Topics
    from kshim.upstream.upstream_groups import UpstreamGroups


class Sides(NamedTuple):
    """The groups of both sides."""

    theirs: TheirGroups
    merged: MergedGroups
    moving_in: MovingIn
    others: OtherGroups
    consumers: ConsumerGroupsThere


def new_sides(
    config: Config,
    clock: Clock,
    groups: GroupRuntime,
    upstream: UpstreamGroups,
    topics: Topics,
    members: MemberTopics,
    mirrored: MirroredOffsets | None,
    once: Once,
    aside: Aside,
) -> Sides:
    """groups: kshim's own. members: learns the topics that members name. mirrored: copies offsets to the
    upstream; None if that is switched off.
    """
    theirs = TheirGroups(has_consumers=config.passes_consumer_groups)
    one_side = OneSide(groups, upstream, theirs, once)
    adopts = config.upstream_groups_adopt_enable
    moving_in = MovingIn(clock, groups, upstream, topics, mirrored, theirs, is_enabled=adopts)
    merged = MergedGroups(
        *(groups, upstream, topics, members, moving_in, one_side, once), has_twins=mirrored is not None
    )
    others = OtherGroups(upstream, theirs, one_side.knows, aside)
    moving_out = MovingOut(groups, upstream, moving_in, once)
    consumers = ConsumerGroupsThere(one_side, moving_in, moving_out, others, theirs)
    return Sides(theirs, merged, moving_in, others, consumers)
