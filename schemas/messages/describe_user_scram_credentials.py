"""DescribeUserScramCredentials (50): mechanisms and iterations of users' passwords (KIP-554).

Null users stand for all.
"""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, int8, int16, int32, nullable_array, nullable_string, string


@entity
class UserName:
    name: str = field(string)


@message(api_key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions=range(0, 1), flexible=0)
class DescribeUserScramCredentialsRequest:
    users: tuple[UserName, ...] | None = field(nullable_array(UserName))


@entity
class CredentialInfo:
    mechanism: int = field(int8)
    iterations: int = field(int32)


@entity
class DescribeUserScramCredentialsResult:
    user: str = field(string)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)
    credential_infos: tuple[CredentialInfo, ...] = field(array(CredentialInfo))


@message(api_key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions=range(0, 1), flexible=0)
class DescribeUserScramCredentialsResponse:
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)
    results: tuple[DescribeUserScramCredentialsResult, ...] = field(array(DescribeUserScramCredentialsResult))
