"""DescribeTransactions (65): the state of transactional ids at their coordinator (KIP-664)."""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, int16, int32, int64, string


@message(api_key=ApiKey.DESCRIBE_TRANSACTIONS, versions=range(0, 1), flexible=0)
class DescribeTransactionsRequest:
    transactional_ids: tuple[str, ...] = field(array(string))


@entity
class TopicData:
    topic: str = field(string)
    partitions: tuple[int, ...] = field(array(int32))


@entity
class TransactionState:
    error_code: int = field(int16)
    transactional_id: str = field(string)
    transaction_state: str = field(string)
    transaction_timeout_ms: int = field(int32)
    transaction_start_time_ms: int = field(int64)
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    topics: tuple[TopicData, ...] = field(array(TopicData))


@message(api_key=ApiKey.DESCRIBE_TRANSACTIONS, versions=range(0, 1), flexible=0)
class DescribeTransactionsResponse:
    throttle_time_ms: int = field(int32)
    transaction_states: tuple[TransactionState, ...] = field(array(TransactionState))
