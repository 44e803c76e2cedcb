"""Commits of members."""

from __future__ import annotations

from typing import Any

from schemas.error_code import ErrorCode
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.coordination.groups.consumer.world import G, World


def commit(
    world: World,
    member_id: str,
    epoch: int,
    version: int = 9,
    topic: str = "foo",
    indexes: Any = (0,),
    **more: Any,
) -> ErrorCode:
    request = OffsetCommitRequest(
        group_id=G,
        member_id=member_id,
        generation_id_or_member_epoch=epoch,
        topics=(
            OffsetCommitRequestTopic(
                name=topic,
                partitions=tuple(
                    OffsetCommitRequestPartition(partition_index=index, committed_offset=5)
                    for index in indexes
                ),
            ),
        ),
        **more,
    )
    (answer,) = world.ask(request, version).topics
    codes = {ErrorCode(each.error_code) for each in answer.partitions}
    assert (world.kinds() == [1] * len(indexes)) is (codes == {ErrorCode.NONE})
    return codes.pop()
