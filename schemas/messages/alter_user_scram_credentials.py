"""AlterUserScramCredentials (51): set users' passwords, sent in salted form, and remove them (KIP-554)."""

from schemas.api_key import ApiKey
from schemas.message import entity, field, message
from schemas.primitives import array, bytes_, int8, int16, int32, nullable_string, string


@entity
class ScramCredentialDeletion:
    name: str = field(string)
    mechanism: int = field(int8)


@entity
class ScramCredentialUpsertion:
    name: str = field(string)
    mechanism: int = field(int8)
    iterations: int = field(int32)
    salt: bytes = field(bytes_)
    salted_password: bytes = field(bytes_, secret=True)


@message(api_key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions=range(0, 1), flexible=0)
class AlterUserScramCredentialsRequest:
    deletions: tuple[ScramCredentialDeletion, ...] = field(array(ScramCredentialDeletion))
    upsertions: tuple[ScramCredentialUpsertion, ...] = field(array(ScramCredentialUpsertion))


@entity
class AlterUserScramCredentialsResult:
    user: str = field(string)
    error_code: int = field(int16)
    error_message: str | None = field(nullable_string)


@message(api_key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions=range(0, 1), flexible=0)
class AlterUserScramCredentialsResponse:
    throttle_time_ms: int = field(int32)
    results: tuple[AlterUserScramCredentialsResult, ...] = field(array(AlterUserScramCredentialsResult))
