"""Until a server's broker has heard of all that its controller has decided.

Apache Kafka answers who changes topics or configs when its controller has written that down; its broker hears
of it a moment later. It hears of everything in the order in which it was written. So a mark is written, and
awaited: a config of a topic that nobody else uses. What one broker reads together it makes known together, a
piece at a time; all that came before is in force only when a second mark, written after the first was seen,
is seen too.
"""

from __future__ import annotations

import asyncio
import itertools

from integration.differential.playing.asking import Address, Connection
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from schemas.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

MARKED = "marked"
"""The topic."""
CONFIG = "flush.messages"
TOPIC, SET = 2, 0
AGAIN_S = 0.005


class Settling:
    """One server's, for all histories that are played against it."""

    _marks = itertools.count(1)

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection: Connection | None = None
        self._turn = asyncio.Lock()
        self._asked = self._settled = 0

    async def settle(self) -> None:
        """Until all that was answered before is in force. Who comes meanwhile shares the next turn."""
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
        (done,) = (await self._connection.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, change)).responses
        assert done.error_code == ErrorCode.NONE, done
        asked = DescribeConfigsResource(
            resource_type=TOPIC, resource_name=MARKED, configuration_keys=(CONFIG,)
        )
        look = DescribeConfigsRequest(resources=(asked,), include_synonyms=False, include_documentation=False)
        while True:
            (seen,) = (await self._connection.ask(ApiKey.DESCRIBE_CONFIGS, 4, look)).results
            if [config.value for config in seen.configs] == [mark]:
                return
            await asyncio.sleep(AGAIN_S)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
