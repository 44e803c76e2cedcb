"""One server with an authorizer, its administrator, and any number of users."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from integration.differential.playing.asking import CLOSED
from integration.support.awaiting import wait_until
from kshim.configs.access import STANDARD_AUTHORIZER
from kshim.testing.wire import Wire
from schemas.error_code import ErrorCode
from schemas.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.messages.create_acls import AclCreation, CreateAclsRequest
from schemas.messages.create_topics import CreatableTopic, CreateTopicsRequest
from schemas.messages.describe_acls import DescribeAclsRequest
from schemas.messages.describe_groups import DescribeGroupsRequest
from schemas.messages.describe_transactions import DescribeTransactionsRequest
from schemas.messages.find_coordinator import FindCoordinatorRequest
from schemas.messages.init_producer_id import InitProducerIdRequest
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic
from schemas.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from schemas.messages.sasl_authenticate import SaslAuthenticateRequest
from schemas.messages.sasl_handshake import SaslHandshakeRequest

TIMEOUT_S = 20
PASSWORD = "x"
ADMIN = "admin"
LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
PATIENCE_S = 5
LOADING_S = 60
MANY = tuple(f"any-{number}" for number in range(500))
"""Enough ids that each shard of the coordinators has some."""
AT_ONCE = 500
EVERYTHING = DescribeAclsRequest(
    resource_type_filter=1,
    resource_name_filter=None,
    pattern_type_filter=1,
    principal_filter=None,
    host_filter=None,
    operation=1,
    permission_type=1,
)


def settings(users: Iterable[str]) -> dict[str, str]:
    """The settings of both servers: everybody authenticates, with one password; Apache Kafka's own broker is
    anonymous at its controller.
    """
    entries = " ".join(f'user_{user}="{PASSWORD}"' for user in users)
    login = f'username="{ADMIN}" password="{PASSWORD}"'
    return {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": f"{LOGIN_MODULE} required {login} {entries};",
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": f"User:{ADMIN};User:ANONYMOUS",
    }


class World:
    """Asks one server on behalf of everybody."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._wires: dict[str, Wire] = {}

    def close(self) -> None:
        for wire in self._wires.values():
            wire.close()

    # ---- users

    def ask(self, user: str, version: int, request: Any) -> Any:
        """The answer; a text if the server closes the connection."""
        try:
            return self._wire(user).ask(version, request)
        except ConnectionError:
            self._wires.pop(user).close()
            return CLOSED

    def is_closed_by(self, user: str, version: int, request: Any) -> str:
        """True if the server closes the connection after a request, without an answer."""
        self._wire(user).request(version, request)
        return CLOSED if self.ask(user, 0, ApiVersionsRequest()) == CLOSED else "the connection lasts"

    def _wire(self, user: str) -> Wire:
        if user not in self._wires:
            self._wires[user] = self.connect(user)
        return self._wires[user]

    def connect(self, user: str) -> Wire:
        """A new connection that is authenticated."""
        wire = Wire(*self._address, timeout_s=TIMEOUT_S)
        handshake = wire.ask(1, SaslHandshakeRequest(mechanism="PLAIN"))
        assert not handshake.error_code, handshake
        token = f"\0{user}\0{PASSWORD}".encode()
        answer = wire.ask(2, SaslAuthenticateRequest(auth_bytes=token))
        assert not answer.error_code, answer
        return wire

    # ---- the administrator

    def admin(self, version: int, request: Any) -> Any:
        return self.ask(ADMIN, version, request)

    def wait_loaded(self) -> None:
        """Wait until all coordinators answer, and take producer id 0, which would look like none."""
        wait_until(self._is_loaded, LOADING_S, "the coordinators")

    def _is_loaded(self) -> bool:
        for key_type in (0, 1):
            self.admin(1, FindCoordinatorRequest(key="any", key_type=key_type))
        groups = self.admin(0, DescribeGroupsRequest(groups=MANY)).groups
        transactions = self.admin(0, DescribeTransactionsRequest(transactional_ids=MANY)).transaction_states
        anybody = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        told = {each.error_code for each in (*groups, *transactions, self.admin(0, anybody))}
        return told <= {ErrorCode.NONE, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND}

    def create_topics(self, names: Sequence[str]) -> Mapping[str, UUID]:
        """Create topics of one partition, and wait until they are known. Returns their ids."""
        for some in _pieces(names, 100):
            new = tuple(CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in some)
            made = self.admin(7, CreateTopicsRequest(topics=new, timeout_ms=TIMEOUT_S * 1000))
            assert {topic.error_code for topic in made.topics} == {ErrorCode.NONE}, made
        asked = MetadataRequest(
            topics=tuple(MetadataRequestTopic(name=name) for name in names), allow_auto_topic_creation=False
        )
        known: dict[str, UUID] = {}

        def are_led() -> bool:
            answer = self.admin(12, asked)
            known.update({topic.name: topic.topic_id for topic in answer.topics})
            return all(
                not topic.error_code and all(not part.error_code for part in topic.partitions)
                for topic in answer.topics
            )

        wait_until(are_led, TIMEOUT_S, "leaders of the topics")
        return known

    def commit(self, group_id: str, topics: Sequence[str]) -> None:
        """Commit offset 1 in partition 0 of the topics."""
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
        named = tuple(OffsetCommitRequestTopic(name=name, partitions=(partition,)) for name in topics)
        answer = self.admin(2, OffsetCommitRequest(group_id=group_id, topics=named))
        assert not any(part.error_code for topic in answer.topics for part in topic.partitions), answer

    def begin(self, transactional_id: str, topics: Sequence[str]) -> None:
        """Begin a transaction that is to write to partition 0 of the topics."""
        new = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=600_000)
        producer = self.admin(4, new)
        assert not producer.error_code, producer
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=tuple(AddPartitionsToTxnTopic(name=name, partitions=(0,)) for name in topics),
        )
        answer = self.admin(3, request)
        added = [part for each in answer.results_by_topic_v3_and_below for part in each.results_by_partition]
        assert not any(part.partition_error_code for part in added), answer

    def create_acls(self, creations: Sequence[AclCreation]) -> None:
        """Make ACLs, and wait until they are in force."""
        before = self.acls()
        for some in _pieces(creations, AT_ONCE):
            made = self.admin(3, CreateAclsRequest(creations=tuple(some)))
            assert not any(each.error_code for each in made.results), made
        wait_until(lambda: self.acls() >= before + len(set(creations)), TIMEOUT_S, "the ACLs")

    def until(self, version: int, request: Any, is_right: Callable[[Any], bool]) -> Any:
        """The administrator's answer, as soon as it is right, or when patience runs out."""
        deadline = time.monotonic() + PATIENCE_S
        while not is_right(answer := self.admin(version, request)) and time.monotonic() < deadline:
            time.sleep(0.05)
        return answer

    def acls(self) -> int:
        """How many ACLs there are."""
        return sum(len(resource.acls) for resource in self.admin(3, EVERYTHING).resources)


def _pieces(items: Iterable[Any], size: int) -> Iterable[list[Any]]:
    left = iter(items)
    while some := list(itertools.islice(left, size)):
        yield some
