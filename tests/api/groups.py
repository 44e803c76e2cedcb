"""A broker with a group coordinator; every request and answer is encoded and decoded, as for a client."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kshim.answering import Broker
from kshim.coordination.cluster_topics import ClusterTopics
from kshim.coordination.group_configs import ValuesOfGroups
from kshim.coordination.group_runtime import GroupRuntime, new_coordinator
from kshim.coordination.groups.rebalance import SHORTEST_DELAY_MS
from kshim.network.dispatch import API
from kshim.storage.journal import LogJournal
from kshim.testing.wire import api_key_of
from schemas.api_key import ApiKey
from schemas.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from schemas.messages.sync_group import SyncGroupRequest
from schemas.registry import VERSIONS, decode_response, encode_response
from tests.api.harness import advance, context, later, new_broker


class Groups:
    """One broker, whose groups do not wait for more members before their first generation."""

    def __init__(self, **config: Any) -> None:
        broker = new_broker(**{"group_initial_rebalance_delay_ms": 0} | config)
        partitions = broker.cluster.group_metadata_topic.partitions
        journal = LogJournal(broker.log, [partition.partition_no for partition in partitions])
        topics = ClusterTopics(broker.cluster)
        configs = ValuesOfGroups(broker.cluster.group_values, broker.node_id)
        coordinator = new_coordinator(broker.config, len(partitions), topics=topics, configs=configs)
        self.runtime = GroupRuntime(coordinator, journal, broker.clock)
        self.runtime.start()
        broker.cluster.watch_topics(self.runtime.topic_changed)
        broker.cluster.watch_group_configs(self.runtime.group_configs_changed)
        self.broker: Broker = replace(broker, groups=self.runtime)

    def send(self, request: Any, version: int | None = None) -> list[Any]:
        """Send a request, by default in the latest version. Returns a list that gets the decoded answer once
        this turn of the reactor is over."""
        api_key = api_key_of(request)
        version = VERSIONS[api_key][-1] if version is None else version
        seen: list[Any] = []

        def see(response: Any) -> Any:
            seen.append(decode_response(api_key, version, encode_response(api_key, version, 7, response))[1])
            return response

        answer = later(API[api_key].function(self.broker, context(version), request))
        if hasattr(answer, "addCallback"):
            answer.addCallback(see)
        else:
            see(answer)
        advance(self.broker)
        if type(request) is JoinGroupRequest:
            advance(self.broker, SHORTEST_DELAY_MS)
        return seen

    def ask(self, request: Any, version: int | None = None) -> Any:
        """The answer, which must be there once all due work is done."""
        (answer,) = self.send(request, version)
        return answer

    def member(self, group_id: str = "group", protocol_type: str = "consumer") -> str:
        """The id of the only member of a stable group in generation 1."""
        answer = self.ask(join(group_id, protocol_type=protocol_type))
        answer = self.ask(join(group_id, protocol_type=protocol_type, member_id=answer.member_id))
        assert answer.generation_id == 1
        request = SyncGroupRequest(
            group_id=group_id,
            generation_id=1,
            member_id=answer.member_id,
            protocol_type=protocol_type,
            protocol_name="range",
        )
        assert self.ask(request).error_code == 0
        member_id: str = answer.member_id
        return member_id


def join(group_id: str = "group", **fields: Any) -> JoinGroupRequest:
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b"topics"),),
    )
    return replace(request, **fields)


def versions(api_key: ApiKey) -> list[int]:
    return list(API[api_key].versions)
