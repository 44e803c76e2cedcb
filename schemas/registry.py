"""The table of all messages and versions that exist, and the conversion of frames to messages and back.

A frame is a header and a body, without the four bytes of size before them. As in Kafka, bytes after the body
of a request are ignored: librdkafka sends three after some requests. A memoryview of a frame is copied once.
The module of a message is imported at its first use, and the code for a version is generated at its first
use: a process never uses most of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Final

from schemas.api_key import ApiKey
from schemas.compiled import Decoder, Size, decoder, encoder, measurer, overfull, piece_encoder
from schemas.compiled.text import NO_LIMIT
from schemas.header import RequestHeader, ResponseHeader, request_header_version, response_header_version
from schemas.mapped import Mapped
from schemas.message import MalformedMessage, Value, definition
from schemas.pieces import Pieces, in_blocks
from schemas.primitives import can_be_written

VERSIONS: Final = {
    ApiKey.PRODUCE: range(3, 14),
    ApiKey.FETCH: range(4, 19),
    ApiKey.LIST_OFFSETS: range(1, 12),
    ApiKey.METADATA: range(0, 14),
    ApiKey.OFFSET_COMMIT: range(2, 11),
    ApiKey.OFFSET_FETCH: range(1, 11),
    ApiKey.FIND_COORDINATOR: range(0, 7),
    ApiKey.JOIN_GROUP: range(0, 10),
    ApiKey.HEARTBEAT: range(0, 5),
    ApiKey.LEAVE_GROUP: range(0, 6),
    ApiKey.SYNC_GROUP: range(0, 6),
    ApiKey.DESCRIBE_GROUPS: range(0, 7),
    ApiKey.LIST_GROUPS: range(0, 6),
    ApiKey.SASL_HANDSHAKE: range(0, 2),
    ApiKey.API_VERSIONS: range(0, 6),
    ApiKey.CREATE_TOPICS: range(2, 8),
    ApiKey.DELETE_TOPICS: range(1, 7),
    ApiKey.DELETE_RECORDS: range(0, 3),
    ApiKey.INIT_PRODUCER_ID: range(0, 6),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: range(2, 5),
    ApiKey.ADD_PARTITIONS_TO_TXN: range(0, 6),
    ApiKey.ADD_OFFSETS_TO_TXN: range(0, 5),
    ApiKey.END_TXN: range(0, 6),
    ApiKey.WRITE_TXN_MARKERS: range(1, 3),
    ApiKey.TXN_OFFSET_COMMIT: range(0, 7),
    ApiKey.DESCRIBE_ACLS: range(1, 4),
    ApiKey.CREATE_ACLS: range(1, 4),
    ApiKey.DELETE_ACLS: range(1, 4),
    ApiKey.DESCRIBE_CONFIGS: range(1, 5),
    ApiKey.ALTER_CONFIGS: range(0, 3),
    ApiKey.ALTER_REPLICA_LOG_DIRS: range(1, 3),
    ApiKey.DESCRIBE_LOG_DIRS: range(1, 6),
    ApiKey.SASL_AUTHENTICATE: range(0, 3),
    ApiKey.CREATE_PARTITIONS: range(0, 4),
    ApiKey.DELETE_GROUPS: range(0, 4),
    ApiKey.ELECT_LEADERS: range(0, 3),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: range(0, 2),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: range(0, 2),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: range(0, 1),
    ApiKey.OFFSET_DELETE: range(0, 1),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: range(0, 2),
    ApiKey.ALTER_CLIENT_QUOTAS: range(0, 2),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: range(0, 1),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: range(0, 1),
    ApiKey.DESCRIBE_QUORUM: range(0, 3),
    ApiKey.UPDATE_FEATURES: range(0, 3),
    ApiKey.DESCRIBE_CLUSTER: range(0, 3),
    ApiKey.DESCRIBE_PRODUCERS: range(0, 1),
    ApiKey.UNREGISTER_BROKER: range(0, 1),
    ApiKey.DESCRIBE_TRANSACTIONS: range(0, 1),
    ApiKey.LIST_TRANSACTIONS: range(0, 3),
    ApiKey.LIST_CONFIG_RESOURCES: range(0, 2),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: range(0, 2),
    ApiKey.CONSUMER_GROUP_DESCRIBE: range(0, 2),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: range(0, 1),
    ApiKey.SHARE_GROUP_HEARTBEAT: range(1, 2),
    ApiKey.ADD_RAFT_VOTER: range(0, 2),
    ApiKey.REMOVE_RAFT_VOTER: range(0, 1),
    ApiKey.STREAMS_GROUP_HEARTBEAT: range(0, 2),
    ApiKey.UNREGISTER_CONTROLLER: range(0, 1),
}


_IN_PIECES: Final = frozenset((ApiKey.FETCH,))
"""The APIs whose responses contain records."""


class _Messages(Mapping[ApiKey, tuple[type[Value], type[Value]]]):
    """The classes of request and response by API key. For example, those of INIT_PRODUCER_ID are
    InitProducerIdRequest and InitProducerIdResponse in schemas/messages/init_producer_id.py.
    """

    def __getitem__(self, api_key: ApiKey) -> tuple[type[Value], type[Value]]:
        key = ApiKey(api_key)
        if key not in VERSIONS:
            raise KeyError(api_key)
        module = import_module(f"schemas.messages.{key.name.lower()}")
        return getattr(module, f"{key.title}Request"), getattr(module, f"{key.title}Response")

    def __iter__(self) -> Iterator[ApiKey]:
        return iter(VERSIONS)

    def __len__(self) -> int:
        return len(VERSIONS)


MESSAGES: Final = _Messages()


Frame = bytes | bytearray | memoryview


class UnsupportedVersion(MalformedMessage):
    """A request whose API or version is not in the table. `header` is the request's header."""

    def __init__(self, header: RequestHeader) -> None:
        api = _name(header.api_key)
        super().__init__("unsupported", api=api, version=header.api_version, field="api_version", offset=2)
        self.header = header


class StringTooLong(ValueError):
    """A response cannot be written, because it repeats a string from the client that is too long."""


def _name(api_key: int) -> str:
    return ApiKey(api_key).name if api_key in ApiKey.__members__.values() else f"api key {api_key}"


_Decoders = tuple[Decoder[RequestHeader], Decoder[Value]]  # of header and body
_decoders: dict[bytes, _Decoders] = {}  # key: the first four bytes of a frame


def _request_decoders(start: bytes) -> _Decoders | None:
    """The decoders of header and body for a request that begins with these four bytes; None if it is not in
    the table.
    """
    api_key, version = int.from_bytes(start[:2], signed=True), int.from_bytes(start[2:], signed=True)
    if len(start) < 4 or version not in VERSIONS.get(api_key, ()):  # type: ignore[call-overload]
        return None
    request = MESSAGES[ApiKey(api_key)][0]
    header_version = request_header_version(definition(request).is_flexible(version))
    found = _decoders[start] = decoder(RequestHeader, header_version), decoder(request, version)
    return found


def prepare(api_key: ApiKey, version: int) -> None:
    """Generate, before its first use, the code that reads requests and writes responses of one version."""
    _request_decoders(api_key.to_bytes(2) + version.to_bytes(2))
    _response_encoder(api_key, version)


def _unserved_header_version(frame: bytes) -> int:
    """The header version of a request that is not in the table. It matters only for ApiVersions, which gets
    an answer all the same. For any other request only the part that all header versions share is read.
    """
    api_key, version = int.from_bytes(frame[:2], signed=True), int.from_bytes(frame[2:4], signed=True)
    return 2 if api_key == ApiKey.API_VERSIONS and version > 0 else 1


def decode_request_header(frame: Frame) -> tuple[RequestHeader, int]:
    """The header of a request, and the offset of its body. Raises MalformedMessage."""
    frame = bytes(frame)
    found = _decoders.get(frame[:4]) or _request_decoders(frame[:4])
    return (found[0] if found else decoder(RequestHeader, _unserved_header_version(frame)))(frame, 0)


def decode_request(frame: Frame, max_elements: int = NO_LIMIT) -> tuple[RequestHeader, Value]:
    """The header and the body of a request.

    Raises UnsupportedVersion for an API or version that is not in the table, MalformedMessage for a header or
    a body that cannot be read, and TooManyElements for a header or a body with more than `max_elements`.
    """
    if isinstance(frame, memoryview):
        frame = bytes(frame)
    start = bytes(frame[:4])
    found = _decoders.get(start) or _request_decoders(start)
    if found is None:
        raise UnsupportedVersion(decode_request_header(frame)[0])
    header, offset = found[0](frame, 0, max_elements)
    request, _ = found[1](frame, offset, max_elements)
    return header, request


def encode_response(
    api_key: int, api_version: int, correlation_id: int, response: object, max_elements: int = NO_LIMIT
) -> bytes:
    """A response with its header, as one piece. Raises the same as `encode_reply`."""
    return bytes(encode_reply(api_key, api_version, correlation_id, response, max_elements))


def encode_reply(
    api_key: int,
    api_version: int,
    correlation_id: int,
    response: object,
    max_elements: int = NO_LIMIT,
    max_bytes: int = NO_LIMIT,
) -> bytes | Pieces:
    """A response with its header. It is in pieces if its API has records, which are then not copied.

    max_bytes: most bytes in its strings and bytes, without its records.

    Raises TooManyElements or TooManyBytes if it has more. Raises StringTooLong for a string of more than
    32767 bytes: a name from a client may have become that long (see `primitives.String`). Raises ValueError
    for any other value that this version cannot carry.
    """
    encode, header_end = _response_encoder(api_key, api_version)
    try:
        head = correlation_id.to_bytes(4, signed=True) + header_end
        return encode(response, head, max_elements, max_bytes)
    except ValueError as error:
        if _holds_long_string(response):
            raise StringTooLong(str(error)) from None
        raise


def encode_in_pieces(api_key: int, api_version: int, correlation_id: int, response: object) -> Pieces:
    """A response with its header, in pieces; long bytes in it are not copied. Raises StringTooLong and
    ValueError like `encode_reply`.
    """
    _, header_end = _response_encoder(api_key, api_version)
    try:
        head = correlation_id.to_bytes(4, signed=True) + header_end
        return in_blocks(piece_encoder(type(response), api_version)(response, head))
    except ValueError as error:
        if _holds_long_string(response):
            raise StringTooLong(str(error)) from None
        raise


def body_size(
    api_version: int, response: object, max_elements: int = NO_LIMIT, max_bytes: int = NO_LIMIT
) -> Size:
    """The size of a response without its header. The response is not written.

    Raises TooManyElements or TooManyBytes if it has more, and ValueError if it cannot be measured.
    """
    return measurer(type(response), api_version)(response, max_elements, max_bytes)


def _holds_long_string(value: object) -> bool:
    if isinstance(value, str):
        return not can_be_written(value)
    if isinstance(value, Value):
        value = value._values(value)
    return isinstance(value, tuple | Mapped) and any(map(_holds_long_string, value))


@cache
def _response_encoder(api_key: int, version: int) -> tuple[Callable[..., bytes | Pieces], bytes]:
    """The encoder of a response's body, and the bytes of its header after the correlation id."""
    response = MESSAGES[ApiKey(api_key)][1]
    has_tags = response_header_version(api_key, definition(response).is_flexible(version))
    new_encoder: Callable[..., Callable[..., bytes | Pieces]]
    new_encoder = piece_encoder if api_key in _IN_PIECES else encoder
    return new_encoder(response, version), b"\0" * has_tags


def encode_request(header: RequestHeader, request: object) -> bytes:
    """A request with its header, as a client sends it. Raises ValueError."""
    cls = type(request)
    is_flexible = definition(cls).is_flexible(header.api_version)
    head = encoder(RequestHeader, request_header_version(is_flexible))(header)
    return encoder(cls, header.api_version)(request, head)


def decode_response(api_key: int, api_version: int, frame: bytes | memoryview) -> tuple[int, Value]:
    """The correlation id and the body of a response, as a client reads it. Raises MalformedMessage."""
    frame = bytes(frame)
    response = MESSAGES[ApiKey(api_key)][1]
    header_version = response_header_version(api_key, definition(response).is_flexible(api_version))
    header, offset = decoder(ResponseHeader, header_version)(frame, 0)
    body, end = decoder(response, api_version)(frame, offset)
    if end != len(frame):
        raise overfull(response, api_version, frame, end)
    return header.correlation_id, body
