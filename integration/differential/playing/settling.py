"""Waits until a server's broker has applied all that its controller has decided.

Apache Kafka answers a change of topics or configs once its controller has written it down; its broker learns
of it a moment later. A broker learns of changes in the order in which they were written. So a mark is
written, a config of a topic that nobody else uses, and waited for. A broker applies the changes that it reads
together piece by piece; so all earlier changes are in force only when a second mark, written after the first
was seen, is seen too.
"""

from __future__ import annotations

import asyncio
import itertools

from integration.differential.playing.asking import Address, Connection
from schemas.error_code import ErrorCode
from schemas.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from schemas.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

MARKED = "marked"
"""The topic that carries the marks."""
CONFIG = "flush.messages"
TOPIC, SET = 2, 0
AGAIN_S = 0.005


class Settling:
    """Waits for one server, on behalf of all histories that are played against it."""

    _marks = itertools.count(1)

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection: Connection | None = None
        self._turn = asyncio.Lock()
        self._asked = self._settled = 0

    async def settle(self) -> None:
        """Wait until all changes answered so far are in force. Callers that come meanwhile share the next
        turn."""
        self._asked += 1
        mine = self._asked
        async with self._turn:
            if self._settled < mine:
                asked = self._asked
                for _ in range(2):
                    await self._mark()
                self._settled = asked

    async def _mark(self) -> None:
        if self._connection is None:
            self._connection = await Connection.open(self._address)
        mark = str(next(self._marks))
        config = AlterableConfig(name=CONFIG, config_operation=SET, value=mark)
        resource = AlterConfigsResource(resource_type=TOPIC, resource_name=MARKED, configs=(config,))
        change = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        (done,) = (await self._connection.ask(1, change)).responses
        assert done.error_code == ErrorCode.NONE, done
        asked = DescribeConfigsResource(
            resource_type=TOPIC, resource_name=MARKED, configuration_keys=(CONFIG,)
        )
        look = DescribeConfigsRequest(resources=(asked,), include_synonyms=False, include_documentation=False)
        while True:
            (seen,) = (await self._connection.ask(4, look)).results
            if [config.value for config in seen.configs] == [mark]:
                return
            await asyncio.sleep(AGAIN_S)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
