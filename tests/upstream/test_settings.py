"""The settings of the upstream: read of a broker that answers, and warned of."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from kshim.callers.once import Once
from kshim.configs.endpoint import Endpoint
from kshim.upstream.link import LinkError
from kshim.upstream.settings import UpstreamSettings
from schemas.error_code import ErrorCode
from schemas.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.api.harness import result


class Brokers:
    """Broker 1 is down."""

    def __init__(self, error: ErrorCode = ErrorCode.NONE, **values: str) -> None:
        self.error = error
        self.values = {name.replace("_", "."): value for name, value in values.items()}
        self.asked: list[str] = []
        running = {1: Endpoint("a", 1), 2: Endpoint("b", 2)}
        coordinators: Any = self
        self.settings = UpstreamSettings(coordinators, lambda: running, Once(Clock()))

    async def link_to(self, address: Endpoint) -> Brokers:
        if address.host == "a":
            raise LinkError("down")
        return self

    def ask(self, request: DescribeConfigsRequest, **_: Any) -> Deferred[DescribeConfigsResponse]:
        (asked,) = request.resources
        self.asked.append(asked.resource_name)
        configs = tuple(
            DescribeConfigsResourceResult(name=name, value=self.values.get(name))
            for name in asked.configuration_keys or ()
        )
        found = DescribeConfigsResult(error_code=self.error, error_message="because", configs=configs)
        return succeed(DescribeConfigsResponse(results=(found,)))


def test_a_broker_that_answers_is_asked_for_its_own() -> None:
    brokers = Brokers(offsets_retention_minutes="3")
    assert result(brokers.settings.retention_ms()) == 180_000
    assert brokers.asked == ["2"]


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.CLUSTER_AUTHORIZATION_FAILED])
def test_what_kshim_may_not_read_is_as_kafka_has_it(
    error: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    brokers = Brokers(error)
    assert result(brokers.settings.retention_ms()) == 7 * 24 * 3_600_000
    result(Deferred.fromCoroutine(brokers.settings.check()))
    said = ["kshim may not read the settings of the upstream: because"] if error else []
    assert [each.getMessage() for each in caplog.records if each.levelname == "WARNING"] == said


@pytest.mark.parametrize(("expire_ms", "is_warned"), [("3599999", True), ("3600000", False)])
def test_an_upstream_that_forgets_producers_too_soon(
    expire_ms: str, caplog: pytest.LogCaptureFixture, *, is_warned: bool
) -> None:
    result(Deferred.fromCoroutine(Brokers(producer_id_expiration_ms=expire_ms).settings.check()))
    assert ("producer.id.expiration.ms of the upstream is 3599999: it may forget" in caplog.text) is is_warned
