"""A broker with an authorizer, coordinators and users, whose frames are answered as those of connections."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from twisted.python.failure import Failure

from kshim.answering import Broker
from kshim.callers import Client, Refused
from kshim.callers.principal import Principal
from kshim.cluster.acl import Acl
from kshim.cluster.pause import no_pause
from kshim.configs.access import STANDARD_AUTHORIZER
from kshim.configs.endpoint import Endpoint
from kshim.coordination.cluster_topics import ClusterTopics
from kshim.coordination.group_runtime import GroupRuntime, new_coordinator
from kshim.coordination.loading import Leader
from kshim.coordination.transaction_runtime import TransactionRuntime
from kshim.network.dispatch import answer
from kshim.producing.markers import write_marker
from kshim.storage.journal import LogJournal
from kshim.testing.wire import api_key_of, payload
from kshim.turns import Turn
from schemas.registry import VERSIONS, decode_response
from tests.api.harness import HERE, advance, collect, new_broker, result

ADMIN = "admin"
CLOSED = "the connection is closed"


class World:
    """One broker, whose administrator is User:admin."""

    def __init__(self, *acls: Acl, **config: Any) -> None:
        authorizer = {"authorizer_class_name": STANDARD_AUTHORIZER, "super_users": f"User:{ADMIN}"}
        broker = new_broker(**authorizer | {"group_initial_rebalance_delay_ms": 0} | config)
        partitions = broker.cluster.group_metadata_topic.partitions
        journal = LogJournal(broker.log, [partition.partition_no for partition in partitions])
        topics = ClusterTopics(broker.cluster)
        coordinator = new_coordinator(broker.config, len(partitions), topics=topics)
        groups = GroupRuntime(coordinator, journal, broker.clock)
        groups.start({each.index: Leader(each.leader, each.leader_epoch) for each in partitions})
        transactions = TransactionRuntime(broker.cluster, broker.log, broker.config, broker.clock)
        broker.cluster.watch_leaders(transactions.follow)
        self.broker: Broker = replace(broker, groups=groups, transactions=transactions)
        transactions.start(lambda *marker: write_marker(self.broker, *marker))
        self.allow(*acls)

    def allow(self, *acls: Acl) -> None:
        """Make ACLs."""
        assert self.broker.cluster.acls is not None
        assert not any(result(self.broker.cluster.acls.create(acls, no_pause)))

    def client(self, user: str, host: str = "10.0.0.7") -> Client:
        return Client(f"/{host}", Endpoint(host, 51000), HERE, principal=Principal("User", user))

    def ask(self, user: str, request: Any, version: int | None = None, *, host: str = "10.0.0.7") -> Any:
        """The answer to a user."""
        return self.answer(self.client(user, host), request, version)

    def answer(self, client: Client, request: Any, version: int | None = None) -> Any:
        api_key = api_key_of(request)
        version = VERSIONS[api_key][-1] if version is None else version
        try:
            seen = collect(answer(self.broker, payload(version, request, "c", 7), client, Turn()))
        except Refused as refused:
            seen = [Failure(refused)]
        for _ in range(20):
            if not seen:
                advance(self.broker, 10)
        (frame,) = seen
        if isinstance(frame, Failure):
            return str(frame.value) if "our fault" in str(frame.value) else CLOSED
        return frame and decode_response(api_key, version, bytes(frame))[1]


def errors_in(value: Any) -> Iterable[int]:
    """All error codes of an answer, but NONE."""
    if isinstance(value, tuple | list):
        for each in value:
            yield from errors_in(each)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            field = getattr(value, name)
            if name.endswith("error_code"):
                yield from [field] if field else []
            else:
                yield from errors_in(field)
