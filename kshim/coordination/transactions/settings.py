"""The configuration of a transaction coordinator; the names are Kafka's property names with underscores."""

from __future__ import annotations

from typing import NamedTuple


class Settings(NamedTuple):
    """Limits and intervals of one coordinator; defaults are Apache Kafka's."""

    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
