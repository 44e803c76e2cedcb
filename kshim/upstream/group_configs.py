"""The configs of groups, which the upstream keeps, as kshim's coordinator uses them.

kshim asks for a group's configs when its first member joins or its shard is taken over, soon after a client
has changed some, and every LOOK_S. An upstream before Kafka 4.0 has none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kshim.callers.once import Once
from kshim.cluster.broker_configs import BrokerConfigs
from kshim.cluster.group_configs import ASSIGNMENT, INTERVAL, SESSION, GroupValues, group_values
from kshim.storage.clock import Timer, TimerClock
from kshim.upstream.link import LinkError
from schemas.error_code import ErrorCode
from schemas.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)

logger = logging.getLogger(__name__)

LOOK_S = 30.0
AT_ONCE = 500
"""Limit of groups in one request."""
GROUP, SET_FOR_GROUP = 32, 8
"""The type of resource, and the source of a config that was set for the group."""
NAMES = (SESSION, INTERVAL, ASSIGNMENT)
WITHOUT = frozenset((ErrorCode.INVALID_REQUEST, ErrorCode.UNSUPPORTED_VERSION))
"""Answers of an upstream that has no configs of groups."""


class UpstreamGroupConfigs:
    """The configs that are set for consumer groups, as far as they were asked for."""

    def __init__(
        self,
        ask: Callable[[DescribeConfigsRequest], Deferred[DescribeConfigsResponse]],
        clock: TimerClock,
        broker: BrokerConfigs,
        groups: Callable[[], Iterable[str]],
        once: Once,
    ) -> None:
        """ask: sends a request to any broker; errbacks LinkError. broker: kshim's own properties.
        groups: returns the consumer groups that kshim serves. once: keeps log lines from being repeated.
        """
        self.changed: Callable[[Collection[str]], None] = lambda _: None
        """Called with the groups whose configs have changed."""
        self._ask = ask
        self._clock = clock
        self._broker = broker
        self._groups = groups
        self._once = once
        self._known: dict[str, Mapping[str, str]] = {}
        """The configs that are set for each group that was asked for."""
        self._defaults = group_values({}, broker)
        self._values: dict[str, GroupValues] = {}
        """The values of the groups for which something is set."""
        self._timer: Timer | None = None

    def values(self, group_id: str, _: int = 0) -> GroupValues:
        """The values that are in force for a group, at every broker of kshim."""
        return self._values.get(group_id, self._defaults)

    def is_known(self, group_id: str) -> bool:
        """True if the upstream was asked for a group's configs."""
        return group_id in self._known

    def start(self) -> None:
        """Begin to look every LOOK_S."""
        self._timer = self._clock.callLater(LOOK_S, self._look_again)

    def stop(self) -> None:
        """Stop looking."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    async def look(self) -> None:
        """Ask for the configs of all groups that kshim serves, forget those of others. Raises LinkError."""
        group_ids = list(self._groups())
        await self.learn(group_ids)
        for group_id in self._known.keys() - {*group_ids, *self._groups()}:
            del self._known[group_id]
            self._values.pop(group_id, None)

    async def learn(self, group_ids: Sequence[str]) -> None:
        """Ask for the configs of some groups. Raises LinkError."""
        for first in range(0, len(group_ids), AT_ONCE):
            some = group_ids[first : first + AT_ONCE]
            resources = (
                DescribeConfigsResource(resource_type=GROUP, resource_name=each, configuration_keys=NAMES)
                for each in some
            )
            answered = await self._ask(DescribeConfigsRequest(resources=tuple(resources)))
            self._take(answered.results)

    def _take(self, results: Iterable[DescribeConfigsResult]) -> None:
        changed = []
        for result in results:
            if result.error_code and result.error_code not in WITHOUT:
                self._log(result)
            group_id, found = result.resource_name, _set_in(result)
            if found != self._known.get(group_id, {}):
                changed.append(group_id)
            self._put(group_id, found)
        if changed:
            self.changed(changed)

    def _put(self, group_id: str, found: Mapping[str, str]) -> None:
        self._known[group_id] = found
        self._values.pop(group_id, None)
        if found:
            self._values[group_id] = group_values(found, self._broker)

    def _log(self, result: DescribeConfigsResult) -> None:
        logger.log(
            self._once.level("configs of groups"),
            "the upstream does not describe the configs of group %s to kshim: error %d; those of kshim count",
            *(result.resource_name, result.error_code),
        )

    def _look_again(self) -> None:
        self._timer = self._clock.callLater(LOOK_S, self._look_again)
        Deferred.fromCoroutine(self.look()).addErrback(_not_now)


def _set_in(result: DescribeConfigsResult) -> dict[str, str]:
    """The configs that are set for the group, and that kshim understands."""
    return {
        each.name: each.value
        for each in result.configs
        if each.config_source == SET_FOR_GROUP and each.name in NAMES and each.value is not None
    }


def _not_now(failure: Failure) -> None:
    failure.trap(LinkError)
    logger.debug("the configs of groups were not looked at: %s", failure.value)
