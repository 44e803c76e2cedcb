"""A member of a consumer group that speaks for itself, over bare requests: it knows each epoch that it was
answered."""

from __future__ import annotations

from contextlib import suppress

from integration.crash.workloads import PARTITIONS, TIMEOUT_S, Workload
from kshim.testing.wire import Wire
from schemas.error_code import ErrorCode
from schemas.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

MEMBER_ID = "beating"
PAUSE_S = 0.01
TO_AWAIT = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}


class Beating(Workload):
    """The only member of its group. It changes its subscription again and again, so that the epoch grows, and
    commits its epochs as offsets."""

    def __init__(self, bootstrap: str, topic: str, group_id: str) -> None:
        super().__init__(bootstrap, topic)
        self.group_id = group_id
        self.acknowledged: dict[int, int] = {}
        """partition -> the highest offset whose commit was acknowledged."""
        self._epoch = 0

    def run(self) -> None:
        host, port = self.bootstrap.split(":")
        while not self._stopping.is_set():
            with suppress(OSError, EOFError), Wire(host, int(port), timeout_s=TIMEOUT_S) as wire:
                self._work(wire)
            self._stopping.wait(0.05)

    def _work(self, wire: Wire) -> None:
        joins = True
        while not self._stopping.is_set():
            answer = wire.ask(1, self._heartbeat(joins=joins))
            if answer.error_code in TO_AWAIT:
                return
            self._check(answer)
            joins = False
            self._epoch = answer.member_epoch
            self._commit(wire)
            self._stopping.wait(PAUSE_S)

    def _heartbeat(self, *, joins: bool) -> ConsumerGroupHeartbeatRequest:
        """It joins again over each new connection, with the same member id."""
        others = ("copied",) if self._epoch % 2 else ()
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=MEMBER_ID,
            member_epoch=0 if joins else self._epoch,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=(self.topic, *others),
            topic_partitions=() if joins else None,
        )

    def _check(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        assert answer.error_code == ErrorCode.NONE, answer
        assert answer.member_epoch >= self._epoch, (
            f"the epoch goes back from {self._epoch} to {answer.member_epoch}"
        )

    def _commit(self, wire: Wire) -> None:
        partition = self._epoch % PARTITIONS
        offset = OffsetCommitRequestPartition(partition_index=partition, committed_offset=self._epoch)
        topics = (OffsetCommitRequestTopic(name=self.topic, partitions=(offset,)),)
        answer = wire.ask(
            9,
            OffsetCommitRequest(
                group_id=self.group_id,
                member_id=MEMBER_ID,
                generation_id_or_member_epoch=self._epoch,
                topics=topics,
            ),
        )
        error = answer.topics[0].partitions[0].error_code
        if error not in TO_AWAIT:
            assert error == ErrorCode.NONE, answer
            self.acknowledged[partition] = self._epoch
            self.done += 1
