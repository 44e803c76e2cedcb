"""DescribeConfigs (32): the configs of topics, of groups and of the broker.

v1: synonyms (KIP-226); v3: types and documentation. All configs that Kafka lists are listed. The
documentation says which of them have no effect in kshim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import NamedTuple

from kshim.answering import Broker
from kshim.callers import RequestContext
from kshim.cluster import fault_in_name
from kshim.cluster.broker_configs import ALL_BROKERS, parse_node_id
from kshim.cluster.broker_loggers import levels
from kshim.cluster.config_changes import ResourceType
from kshim.cluster.described import (
    DescribedConfig,
    described_broker,
    described_defaults,
    described_group,
    described_loggers,
    described_topic,
)
from kshim.turns.slices import AnswerElements, in_slices
from schemas.error_code import ErrorCode
from schemas.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


class _Described(NamedTuple):
    """The configs of a resource."""

    configs: Callable[[], Iterable[DescribedConfig]]
    source: object | None = None
    """The object from which alone the configs follow, so that their description can be shared; None if they
    depend on more.
    """
    kind: str = ""
    """Distinguishes descriptions that are made from the same source, such as a topic's and a broker's."""


class _Invalid(Exception):
    """A resource that cannot be described."""

    def __init__(self, error_code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code


RESOURCE_TYPES = frozenset({*ResourceType, 16})
"""The types that Apache Kafka knows; 16 is client metrics."""
RESOURCE_US = 500
MALFORMED = _Invalid(
    ErrorCode.INVALID_REQUEST,
    "This most likely occurs because of a request being malformed by the client library or the message was "
    "sent to an incompatible broker. See the broker logs for more details.",
)


async def describe_configs(
    broker: Broker, context: RequestContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """Describe each resource independently, as this broker sees it.

    If one has a type that Kafka lacks, all are refused. A resource that is named again is not read again, and
    equal configs are shared between resources.
    """
    described_once = cache(partial(_result, Describing(broker, context.api_version, request)))
    made = AnswerElements()

    def describe(resource: DescribeConfigsResource) -> DescribeConfigsResult:
        made.check()
        described = described_once(resource)
        made.add(len(described.configs))
        return described

    if all(resource.resource_type in RESOURCE_TYPES for resource in request.resources):
        results = await in_slices(
            broker.rounds, context.turn, request.resources, describe, lambda _: RESOURCE_US
        )
    else:
        results = [_refused(resource, MALFORMED) for resource in request.resources]
    return DescribeConfigsResponse(results=tuple(results))


class Describing:
    """Describes configs in the form that one request asks for. A complete description is encoded once for all
    requests, except for topics with settings of their own.
    """

    def __init__(self, broker: Broker, api_version: int, request: DescribeConfigsRequest) -> None:
        self.broker = broker
        synonyms, documentation = request.include_synonyms, request.include_documentation
        self._how = api_version, synonyms, documentation
        self._new_config = partial(_config, synonyms, documentation)
        self._config = cache(self._new_config)

    def configs(self, resource: DescribeConfigsResource) -> Sequence[DescribeConfigsResourceResult]:
        """Return the configs of a resource. Raises _Invalid."""
        described = _describe(self.broker, resource)
        keys = resource.configuration_keys
        if keys:
            return tuple(self._config(each) for each in described.configs() if each.name in keys)
        if described.source is None:
            return tuple(map(self._config, described.configs()))
        key, sources, written = (described.kind, *self._how), (described.source,), self.broker.written
        known = written.known(key, sources)
        return known or written.array(key, sources, self._new_config, tuple(described.configs()))


def _result(describing: Describing, resource: DescribeConfigsResource) -> DescribeConfigsResult:
    try:
        configs = describing.configs(resource)
    except _Invalid as invalid:
        return _refused(resource, invalid)
    return DescribeConfigsResult(
        error_code=ErrorCode.NONE,
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=configs,
    )


def _refused(resource: DescribeConfigsResource, invalid: _Invalid) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=invalid.error_code,
        error_message=str(invalid),
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=(),
    )


def _describe(broker: Broker, resource: DescribeConfigsResource) -> _Described:
    match resource.resource_type:
        case ResourceType.TOPIC:
            return _describe_topic(broker, resource.resource_name)
        case ResourceType.BROKER:
            return _describe_broker(broker, resource.resource_name)
        case ResourceType.LOGGER:
            return _describe_loggers(broker, resource.resource_name)
        case ResourceType.GROUP:
            return _describe_group(broker, resource.resource_name)
        case other:
            raise _Invalid(ErrorCode.INVALID_REQUEST, f"Resource type {other} is not served.")


def _describe_topic(broker: Broker, name: str) -> _Described:
    fault = fault_in_name(name)
    if fault:
        raise _Invalid(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    topic = broker.cluster.topics.get(name)
    if topic is None:
        raise _Invalid(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    configs = broker.cluster.broker_configs(broker.node_id)
    described = partial(described_topic, topic.configs, configs)
    return _Described(described) if topic.configs else _Described(described, configs, "a topic's configs")


def _describe_broker(broker: Broker, name: str) -> _Described:
    """Describe a broker's configs. The empty name stands for the run-time defaults of all brokers."""
    configs = broker.cluster.broker_configs(broker.node_id)
    if name == ALL_BROKERS:
        return _Described(partial(described_defaults, configs))
    node_id = parse_node_id(name)
    if node_id is None:
        raise _Invalid(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if node_id != broker.node_id:
        message = f"Unexpected broker id, expected {broker.node_id} or empty string, but received {name}"
        raise _Invalid(ErrorCode.INVALID_REQUEST, message)
    return _Described(partial(described_broker, configs), configs, "a broker's configs")


def _describe_group(broker: Broker, group_id: str) -> _Described:
    """Describe the configs of a group, which need not exist."""
    if group_id == "":
        raise _Invalid(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    configs = broker.cluster.broker_configs(broker.node_id)
    overrides = broker.cluster.group_configs.get(group_id, {})
    described = partial(described_group, overrides, configs)
    return _Described(described) if overrides else _Described(described, configs, "a group's configs")


def _describe_loggers(broker: Broker, name: str) -> _Described:
    node_id = parse_node_id(name)
    if name == "":
        raise _Invalid(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    if node_id is None:
        raise _Invalid(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if node_id != broker.node_id:
        message = f"Unexpected broker id, expected {broker.node_id} but received {name}"
        raise _Invalid(ErrorCode.INVALID_REQUEST, message)
    return _Described(partial(described_loggers, levels()))


def _config(
    include_synonyms: bool, include_documentation: bool, config: DescribedConfig
) -> DescribeConfigsResourceResult:
    synonyms = config.synonyms if include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=config.name,
        value=None if config.is_sensitive else config.value,
        read_only=config.read_only,
        config_source=config.source,
        is_sensitive=config.is_sensitive,
        synonyms=tuple(
            DescribeConfigsSynonym(name=name, value=None if config.is_sensitive else text, source=source)
            for name, text, source in synonyms
        ),
        config_type=config.type,
        documentation=config.doc if include_documentation or config.doc == "" else None,
    )
