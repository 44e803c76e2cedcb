"""A connection that authenticates, or tries to: what it hears, when it is closed, and how.

Nonces, salts and what follows from them are no part of what is compared.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any

from kshim.testing.wire import Wire, api_key_of, framed, sized
from schemas.api_key import ApiKey
from schemas.error_code import ErrorCode
from schemas.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.messages.sasl_authenticate import SaslAuthenticateRequest
from schemas.messages.sasl_handshake import SaslHandshakeRequest
from schemas.registry import decode_response

FAILURE_DELAY_MS = 1500
"""connection.failed.authentication.delay.ms, long enough to distinguish late answers from prompt ones."""
LATE_S = 1.0
PATIENCE_S = 20
USER, PASSWORD = "alice", "wonderland"
NONCE = "fyko+d2lbbFgONRv9qkxdawL"


class SaslTalk:
    """Talks to one server for one story; every connection is new."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._wire: Wire | None = None
        self.heard: list[str] = []
        """The texts that are compared."""

    # ---- what is sent

    @property
    def wire(self) -> Wire:
        if self._wire is None:
            self._wire = Wire(*self._address, timeout_s=PATIENCE_S)
        return self._wire

    def anew(self, why: str) -> None:
        """Go on with a new connection."""
        self.close()
        self._wire = None
        self.heard.append(f"-- {why}")

    def ask(self, version: int, request: Any) -> Any:
        """Send a request; the answer, or None if the connection was closed."""
        return self._answered(framed(version, request), api_key_of(request), version)

    def handshake(self, mechanism: str, version: int = 1) -> Any:
        return self.ask(version, SaslHandshakeRequest(mechanism=mechanism))

    def token(self, token: bytes, version: int = 2) -> Any:
        """Send a token in a SaslAuthenticate; the answer's token, or None."""
        answer = self.ask(version, SaslAuthenticateRequest(auth_bytes=token))
        return answer and answer.auth_bytes

    def versions(self, version: int = 3) -> None:
        name = {"client_software_name": "talk", "client_software_version": "1"} if version >= 3 else {}
        self.ask(version, ApiVersionsRequest(**name))

    def bare(self, token: bytes) -> bytes | None:
        """Send a token without a header, as after SaslHandshake v0; the token that comes back, or None."""
        answer = self.raw(sized(token))
        if answer is not None:
            self.heard[-1] = f"a token: {self._plain(answer)}"
        return answer

    def raw(self, data: bytes) -> bytes | None:
        """Send any bytes; the frame that comes back, or None."""
        began_s = time.monotonic()
        try:
            self.wire.sendall(data)
            frame = self.wire.frame()
        except (ConnectionError, TimeoutError) as error:
            self._ended(error, began_s)
            return None
        self.heard.append(f"a frame of {len(frame)} bytes")
        return frame

    def silent(self) -> None:
        """Hear that nothing comes."""
        self.wire.settimeout(1)
        try:
            self.heard.append(f"received {self.wire.recv(1)!r}")
        except TimeoutError:
            self.heard.append("silence")
        self.wire.settimeout(PATIENCE_S)

    def closed(self) -> None:
        """Hear that the connection is closed."""
        began_s = time.monotonic()
        try:
            self.heard.append(f"received {self.wire.read(1)!r}")
        except (ConnectionError, TimeoutError) as error:
            self._ended(error, began_s)

    def scram(
        self,
        mechanism: str,
        user: str = USER,
        password: str = PASSWORD,
        *,
        version: int = 2,
        first: str = "n,,n={user},r={nonce}",
        proof: bytes | None = None,
    ) -> None:
        """A whole exchange, after the handshake."""
        name = user.replace("=", "=3D").replace(",", "=2C")
        text = first.format(user=name, nonce=NONCE)
        challenge = self.token(text.encode(), version)
        if challenge:
            self.token(final(mechanism, text, challenge.decode(), password, proof), version)

    def add_users(self) -> None:
        """Give alice and bob passwords, for the stories that follow."""
        self.handshake("PLAIN")
        self.token(f"\0{USER}\0{PASSWORD}".encode())
        upsertions = tuple(
            ScramCredentialUpsertion(
                name=name,
                mechanism=number,
                iterations=4096,
                salt=b"salt",
                salted_password=hashlib.pbkdf2_hmac(hash_name, PASSWORD.encode(), b"salt", 4096),
            )
            for name, number, hash_name in ((USER, 1, "sha256"), (USER, 2, "sha512"), ("bob", 2, "sha512"))
        )
        for each in upsertions:  # a user may be named once in a request
            self.ask(0, AlterUserScramCredentialsRequest(upsertions=(each,)))
        self.anew("the passwords are set")

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()

    # ---- what is heard

    def _answered(self, data: bytes, api_key: ApiKey, version: int) -> Any:
        began_s = time.monotonic()
        try:
            self.wire.sendall(data)
            frame = self.wire.frame()
        except (ConnectionError, TimeoutError) as error:
            self._ended(error, began_s)
            return None
        answer = decode_response(api_key, version if frame[4:6] != b"\0\x23" else 0, frame)[1]
        late = "late " if time.monotonic() - began_s > LATE_S else ""
        self.heard.append(f"{late}{api_key.name} v{version}: {self._shown(answer)}")
        return answer

    def _shown(self, answer: Any) -> str:
        name = type(answer).__name__
        error = ErrorCode(getattr(answer, "error_code", 0)).name
        match name:
            case "SaslAuthenticateResponse":
                ends = "for a time" if answer.session_lifetime_ms else ""
                return f"{error} {answer.error_message!r} {self._plain(answer.auth_bytes)} {ends}"
            case "SaslHandshakeResponse":
                return f"{error} {sorted(answer.mechanisms)}"
            case "ApiVersionsResponse":
                return f"{error} {'some' if answer.api_keys else 'no'} APIs"
        return f"{name} {error}"

    def _ended(self, error: Exception, began_s: float) -> None:
        if isinstance(error, TimeoutError):
            self.heard.append("no answer")
        else:
            self.heard.append("closed " + ("late" if time.monotonic() - began_s > LATE_S else "at once"))

    def _plain(self, token: bytes) -> str:
        """A token as it is compared."""
        text = token.decode("latin-1")
        if text.startswith("r="):
            return f"a challenge{text[text.index(',i=') :]}"
        return "a signature" if text.startswith("v=") else repr(text)


def final(mechanism: str, first: str, challenge: str, password: str, proof: bytes | None = None) -> bytes:
    """A client's final message of SCRAM (RFC 5802). proof: instead of the right one."""
    name = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
    parts = dict(part.split("=", 1) for part in challenge.split(","))
    salted = hashlib.pbkdf2_hmac(name, password.encode(), base64.b64decode(parts["s"]), int(parts["i"]))
    client_key = hmac.digest(salted, b"Client Key", name)
    without_proof = f"c=biws,r={parts['r']}"
    said = f"{first.split(',', 2)[2]},{challenge},{without_proof}".encode()
    signature = hmac.digest(hashlib.new(name, client_key).digest(), said, name)
    if proof is None:
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()


def bearer(token: str, asked: str = "", more: str = "") -> bytes:
    """A client's only message of OAUTHBEARER (RFC 7628)."""
    return f"n,{'a=' + asked if asked else ''},\x01auth=Bearer {token}{more}\x01\x01".encode()


def unsecured(header: Mapping[str, Any] | None = None, **claims: Any) -> str:
    """An unsecured token, valid for an hour unless `claims` say otherwise; a claim None is left out."""
    now_s = int(time.time())
    all_claims = {"sub": USER, "iat": now_s, "exp": now_s + 3600, **claims}
    kept = {key: value for key, value in all_claims.items() if value is not None}
    return ".".join((_part(header or {"alg": "none"}), _part(kept), ""))


def _part(value: Mapping[str, Any]) -> str:
    return base64.b64encode(json.dumps(value).encode()).decode().rstrip("=")
