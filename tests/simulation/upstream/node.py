"""A kshim as far as one shard is concerned, with its real parts: coordinator, runtime, journal, shard, and
what asks the upstream about transactions. Simulated are its clock and its connections.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, ClassVar

from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from kshim.callers import RequestContext
from kshim.callers.once import Once
from kshim.configs.config import Config
from kshim.configs.endpoint import Endpoint
from kshim.coordination.group_runtime import GroupRuntime, new_coordinator
from kshim.coordination.groups.refusals import StableOffsetFetch
from kshim.upstream.confirming import FRESH_S, Confirming
from kshim.upstream.coordinators import UpstreamCoordinators
from kshim.upstream.link import LinkError
from kshim.upstream.shards.answers import NO_ANSWER, Answer
from kshim.upstream.shards.batch_limit import BatchLimit
from kshim.upstream.shards.mirrored import MirroredOffsets
from kshim.upstream.shards.partitions import FETCH_BYTES, Fetched
from kshim.upstream.shards.renewal import Renewal
from kshim.upstream.shards.sharing import SharedShards
from kshim.upstream.shards.tenure import Outgoing
from kshim.upstream.shards.terms import Term
from kshim.upstream.topics import Topics
from kshim.upstream.transactions import UpstreamTransactions
from kshim.upstream.upstream_groups import UpstreamGroups
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from schemas.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from schemas.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from schemas.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from schemas.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from schemas.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from schemas.records.batch import batches, decode_header, records
from tests.api.harness import later
from tests.simulation.groups.clock import Call, SimulatedClock
from tests.simulation.shards.node import Network
from tests.simulation.upstream.kafka import KafkaWithTransactions

REQUEST_TIMEOUT_MS = 3_000
HERE = 0
GROUP, TOPIC = "g", "t"
CONTEXT = RequestContext(4, "c", "/127.0.0.1", Endpoint("simulation", 9092))
KAFKA = Endpoint("kafka", 9092)
RETENTION_MS = 7 * 24 * 3_600_000

Reply = Callable[[Any], None]
"""Called with the answer; None if the node cannot tell."""


class Delayed:
    """A scheduled call, as `callLater` returns it."""

    def __init__(self, call: Call, at_s: float) -> None:
        self._call = call
        self._at_s = at_s
        self.is_done = False

    def cancel(self) -> None:
        self.is_done = True
        self._call.cancel()

    def getTime(self) -> float:
        return self._at_s

    def active(self) -> bool:
        return not self.is_done


WITH_SMALL_BATCHES = "kshim2"
"""At this process each record is a batch of its own."""


class Node:
    """One process: its reactor, what it asks Kafka, and what it answers. `crash` ends it for good."""

    def __init__(
        self,
        name: str,
        kafka: KafkaWithTransactions,
        clock: SimulatedClock,
        network: Network,
        chance: Random,
        sends: Callable[[Node, int], None],
    ) -> None:
        """sends: called with each offset that it sends to the upstream's own coordinator."""
        self.name = name
        self._sends = sends
        self.is_alive = True
        self.is_wanted = False
        self.wakes_ms = 0
        """Until when it sleeps."""
        self._kafka, self._clock, self._network, self._chance = kafka, clock, network, chance
        self._rate = chance.uniform(0.97, 1.03)
        self._offset_ms = chance.randint(0, 10**9)
        coordinators = UpstreamCoordinators(self)
        upstream_groups = UpstreamGroups(self, coordinators)
        self.mirrored = MirroredOffsets(self, upstream_groups, Once(self))
        self.shards = SharedShards(Config(), self, self, coordinators, self.mirrored, HERE, self.now_ms)
        self.shards._log = self
        if name == WITH_SMALL_BATCHES:
            self.shards._limit = BatchLimit(1)
        self.shards._make_shards(1)
        self.topics = Topics(self.ask, self)
        self.confirming = Confirming(self.topics)
        coordinator = new_coordinator(
            Config(offsets_retention_minutes=10**6), 1, topic_id_of=self.topics.id_of
        )
        self.mirrored.topic_id_of = self.topics.id_of
        self.groups = GroupRuntime(
            coordinator,
            self.shards.journal,
            self,
            may_answer=self.shards.may_answer,
        )
        self.groups.start({})
        self.topics.on_deletion(self.groups.forget_topics)
        self.topics.start()
        self.shards._groups = self.groups
        self.mirrored.shard_for, self.mirrored.proven = self.groups.shard_for, self.shards.proven
        renewal = Renewal(
            self,
            self._wall_ms,
            self.groups,
            upstream_groups,
            self.mirrored,
            lambda: succeed(RETENTION_MS),
            Once(self),
        )
        self.mirrored.watch = renewal.soon
        self.shards._roster.addresses = lambda: {"PLAINTEXT": Endpoint(name, 9092)}
        self.shards._poll()
        self.transactions = UpstreamTransactions(coordinators, self.shards)

    # ---- its reactor

    def now_ms(self) -> int:
        return int(self._clock.now_ms * self._rate) + self._offset_ms

    def seconds(self) -> float:
        """The time of day, about which the nodes agree to a second."""
        return self._wall_ms() / 1000 + 0.0001

    def _wall_ms(self) -> int:
        return self._clock.now_ms + self._offset_ms % 1000

    def callLater(self, delay: float, do: Callable[..., Any], *arguments: Any) -> Delayed:
        """Schedule a call by the node's clock. A sleeping node makes no calls."""
        delay_ms = int(delay * 1000 / self._rate) + (delay > 0)
        delayed: Delayed

        def run() -> None:
            if not delayed.is_done:
                delayed.is_done = True
                do(*arguments)

        delayed = Delayed(self._clock.after(delay_ms, self.awake, run), self.seconds() + delay)
        return delayed

    def awake(self, do: Callable[..., None], *arguments: Any) -> None:
        """Do it now, or when it wakes up; never, if it has crashed."""
        if not self.is_alive:
            return
        if self._clock.now_ms < self.wakes_ms:
            wait_ms = self.wakes_ms - self._clock.now_ms + self._chance.randint(0, 2)
            self._clock.after(wait_ms, self.awake, do, *arguments)
        else:
            do(*arguments)

    # ---- its connections

    def _ask(self, do: Callable[[Callable[[Any], None]], None], nothing: Any) -> Deferred[Any]:
        """Have something done at Kafka, which calls what it is given with the answer. `nothing` is the answer
        if there is none in time.
        """
        answer: Deferred[Any] = Deferred()

        def hear(found: Any) -> None:
            if not answer.called:
                answer.callback(found)

        self._network.send(do, lambda found: self._network.send(self.awake, hear, found))
        self.callLater(REQUEST_TIMEOUT_MS / 1000, hear, nothing)
        return answer

    def append(self, partition: int, batch: bytes) -> Deferred[Answer]:
        header = decode_header(batch)
        entries = [(each.key or b"", each.value) for each in records(next(batches(batch)))]
        term = Term(header.producer_id, header.producer_epoch)
        outgoing = Outgoing(term, header.base_sequence, entries)
        return self._ask(lambda hear: self._kafka.append(outgoing, hear), NO_ANSWER)

    def end(self, partition: int) -> Deferred[int | None]:
        return self._ask(lambda hear: hear(self._kafka.high_watermark), None)

    def fetch(self, partition: int, offset: int, max_bytes: int = FETCH_BYTES) -> Deferred[Fetched | None]:
        return self._ask(lambda hear: hear(Fetched(*self._kafka.data(offset))), None)

    is_open = True
    versions: ClassVar = {ApiKey.DESCRIBE_TRANSACTIONS: range(1)}

    def serves(self, api_key: int) -> bool:
        """Return True for all but the consumer protocol."""
        return api_key != ApiKey.CONSUMER_GROUP_DESCRIBE

    def version(self, api_key: int, newest: int) -> int:
        """Return the version that a `Link` would use."""
        return newest

    def connect(self, address: Endpoint, timeout_s: float) -> Deferred[Any]:
        return succeed(self)

    def ask(self, request: Any, **_: Any) -> Deferred[Any]:
        """Ask like an `Upstream`, and like a `Link`."""
        if isinstance(request, FindCoordinatorRequest):
            coordinator = Coordinator(key=request.key, host=KAFKA.host, port=KAFKA.port)
            return succeed(FindCoordinatorResponse(coordinators=(coordinator,)))
        if isinstance(request, OffsetCommitRequest):
            self._sends(self, request.topics[0].partitions[0].committed_offset)
        does: Callable[[Any], Any] = self._does[type(request)]
        answer = self._ask(lambda hear: hear(does(request)), LinkError("no answer"))
        return answer.addCallback(lambda found: Failure(found) if isinstance(found, LinkError) else found)

    @property
    def _does(self) -> dict[type, Callable[[Any], Any]]:
        return {
            AddPartitionsToTxnRequest: self._add,
            DescribeTransactionsRequest: self._describe,
            OffsetCommitRequest: self._commit_there,
            OffsetFetchRequest: self._fetch_there,
            MetadataRequest: self._describe_topic,
        }

    def _describe_topic(self, _: MetadataRequest) -> MetadataResponse:
        partitions = (MetadataResponsePartition(partition_index=0),)
        topic_id = self._kafka.topic_id
        return MetadataResponse(
            topics=(MetadataResponseTopic(name=TOPIC, topic_id=topic_id, partitions=partitions),)
        )

    def _commit_there(self, request: OffsetCommitRequest) -> OffsetCommitResponse:
        (topic,) = request.topics
        error = ErrorCode.NONE
        if topic.topic_id == self._kafka.topic_id:
            self._kafka.committed = topic.partitions[0].committed_offset
        else:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        partition = OffsetCommitResponsePartition(partition_index=0, error_code=error)
        return OffsetCommitResponse(
            topics=(OffsetCommitResponseTopic(name=topic.name, partitions=(partition,)),)
        )

    def _fetch_there(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        partition = OffsetFetchResponsePartitions(
            partition_index=0, committed_offset=self._kafka.committed, metadata=""
        )
        topic = OffsetFetchResponseTopics(name=TOPIC, partitions=(partition,))
        return OffsetFetchResponse(groups=(OffsetFetchResponseGroup(group_id=GROUP, topics=(topic,)),))

    def _add(self, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        error = self._kafka.add(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
        partition = AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=error)
        topic = AddPartitionsToTxnTopicResult(name="groups", results_by_partition=(partition,))
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=(topic,))

    def _describe(self, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
        producer = self._kafka.producers[int(request.transactional_ids[0])]
        ending = "PrepareCommit" if producer.is_ending else "Ongoing"
        is_there = producer.current is not None
        state = TransactionState(
            transactional_id=request.transactional_ids[0],
            transaction_state=ending if is_there else "CompleteCommit",
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            topics=(TopicData(topic=self.shards.topic, partitions=(0,)),) if is_there else (),
        )
        return DescribeTransactionsResponse(transaction_states=(state,))

    # ---- what others do with it

    @property
    def leads(self) -> bool:
        return self.is_alive and self.shards._shards[0].is_led

    def assign(self, is_wanted: bool) -> None:
        if is_wanted != self.is_wanted:
            self.is_wanted = is_wanted
            shard = self.shards._shards[0]
            if is_wanted:
                shard.want()
            else:
                shard.release()

    def crash(self) -> None:
        self.is_alive = False

    # ---- what clients ask

    def commit(self, number: int, reply: Reply) -> None:
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=number, committed_metadata=""
        )
        topic = OffsetCommitRequestTopic(name=TOPIC, partitions=(partition,))
        request = OffsetCommitRequest(group_id=GROUP, member_id="", topics=(topic,))
        self._knowing(FRESH_S, lambda: self._submit(request, reply, _error_of))

    def _knowing(self, age_s: float, do: Callable[[], None]) -> None:
        """Do it when the topic is known, as the front does; never, if it cannot be learned."""
        known = self.confirming.know([TOPIC], age_s)
        if known is None:
            do()
        else:
            known.addCallbacks(lambda _: do(), lambda failure: failure.trap(LinkError)).addErrback(_raise)

    def commit_in_transaction(
        self, number: int, producer_id: int, epoch: int, reply: Reply, *, adds: bool
    ) -> None:
        """adds: whether the broker is to add the group to the transaction."""
        self._knowing(
            FRESH_S, lambda: self._commit_in_transaction(number, producer_id, epoch, reply, adds=adds)
        )

    def _commit_in_transaction(
        self, number: int, producer_id: int, epoch: int, reply: Reply, *, adds: bool
    ) -> None:
        partition = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=number, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            transactional_id=str(producer_id),
            group_id=GROUP,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=(TxnOffsetCommitRequestTopic(name=TOPIC, partitions=(partition,)),),
        )
        if self.groups.refusal(CONTEXT, request) is not ErrorCode.NONE:
            reply(None)
            return
        joined = AddPartitionsToTxnTransaction(
            transactional_id=str(producer_id),
            producer_id=producer_id,
            producer_epoch=epoch,
            verify_only=not adds,
            topics=(AddPartitionsToTxnTopic(name="__consumer_offsets", partitions=(0,)),),
        )

        def decide(response: AddPartitionsToTxnResponse) -> None:
            (of_transaction,) = response.results_by_transaction
            error = of_transaction.topic_results[0].results_by_partition[0].partition_error_code
            if error:
                reply(ErrorCode(error))
            else:
                self._submit(request, reply, _error_of)

        asked = AddPartitionsToTxnRequest(transactions=(joined,))
        verified = Deferred.fromCoroutine(self.transactions.submit(CONTEXT, asked))
        verified.addCallback(decide).addErrback(_raise)

    def read(self, *, is_stable: bool, reply: Reply) -> None:
        self._knowing(0, lambda: self._read_knowing(is_stable=is_stable, reply=reply))

    def _read_knowing(self, *, is_stable: bool, reply: Reply) -> None:
        if self.shards.has_open_transactions(0):
            caught_up = self.shards.journal.prove_leadership(0)
            caught_up.addBoth(lambda _: self._read(is_stable=is_stable, reply=reply)).addErrback(_raise)
        else:
            self._read(is_stable=is_stable, reply=reply)

    def _read(self, *, is_stable: bool, reply: Reply) -> None:
        topic = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(0,))
        group = OffsetFetchRequestGroup(group_id=GROUP, topics=(topic,))
        self._submit(StableOffsetFetch(group) if is_stable else group, reply, _offset_of)

    def _submit(self, request: Any, reply: Reply, told: Callable[[Any], Any]) -> None:
        answer = later(self.groups.submit(CONTEXT, request))
        if isinstance(answer, Deferred):
            answer.addCallback(lambda response: reply(told(response))).addErrback(_raise)
        else:
            reply(told(answer))


def _error_of(response: Any) -> ErrorCode:
    return ErrorCode(response.topics[0].partitions[0].error_code)


def _offset_of(response: Any) -> int | None:
    """-1: nothing is committed. None: the node does not know."""
    if response.error_code or response.topics[0].partitions[0].error_code:
        return None
    offset: int = response.topics[0].partitions[0].committed_offset
    return offset


FAILURES: list[Failure] = []
"""What must not happen, and would be lost in a Deferred."""


def _raise(failure: Failure) -> None:
    FAILURES.append(failure)
