"""Stories about transactions: every public function is one, run at each version of the producer's requests.

`Producer` is one client. Between its requests it waits for the coordinator to finish, because no server
promises when the markers are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from integration.differential.stories.talk import AT_MS
from integration.differential.stories.transaction_talk import TransactionTalk
from integration.support.awaiting import wait_until
from schemas.error_code import ErrorCode
from schemas.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from schemas.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from schemas.messages.describe_groups import DescribeGroupsRequest
from schemas.messages.describe_transactions import DescribeTransactionsRequest
from schemas.messages.end_txn import EndTxnRequest
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.init_producer_id import InitProducerIdRequest
from schemas.messages.list_transactions import ListTransactionsRequest
from schemas.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from schemas.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from schemas.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from schemas.records.batch import Record, encode

INIT, ADD, ADD_OFFSETS, END = range(6), range(4), range(5), range(5)
"""The versions of old clients. Clients that get an epoch for each transaction end it with v5 instead."""
TIMEOUT_MS = 60_000
PATIENCE_S = 60
ENDING = ("PrepareCommit", "PrepareAbort")


PATTERNS = r"""
pay|PAY.* (?i)pAY.* (?i)k (?i:A)1 (?i)Ü (?s)a.b a.b (?m)a$\n^b (?U)a+ a{2} a{2,1} a{,2} a{1000}
a{1001} a** a*+ a?? [{]2} \{2\} {2} \w+ \W+ \d \w\d a\sb a\Bb \b\w+\b \pL+ \PL \p{Greek} \p{Foo}
\p{^Lu}+ \p{Han}+ [[:alpha:]]+ [[:^alpha:]] [[:foo:]] [\p{L}\d]+ [^a] []a]+ \Qpay\E \Q{2}\E [\Qa\E]
a\z a\Z aa$ aa\E \x{4e2d}. \x{110000} a\\b \07 \8 (a)\1 \e \cA \X \h \u0061 (?=a)aa (?<!b)aa (?>a)a
(?P<n>a)1 (?<n>a)1 (?P=n) (?P<>a) (?#c)aa (?z)a (?)aa (a a) [ [] [a- [z-a] [a-\d]+ (|) () (?:) (|a)+
((a*)*)* (?:a?){30} .* a(?i)A (?i-s:A.B) a\x00b [a&&b]+ \N \R \G (a)(?(1)1|2) a\_1 \-
""".split()
"""Patterns on which RE2 and RE2/J agree, which is nearly all."""


class Producer:
    """A transactional id in a talk, with the producer id and epoch that it was given."""

    def __init__(self, talk: TransactionTalk, name: str = "tx", *, version: int = 0) -> None:
        self.talk = talk
        self.version = version
        self.transactional_id = talk.name(name)
        self.producer_id = self.producer_epoch = -1
        _coordinator_of(talk, self.transactional_id)

    def init(self, version: int | None = None, **fields: Any) -> Any:
        """InitProducerId; keeps the id and epoch that it returns."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=TIMEOUT_MS,
            producer_id=-1,
            producer_epoch=-1,
        )
        answer = self.talk.ask(_fit(self.version, INIT, version), replace(request, **fields))
        if not answer.error_code:
            self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
        self.settle()
        return answer

    def go_on(self, version: int = 5, **fields: Any) -> Any:
        """InitProducerId with the current producer id and epoch (KIP-360)."""
        own = {"producer_id": self.producer_id, "producer_epoch": self.producer_epoch}
        return self.init(version, **{**own, **fields})

    def add(self, *partitions: tuple[str, int], version: int | None = None, **fields: Any) -> Any:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=fields.get("transactional_id", self.transactional_id),
            v3_and_below_producer_id=fields.get("producer_id", self.producer_id),
            v3_and_below_producer_epoch=fields.get("producer_epoch", self.producer_epoch),
            v3_and_below_topics=self._topics(partitions),
        )
        return self.talk.ask(_fit(self.version, ADD, version), request)

    def add_as_broker(
        self, *partitions: tuple[str, int], version: int = 5, verify_only: bool = False, **fields: Any
    ) -> Any:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            verify_only=verify_only,
            topics=self._topics(partitions),
        )
        request = AddPartitionsToTxnRequest(transactions=(replace(transaction, **fields),))
        return self.talk.ask(version, request)

    def add_offsets(self, group: str = "g", version: int | None = None, **fields: Any) -> Any:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            group_id=self.talk.name(group),
        )
        return self.talk.ask(_fit(self.version, ADD_OFFSETS, version), replace(request, **fields))

    def commit_offset(self, topic: str, offset: int, *, version: int, group: str = "g") -> Any:
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topics = (TxnOffsetCommitRequestTopic(name=self.talk.name(topic), partitions=(partition,)),)
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=self.talk.name(group),
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            topics=topics,
        )
        return self.talk.ask(version, request)

    def send(self, topic: str, index: int = 0, *, sequence: int = 0, version: int = 9, **fields: Any) -> Any:
        """Produce one record in the transaction."""
        ids = {"producer_id": self.producer_id, "producer_epoch": self.producer_epoch, **fields}
        batch = encode([Record(0, AT_MS, None, b"v")], base_sequence=sequence, is_transactional=True, **ids)
        data = (PartitionProduceData(index=index, records=batch),)
        topics = (TopicProduceData(**self.talk.topic_name_or_id(topic, version), partition_data=data),)
        request = ProduceRequest(
            transactional_id=self.transactional_id, acks=-1, timeout_ms=10_000, topic_data=topics
        )
        return self.talk.ask(version, request)

    def end(self, committed: bool = True, version: int | None = None, **fields: Any) -> Any:
        """EndTxn; from v5 on, keeps the id and epoch that it returns."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            committed=committed,
        )
        fitted = _fit(self.version, END, version)
        answer = self.talk.ask(fitted, replace(request, **fields))
        if fitted >= 5 and not answer.error_code:
            self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
        self.settle()
        return answer

    def describe(self) -> Any:
        return self.talk.ask(0, DescribeTransactionsRequest(transactional_ids=(self.transactional_id,)))

    def settle(self) -> None:
        """Wait until no transaction of this id is being ended."""
        wait_until(lambda: self.state() not in ENDING, PATIENCE_S, "the markers are written")

    def until(self, state: str) -> None:
        wait_until(lambda: self.state() == state, PATIENCE_S, state)

    def state(self) -> str:
        asked = DescribeTransactionsRequest(transactional_ids=(self.transactional_id,))
        state: str = self.talk.unheard(0, asked).transaction_states[0].transaction_state
        return state

    def _topics(self, partitions: tuple[tuple[str, int], ...]) -> tuple[AddPartitionsToTxnTopic, ...]:
        names = dict.fromkeys(name for name, _ in partitions)
        return tuple(
            AddPartitionsToTxnTopic(
                name=self.talk.name(name),
                partitions=tuple(index for known, index in partitions if known == name),
            )
            for name in names
        )


def _fit(version: int, versions: range, given: int | None) -> int:
    return min(version, versions[-1]) if given is None else given


def _coordinator_of(talk: TransactionTalk, transactional_id: str) -> None:
    """Wait until the coordinators are found and loaded, and have producer ids to give."""

    def is_found() -> bool:
        return not talk.unheard(1, FindCoordinatorRequest(key=transactional_id, key_type=1)).error_code

    def is_loaded() -> bool:
        asked = DescribeTransactionsRequest(transactional_ids=(transactional_id,))
        error = talk.unheard(0, asked).transaction_states[0].error_code
        return error in (ErrorCode.NONE, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)

    def has_producer_ids() -> bool:
        return not talk.unheard(0, InitProducerIdRequest(transactional_id=None)).error_code

    def groups_are_loaded() -> bool:
        talk.unheard(1, FindCoordinatorRequest(key="any"))
        answer = talk.unheard(0, DescribeGroupsRequest(groups=(talk.name("g"), talk.name("h"))))
        return not any(group.error_code for group in answer.groups)

    for condition in (is_found, is_loaded, has_producer_ids, groups_are_loaded):
        wait_until(condition, PATIENCE_S, condition.__name__)


def coordinators_are_found(talk: TransactionTalk) -> None:
    Producer(talk)
    for version in range(1, 4):
        talk.ask(version, FindCoordinatorRequest(key=talk.name("tx"), key_type=1))
    for version in range(4, 7):
        keys = (talk.name("tx"), talk.name("ty"), "")
        talk.ask(version, FindCoordinatorRequest(coordinator_keys=keys, key_type=1))


def producers_begin_and_fence(talk: TransactionTalk) -> None:
    for version in INIT:
        producer = Producer(talk, f"begin-{version}", version=version)
        producer.describe()
        producer.init()
        producer.describe()
        producer.init()
        producer.init(transaction_timeout_ms=1)
        producer.describe()
        producer.init(transaction_timeout_ms=0)
        producer.init(transaction_timeout_ms=-1)
        producer.init(transaction_timeout_ms=900_000)
        producer.init(transaction_timeout_ms=900_001)
        producer.init(transactional_id="")
        producer.init(transactional_id="", transaction_timeout_ms=-1)


def producers_go_on(talk: TransactionTalk) -> None:
    for version in INIT[3:]:
        producer = Producer(talk, f"on-{version}", version=version)
        first = producer.init()
        producer.go_on(version)
        own = {"producer_id": first.producer_id, "producer_epoch": 0}
        producer.init(**own)  # once more
        producer.go_on(version)
        producer.init(**own)  # two epochs ago
        producer.init(producer_id=first.producer_id, producer_epoch=-1)
        producer.init(producer_id=-1, producer_epoch=3)
        producer.init(producer_id=-1, producer_epoch=3, transactional_id="")
        producer.init(producer_id=first.producer_id, producer_epoch=9)
        producer.init(producer_id=2**40, producer_epoch=0)
        producer.init(producer_id=2**40, producer_epoch=32_766)
        producer.init()  # another producer
        producer.go_on(version, producer_epoch=2)
        other = Producer(talk, f"on-{version}-new", version=version)
        other.init(producer_id=2**40, producer_epoch=7)
        other.describe()


def partitions_are_added(talk: TransactionTalk) -> None:
    talk.create("t", 3)
    for version in ADD:
        producer = Producer(talk, f"add-{version}", version=version)
        producer.add(("t", 0))  # no transaction has begun
        producer.init()
        producer.add(("t", 0), ("t", 1))
        producer.describe()
        producer.add(("t", 1))
        producer.add(("t", 2), ("t", 2))
        producer.add(("t", 0), ("t", 3), ("no-such-topic", 0))
        producer.add(("no-such-topic", 0), transactional_id="", producer_epoch=9)
        producer.add()
        producer.add(("t", 0), transactional_id="")
        producer.add(("t", 0), transactional_id=talk.name("nobody"))
        producer.add(("t", 0), producer_id=2**40)
        producer.add(("t", 0), producer_epoch=1)
        producer.add(("t", 0), producer_epoch=-1)
        producer.describe()
        producer.end()
        producer.describe()
        producer.add(("t", 1))
        producer.end(False)
        producer.describe()


def brokers_add_and_verify(talk: TransactionTalk) -> None:
    talk.create("t", 3)
    for version in (4, 5):
        producer = Producer(talk, f"broker-{version}")
        producer.add_as_broker(("t", 0), version=version)
        producer.add_as_broker(("t", 0), version=version, verify_only=True)
        producer.init()
        producer.add_as_broker(("t", 0), version=version, verify_only=True)
        producer.add_as_broker(("t", 0), version=version)
        producer.add_as_broker(("t", 0), ("t", 1), version=version, verify_only=True)
        producer.add_as_broker(("t", 7), ("t", 1), version=version)
        producer.add_as_broker(("t", 0), version=version, producer_epoch=1)
        producer.add_as_broker(("t", 0), version=version, producer_epoch=1, verify_only=True)
        producer.add_as_broker(("t", 0), version=version, producer_id=1, verify_only=True)
        producer.add_as_broker(("t", 0), version=version, transactional_id="")
        producer.add_as_broker(("t", 0), version=version, transactional_id="", verify_only=True)
        producer.describe()
        producer.end()
        producer.add_as_broker(("t", 0), version=version, verify_only=True)


def offsets_are_added(talk: TransactionTalk) -> None:
    talk.create("t")
    for version in ADD_OFFSETS:
        producer = Producer(talk, f"offsets-{version}", version=version)
        producer.add_offsets()
        producer.init()
        producer.add_offsets()
        producer.add_offsets("h")
        producer.add_offsets(transactional_id="")
        producer.add_offsets(producer_id=2**40)
        producer.add_offsets(producer_epoch=5)
        producer.end()
        producer.add_offsets()
        producer.commit_offset("t", 5, version=3)
        producer.end(False)


def transactions_end(talk: TransactionTalk) -> None:
    talk.create("t")
    for version in END:
        producer = Producer(talk, f"end-{version}", version=version)
        producer.end()  # no transaction has begun
        producer.init()
        producer.end()
        producer.end(False)
        for committed in (True, False):
            producer.add(("t", 0))
            producer.end(committed, producer_epoch=9)
            producer.end(committed, producer_epoch=-1)
            producer.end(committed, producer_id=2**40)
            producer.end(committed, transactional_id="")
            producer.end(committed, transactional_id=talk.name("nobody"))
            producer.end(committed)
            producer.describe()
            producer.end(committed)
            producer.end(not committed)
            producer.end(committed, producer_epoch=-1)
            producer.init()
            producer.describe()


def every_transaction_has_an_epoch(talk: TransactionTalk) -> None:
    talk.create("t")
    producer = Producer(talk)
    producer.end(version=5)
    producer.init()
    for committed in (True, False):
        producer.add_as_broker(("t", 0))
        old = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
        producer.end(committed, 5, producer_epoch=9)
        producer.end(committed, 5, producer_epoch=-1)
        producer.end(committed, 5, producer_id=2**40)
        producer.end(committed, 5, transactional_id="")
        producer.end(committed, 5)
        producer.describe()
        producer.end(committed, 5, **old)  # once more
        producer.end(not committed, 5, **old)
        producer.end(True, 5)  # nothing was added
        producer.end(True, 4)
        producer.end(False, 4)
        producer.end(False, 5)
        producer.describe()
        producer.end(False, 5, **old)
        producer.go_on()
        producer.go_on(producer_epoch=producer.producer_epoch - 1)
        producer.end(False, 5, producer_epoch=producer.producer_epoch - 1)
        producer.end(True, 5)
        producer.end(False, 5)


def versions_are_mixed(talk: TransactionTalk) -> None:
    talk.create("t")
    producer = Producer(talk)
    producer.init()
    producer.add(("t", 0), version=3)
    producer.end(True, 5)
    producer.add_as_broker(("t", 0))
    producer.end(True, 4)
    producer.add(("t", 0), version=3)
    producer.end(False, 4)
    producer.end(False, 5)
    producer.init()
    producer.describe()


def records_are_sent_in_a_transaction(talk: TransactionTalk) -> None:
    talk.create("t", 2)
    for version in (3, 8, 9, 10, 11):
        producer = Producer(talk, f"send-{version}", version=3)
        producer.init()
        producer.send("t", version=version)  # not added
        producer.add(("t", 0))
        producer.send("t", version=version)
        producer.send("t", version=version)  # once more
        producer.send("t", sequence=1, version=version)
        producer.send("t", 1, version=version)
        producer.send("t", sequence=2, version=version, producer_epoch=1)
        producer.end()
        producer.send("t", sequence=2, version=version)
        producer.add(("t", 0))
        producer.send("t", sequence=2, version=version)
        producer.end(False)
    _read(talk)


def records_are_added_by_being_sent(talk: TransactionTalk) -> None:
    talk.create("t", 2)
    producer = Producer(talk)
    producer.init()
    for version in (12, 13):
        for committed in (True, False):
            producer.send("t", version=version)
            producer.send("t", sequence=1, version=version)
            producer.describe()
            producer.send("t", 1, version=version)
            producer.describe()
            old = producer.producer_epoch
            producer.end(committed, 5)
            producer.send("t", sequence=2, version=version, producer_epoch=old)
    _read(talk)


def offsets_are_added_by_being_committed(talk: TransactionTalk) -> None:
    talk.create("t")
    producer = Producer(talk)
    producer.init()
    for version in (3, 4, 5):
        producer.commit_offset("t", version, version=version)
        producer.describe()
        producer.end(True, 5)


def another_producer_comes_while_a_transaction_is_open(talk: TransactionTalk) -> None:
    talk.create("t")
    for version in INIT:
        producer = Producer(talk, f"other-{version}", version=version)
        producer.init()
        producer.add(("t", 0))
        producer.send("t")
        producer.init()  # aborts the transaction, and is told to try again
        producer.describe()
        producer.add(("t", 0))
        producer.end()
        producer.send("t", sequence=1)
        producer.init()
        producer.describe()
    _read(talk)


def the_same_producer_comes_back_while_its_transaction_is_open(talk: TransactionTalk) -> None:
    talk.create("t")
    producer = Producer(talk)
    producer.init()
    producer.add(("t", 0), version=3)
    producer.go_on()
    producer.describe()
    producer.go_on()
    producer.describe()


def transactions_time_out(talk: TransactionTalk) -> None:
    talk.create("t")
    for version in (3, 5):
        producer = Producer(talk, f"late-{version}", version=version)
        producer.init(transaction_timeout_ms=100)
        producer.add(("t", 0))
        producer.send("t")
        producer.until("CompleteAbort")
        producer.describe()
        producer.add(("t", 0))
        producer.end(True, version)
        producer.send("t", sequence=1)
        producer.go_on()
        producer.describe()
        producer.go_on(producer_epoch=0)
        producer.init()
    _read(talk)


def transactions_are_listed(talk: TransactionTalk) -> None:
    talk.create("t")
    first, second = Producer(talk, "list-a"), Producer(talk, "list-b")
    first.init()
    second.init()
    second.add(("t", 0))
    pattern = talk.name("list-.").replace(".list", "[.]list")
    for version in (0, 1, 2):
        only = {"transactional_id_pattern": pattern, "producer_id_filters": (first.producer_id, 2**41)}
        talk.ask(version, ListTransactionsRequest(**only))
        for states in (("Empty",), ("Ongoing",), ("Bored", "ongoing"), ("Empty", "Bored"), ("Dead",)):
            talk.ask(version, ListTransactionsRequest(state_filters=states, **only))
    for duration in (-1, 0, 100_000):
        request = ListTransactionsRequest(duration_filter=duration, transactional_id_pattern=pattern)
        talk.ask(2, replace(request, state_filters=("Ongoing",)))
    for text in ("(", "a**", talk.name("list-b"), "list-b", "[", ".*list-b|x"):
        talk.ask(2, ListTransactionsRequest(transactional_id_pattern=text, state_filters=("Ongoing",)))
    second.end()


def patterns_of_ids(talk: TransactionTalk) -> None:
    names = ["pay", "PAY-1", "a\nb", "a b", "aa", "a1", "ü", "中文", "\u212a", "{2}", "a\\b", "a\x00b", ""]
    for name in names:
        Producer(talk, name).init()
    begin = talk.name("").replace(".", "[.]")
    for pattern in (*PATTERNS, "\\Qa b", "(?x)a a", "a\x00b"):
        talk.ask(2, ListTransactionsRequest(transactional_id_pattern=begin + pattern, duration_filter=-1))
    for pattern in (begin, f"{begin}|{begin}pay", f"({begin}pay"):
        talk.ask(2, ListTransactionsRequest(transactional_id_pattern=pattern, duration_filter=-1))


def transactions_are_described(talk: TransactionTalk) -> None:
    talk.create("t", 3)
    producer = Producer(talk)
    producer.init()
    producer.add(("t", 2), ("t", 0))
    names = (producer.transactional_id, "", talk.name("nobody"), producer.transactional_id)
    talk.ask(0, DescribeTransactionsRequest(transactional_ids=names))
    talk.ask(0, DescribeTransactionsRequest())
    producer.end()


def markers_are_written_by_hand(talk: TransactionTalk) -> None:
    talk.create("t", 2)
    producer = Producer(talk)
    producer.init()
    producer.add(("t", 0), version=3)
    producer.send("t")

    def mark(epoch: int, coordinator_epoch: int, *indexes: int, version: int = 1, topic: str = "t") -> None:
        marker = WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=epoch,
            transaction_result=False,
            coordinator_epoch=coordinator_epoch,
            topics=(WritableTxnMarkerTopic(name=talk.name(topic), partition_indexes=indexes),),
        )
        talk.ask(version, WriteTxnMarkersRequest(markers=(marker,)))

    mark(0, 0, 0, 5)
    mark(0, 0, 0, topic="no-such-topic")
    mark(0, 0, 0, version=2)
    mark(3, 2, 0)
    mark(2, 2, 0)
    mark(3, 1, 0)
    mark(3, 2, 0, 1)
    talk.ask(1, WriteTxnMarkersRequest())
    producer.send("t", sequence=1)
    _read(talk)


def markers_that_cannot_be_written(talk: TransactionTalk) -> None:
    talk.create("t", 2)

    def mark(
        *markers: tuple[int, int, Sequence[tuple[str, Sequence[int]]]], coordinator_epoch: int = 0
    ) -> None:
        entries = tuple(
            WritableTxnMarker(
                producer_id=producer_id,
                producer_epoch=epoch,
                transaction_result=True,
                coordinator_epoch=coordinator_epoch,
                topics=tuple(
                    WritableTxnMarkerTopic(name=talk.name(topic), partition_indexes=tuple(indexes))
                    for topic, indexes in topics
                ),
            )
            for producer_id, epoch, topics in markers
        )
        for version in (1, 2):
            talk.ask(version, WriteTxnMarkersRequest(markers=entries))

    known, unknown = ("t", (0, 1)), ("nope", (0,))
    for producer_id, epoch in ((-1, -1), (-1, 0), (7001, -1), (7001, -2), (-2, 5), (-2, 0), (-2, -2)):
        for topics in ([known], [known, unknown], [unknown], [("t", (9,))], [("t", ())], []):
            mark((producer_id, epoch, topics))
    for coordinator_epoch in (-1, -2):
        mark((7004 + coordinator_epoch, 0, [known]), coordinator_epoch=coordinator_epoch)
    mark((-1, 0, [known]), (7002, 0, [known, unknown]))
    mark((7003, 0, [("t", (0,))]), (7003, 0, [("t", (1,))]))


def _read(talk: TransactionTalk) -> None:
    """All records of the topic, and the committed ones."""
    for isolation_level in (0, 1):
        talk.fetch(12, ("t", 0, 0), isolation_level=isolation_level)
