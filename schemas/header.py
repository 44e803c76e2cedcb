"""The headers of requests and responses.

A message of a flexible version has a flexible header (KIP-482), with one exception: a client must be able to
read the ApiVersions response before it knows the broker, so that response never has tagged fields in its
header (KIP-511). The client_id is compact in no version: a broker reads it before it knows whether it serves
the request.
"""

from schemas.api_key import ApiKey
from schemas.message import field, message
from schemas.primitives import int16, int32, nullable_string


@message(versions=range(1, 3), flexible=2)
class RequestHeader:
    """v0 had no client_id; Kafka 4.0 removed the last request with a header of v0."""

    api_key: int = field(int16)
    api_version: int = field(int16)
    correlation_id: int = field(int32)
    client_id: str | None = field(nullable_string, plain=True)


@message(versions=range(0, 2), flexible=1)
class ResponseHeader:
    correlation_id: int = field(int32)


def request_header_version(is_flexible: bool) -> int:
    """The version of a request's header. is_flexible: True for a request of a flexible version."""
    return 2 if is_flexible else 1


def response_header_version(api_key: int, is_flexible: bool) -> int:
    """The version of a response's header. is_flexible: True for a response of a flexible version."""
    return 1 if is_flexible and api_key != ApiKey.API_VERSIONS else 0
