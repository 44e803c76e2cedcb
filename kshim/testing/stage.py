"""The server of a torture: a Kshim with a listener for each instance, notes, and a few more steps.

It implements `kshim.torture.stage.Stage`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

from kshim.control.client import ControlError, ask
from kshim.testing import brokers as asking
from kshim.testing.brokers import CLIENT_ID, Brokers, Deadline, check
from kshim.testing.new_records import NewRecord, as_bytes
from kshim.testing.running import Kshim
from kshim.torture.faults import Request
from kshim.torture.stage import Incoming, Note, Outgoing, Refused
from schemas.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from schemas.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from schemas.messages.end_txn import EndTxnRequest, EndTxnResponse
from schemas.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from schemas.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from schemas.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from schemas.records import batch

if TYPE_CHECKING:
    from kshim.control.brokers import DescribedCluster
    from kshim.control.faults import ListedFault
    from kshim.faults.notes import NotedRequests

P = ParamSpec("P")
T = TypeVar("T")

ACKS_OF_ALL = -1
OF_TRANSACTIONS = 1
"""The key type with which FindCoordinator names a transactional id."""
LONG_S = 20.0
SOON_S = 1.0
TRANSACTION_TIMEOUT_MS = 10_000
ABORTING = "kshim.testing.aborted"
"""The transactional id of the records that are taken back."""


def _refusing(
    method: Callable[Concatenate[StageServer, P], T],
) -> Callable[Concatenate[StageServer, P], T]:
    """Make a method raise Refused for whatever the server refuses, or does not do in time."""

    @wraps(method)
    def refusing(self: StageServer, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(self, *args, **kwargs)
        except (ControlError, asking.Refused, asking.Again, OSError) as error:
            raise Refused(str(error)) from error

    return refusing


class StageServer:
    """A server whose clients are told apart by the listener through which they come."""

    def __init__(self, kshim: Kshim, control: Path, listeners: Sequence[str], brokers: int) -> None:
        """control: the server's control socket."""
        self._kshim, self._listeners, self._brokers = kshim, listeners, brokers
        self._ask = partial(ask, control)
        self._after = 0
        self._notes: list[Note] = []
        self._ask("note-requests")

    def bootstrap_of(self, listener: str) -> str:
        """The addresses of the brokers for the clients of one listener."""
        further = self._brokers * (1 + self._listeners.index(listener))
        found = (address.rpartition(":") for address in self._kshim.bootstrap.split(","))
        return ",".join(f"{host}:{int(port) + further}" for host, _, port in found)

    # ---- records

    @_refusing
    def make_topic(self, name: str, partitions: int) -> None:
        """Create a topic; its records get the broker's time."""
        configs = {"message.timestamp.type": "LogAppendTime"}
        self._kshim.create_topic(name, partitions, replicas=self._brokers, configs=configs)

    @_refusing
    def append(self, topic: str, records: Sequence[Outgoing]) -> Sequence[tuple[int, int]]:
        """Produce records; return the partition and the offset of each."""
        return self._kshim.produce(topic, list(map(_new_record, records)), timeout_s=LONG_S)

    @_refusing
    def append_aborted(self, topic: str, records: Sequence[Outgoing]) -> Sequence[tuple[int, int]]:
        """Produce records in a transaction that is aborted. Each names its partition."""
        made = list(map(_new_record, records))
        with self._reached() as brokers:
            return brokers.deadline.until_done(lambda: _abort(brokers, topic, made))

    @_refusing
    def read(self, topic: str) -> Sequence[Incoming]:
        """All records of a topic, without those of aborted transactions."""
        found = self._kshim.consume(topic, committed_only=True, timeout_s=LONG_S)
        return [Incoming(r.partition, r.offset, r.timestamp_ms, r.value, r.headers) for r in found]

    @_refusing
    def add_partitions(self, topic: str, more: int) -> int:
        """Add partitions to a topic, and return how many it has now."""
        with self._reached() as brokers:
            count = len(brokers.deadline.until_done(lambda: brokers.topic(topic)).leaders) + more
            wanted = CreatePartitionsTopic(name=topic, count=count, assignments=None)
            request = CreatePartitionsRequest(topics=(wanted,), timeout_ms=10_000)
            (done,) = brokers.ask_any(request, CreatePartitionsResponse).results
            check(f"add partitions to {topic}", done.error_code, done.error_message)
            brokers.deadline.until_done(lambda: brokers.topic(topic))
        return count

    # ---- what is known

    @_refusing
    def committed(self, group: str) -> Mapping[tuple[str, int], int]:
        """The group's committed offsets."""
        return {(at.topic, at.partition): offset for at, offset in self._kshim.offsets(group).items()}

    @_refusing
    def group_ids(self) -> Sequence[str]:
        """The ids of all groups."""
        return self._kshim.groups()

    @_refusing
    def rebalances_of(self, group: str) -> Sequence[Mapping[str, Any]]:
        """The group's rebalances, as JSON values of the recorder."""
        why: Any = self._ask("why", group)
        found: Sequence[Mapping[str, Any]] = why["rebalances"]
        return found

    @_refusing
    def notes(self) -> Sequence[Note]:
        """What members were given and what they committed so far; see `kshim.faults.notes`."""
        while True:
            noted = cast("NotedRequests", self._ask("noted-requests", self._after))
            self._after = noted["last"]
            self._notes += noted["notes"]
            if not noted["more"]:
                return self._notes

    # ---- what is done

    @_refusing
    def fail_requests(self, request: Request, lasts_ms: int) -> str:
        """Make requests fail; return what is done in words."""
        given = {
            name: value
            for name, value in (
                ("error", request.error),
                ("close", request.close),
                ("delay_ms", request.delay_ms),
                ("times", request.times),
            )
            if value
        }
        fault = {"api": request.api, "not_client_id": CLIENT_ID, "for_ms": lasts_ms, **given}
        added = cast("ListedFault", self._ask("add-fault", fault))
        return f"{added['does']} for {request.api}{' ' if added['when'] else ''}{added['when']}"

    @_refusing
    def expire(self, group: str, member: str) -> None:
        """End a member's session."""
        self._kshim.expire(group, member)

    @_refusing
    def put_out(self, group: str, member: str) -> None:
        """Remove a member from its group."""
        self._kshim.remove(group, member)

    @_refusing
    def static_member(self, group: str, instance_id: str) -> str:
        """The id of the member that has this group.instance.id."""
        for member in self._kshim.describe_group(group, timeout_s=SOON_S).members:
            if member.group_instance_id == instance_id:
                return member.member_id
        raise Refused(f"group {group} has no member with the group.instance.id {instance_id}")

    @_refusing
    def fence(self, group: str, instance_id: str) -> None:
        """Fence a static member."""
        self._kshim.fence(group, instance_id)

    @_refusing
    def fence_producer(self, transactional_id: str) -> None:
        """Begin a new epoch of a transactional id: its producer is fenced."""
        with self._reached() as brokers:
            brokers.deadline.until_done(lambda: _init(brokers, transactional_id))

    @_refusing
    def rebalance(self, group: str) -> None:
        """Make the group rebalance."""
        self._kshim.rebalance(group)

    @_refusing
    def move_coordinator(self, group: str, choice: int) -> str:
        """Move the group's coordinator to another broker; return what is done in words."""
        with self._reached() as brokers:
            before = brokers.deadline.until_done(lambda: brokers.coordinator(group))
        to = self._other(before, choice)
        self._kshim.move_coordinator(group, to)
        return f"broker {to} coordinates the group, in place of broker {before}"

    @_refusing
    def move_leader(self, topic: str, choice: int) -> str:
        """Move a partition's leader to another broker; return what is done in words."""
        leaders = {
            p["partition"]: p["leader"] for p in self._described()["partitions"] if p["topic"] == topic
        }
        partition = sorted(leaders)[choice % len(leaders)]
        to = self._other(leaders[partition], choice)
        self._kshim.move_leader(topic, partition, to)
        return f"broker {to} leads {topic}-{partition}, in place of broker {leaders[partition]}"

    @_refusing
    def stop_broker(self, choice: int) -> int:
        """Stop a broker, but not the last one; return its node id."""
        running = self._running()
        if len(running) < 2:
            raise Refused("no other broker runs")
        node_id = running[choice % len(running)]
        self._kshim.stop_broker(node_id)
        return node_id

    @_refusing
    def start_broker(self, node_id: int) -> None:
        """Start a broker again."""
        self._kshim.start_broker(node_id)

    @_refusing
    def mend(self) -> None:
        """End all faults of requests, and start all brokers."""
        self._ask("remove-faults")
        for each in self._described()["brokers"]:
            if each["state"] == "stopped":
                self._kshim.start_broker(each["node_id"])

    # ---- inside

    def _other(self, node_id: int, choice: int) -> int:
        """A running broker, but not this one. Raises Refused."""
        others = [each for each in self._running() if each != node_id]
        if not others:
            raise Refused("no other broker runs")
        return others[choice % len(others)]

    def _running(self) -> list[int]:
        return [each["node_id"] for each in self._described()["brokers"] if each["state"] == "running"]

    def _described(self) -> DescribedCluster:
        return self._kshim.describe()

    @contextmanager
    def _reached(self) -> Iterator[Brokers]:
        with Brokers(self._kshim.bootstrap, Deadline(LONG_S)) as brokers:
            yield brokers


@contextmanager
def stage_server(
    brokers: int, properties: Mapping[str, str], listeners: Sequence[str]
) -> Iterator[StageServer]:
    """A running server in a temporary directory, for the time of the block. Raises NotStarted."""
    with tempfile.TemporaryDirectory(prefix="kshim-") as directory:
        kshim = Kshim(Path(directory), brokers, properties, listeners=listeners)
        try:
            kshim.start()
            yield StageServer(kshim, Path(directory) / "control", listeners, brokers)
        finally:
            kshim.close()


def _new_record(record: Outgoing) -> NewRecord:
    return NewRecord(record.value, record.key, record.headers, partition=record.partition)


# ---- transactions


def _coordinator(brokers: Brokers, transactional_id: str) -> int:
    """The node id of a transactional id's coordinator. Raises Again, Refused, OSError."""
    brokers.node_ids()
    request = FindCoordinatorRequest(key=transactional_id, key_type=OF_TRANSACTIONS)
    found = brokers.ask_any(request, FindCoordinatorResponse)
    check(f"coordinator of {transactional_id}", found.error_code, found.error_message)
    return found.node_id


def _init(brokers: Brokers, transactional_id: str) -> InitProducerIdResponse:
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS
    )
    found = brokers.ask_node(_coordinator(brokers, transactional_id), request, InitProducerIdResponse)
    check(f"producer id of {transactional_id}", found.error_code)
    return found


def _abort(brokers: Brokers, topic: str, records: Sequence[NewRecord]) -> list[tuple[int, int]]:
    """Append the records, one transaction for all, and abort it. Raises Again, Refused, OSError."""
    producer = _init(brokers, ABORTING)
    coordinator = _coordinator(brokers, ABORTING)
    partitions = tuple(sorted({record.partition or 0 for record in records}))
    added = brokers.ask_node(
        coordinator,
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=ABORTING,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=(AddPartitionsToTxnTopic(name=topic, partitions=partitions),),
        ),
        AddPartitionsToTxnResponse,
    )
    for done in added.results_by_topic_v3_and_below:
        for each in done.results_by_partition:
            check(f"add {topic} to a transaction", each.partition_error_code)
    offsets = {partition: _append(brokers, topic, partition, records, producer) for partition in partitions}
    abort = EndTxnRequest(
        transactional_id=ABORTING,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=False,
    )
    ended = brokers.ask_node(coordinator, abort, EndTxnResponse)
    check("abort a transaction", ended.error_code)
    return [(record.partition or 0, next(offsets[record.partition or 0])) for record in records]


def _append(
    brokers: Brokers,
    topic: str,
    partition: int,
    records: Sequence[NewRecord],
    producer: InitProducerIdResponse,
) -> Iterator[int]:
    now_ms = int(time.time() * 1000)
    mine = [record for record in records if (record.partition or 0) == partition]
    data = batch.encode(
        (
            batch.Record(number, now_ms, as_bytes(record.key), as_bytes(record.value), record.header_pairs)
            for number, record in enumerate(mine)
        ),
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=0,
        is_transactional=True,
    )
    appended = PartitionProduceData(index=partition, records=data)
    request = ProduceRequest(
        transactional_id=ABORTING,
        acks=ACKS_OF_ALL,
        timeout_ms=10_000,
        topic_data=(TopicProduceData(name=topic, partition_data=(appended,)),),
    )
    response = brokers.ask_node(brokers.topic(topic).leaders[partition], request, ProduceResponse)
    ((done,),) = (answered.partition_responses for answered in response.responses)
    check(f"produce to {topic}-{partition}", done.error_code, done.error_message)
    return iter(range(done.base_offset, done.base_offset + len(mine)))
