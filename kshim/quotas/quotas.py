"""The quotas of one broker's clients. As in Kafka, a client may use up its quotas at each broker.

controller_mutation_rate is the exception: topics belong to the controller, so all brokers share its use.
"""

from __future__ import annotations

from collections import Counter
from time import perf_counter
from typing import TYPE_CHECKING

from kshim.cluster.client_quotas import CONSUMER_RATE, PRODUCER_RATE, REQUEST_PERCENTAGE
from kshim.quotas.account import Account, Usage
from kshim.quotas.levels import limits_of
from kshim.quotas.rate import Rate, Window
from kshim.quotas.token_bucket import TokenBucket
from kshim.quotas.used import Used

if TYPE_CHECKING:
    from kshim.cluster.settings import QuotaTable
    from kshim.configs.config import Config
    from kshim.storage.clock import Clock

RATES = (PRODUCER_RATE, CONSUMER_RATE, REQUEST_PERCENTAGE)


class Quotas:
    """Makes an account for each request of a client that has quotas."""

    def __init__(
        self, table: QuotaTable, config: Config, clock: Clock, mutations: Used[TokenBucket] | None = None
    ) -> None:
        """mutations: the use of controller_mutation_rate, which all brokers share; None makes a new one."""
        window = Window(config.quota_window_num, config.quota_window_size_seconds * 1000)
        samples, sample_s = config.controller_quota_window_num, config.controller_quota_window_size_seconds
        if mutations is None:
            mutations = Used(lambda: TokenBucket(Window(samples, sample_s * 1000)))
        self._table, self._config, self._clock = table, config, clock
        self._usage = Usage(
            window,
            {name: Used(lambda: Rate(window)) for name in RATES},
            mutations,
            lambda: int(clock.seconds() * 1000),
            perf_counter,
        )
        self.throttled: Counter[str] = Counter()
        """The number of throttled requests, by the name of the quota."""
        self.in_force = False
        """True if any client has a quota. If False, callers make no accounts, and requests cost nothing."""
        table.watch(self._look)

    def _look(self, _: object) -> None:
        self.in_force = self._table.has_clients

    def of_another_broker(self) -> Quotas:
        """These quotas for another broker, with nothing used yet."""
        return Quotas(self._table, self._config, self._clock, self._usage.mutations)

    def account(self, user: str, client_id: str, began_s: float) -> Account | None:
        """The account of a request; None if its client has no quotas. began_s: by perf_counter."""
        limits = limits_of(self._table.by_entity, user, client_id)
        return Account(limits, self._usage, began_s) if limits else None
