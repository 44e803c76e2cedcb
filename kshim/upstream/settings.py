"""Reads the upstream brokers' settings on which kshim depends."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from twisted.internet.defer import Deferred

from kshim.callers.once import Once
from kshim.configs.endpoint import Endpoint
from kshim.upstream.coordinators import ANSWER_S, UpstreamCoordinators
from kshim.upstream.link import LinkError
from schemas.error_code import ErrorCode
from schemas.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

logger = logging.getLogger(__name__)

BROKER = 4
RETENTION_MINUTES = "offsets.retention.minutes"
PRODUCERS_EXPIRE_MS = "producer.id.expiration.ms"
DEFAULTS = {RETENTION_MINUTES: 7 * 24 * 60, PRODUCERS_EXPIRE_MS: 24 * 3_600_000}
"""Kafka's defaults, for an upstream that does not let kshim read its settings."""
SAFE_MS = 3_600_000
"""With a producer expiry of at least this, the upstream does not forget a shard's leader that writes seldom.
"""


class UpstreamSettings:
    """Reads the settings of one broker: all brokers should have the same."""

    def __init__(
        self, coordinators: UpstreamCoordinators, brokers: Callable[[], Mapping[int, Endpoint]], once: Once
    ) -> None:
        """brokers: the brokers that run, by node id."""
        self._coordinators = coordinators
        self._brokers = brokers
        self._once = once

    def retention_ms(self) -> Deferred[int]:
        """Return how long the upstream keeps the offsets of a group without members."""
        return Deferred.fromCoroutine(self._retention_ms())

    async def _retention_ms(self) -> int:
        return (await self._read())[RETENTION_MINUTES] * 60_000

    async def check(self) -> None:
        """Log a warning if the upstream forgets producers so soon that the groups' topic is not safe."""
        expire_ms = (await self._read())[PRODUCERS_EXPIRE_MS]
        if expire_ms < SAFE_MS:
            logger.warning(
                "%s of the upstream is %d: it may forget who has led a shard of kshim's groups, and take the"
                " writes of another; set it to %d or more",
                *(PRODUCERS_EXPIRE_MS, expire_ms, SAFE_MS),
            )

    async def _read(self) -> dict[str, int]:
        for node_id, address in self._brokers().items():
            try:
                link = await self._coordinators.link_to(address)
                asked = DescribeConfigsResource(
                    resource_type=BROKER, resource_name=str(node_id), configuration_keys=tuple(DEFAULTS)
                )
                answer = await link.ask(DescribeConfigsRequest(resources=(asked,)), timeout_s=ANSWER_S)
            except LinkError as error:
                logger.debug("%s", error)
                continue
            (result,) = answer.results
            if result.error_code != ErrorCode.NONE:
                level = self._once.level("settings")
                logger.log(level, "kshim may not read the settings of the upstream: %s", result.error_message)
                break
            found = {each.name: int(each.value) for each in result.configs if (each.value or "").isdigit()}
            return {**DEFAULTS, **found}
        return DEFAULTS
