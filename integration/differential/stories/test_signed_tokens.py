"""Apache Kafka and kshim take the same signed tokens, and refuse the same, with the same JWKS file."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from integration.differential.stories.sasl_settings import LISTENER, MODULES, SETTINGS, both_with_sasl
from integration.differential.stories.sasl_talk import USER, SaslTalk, bearer, unsecured
from integration.differential.stories.telling import Servers, told

HANDLER = f"{MODULES}oauthbearer.OAuthBearerValidatorCallbackHandler"
OURS, OTHER = "kafka", "somebody-else"
ISSUER = "https://login.example.org"
SKEW_S = 30
NOW_S = int(time.time())
CLAIMS = {"sub": USER, "iat": NOW_S - 5, "exp": NOW_S + 3600, "aud": OURS, "iss": ISSUER}
KEYS: Mapping[str, Any] = {
    "r": rsa.generate_private_key(public_exponent=65537, key_size=2048),
    "e": ec.generate_private_key(ec.SECP256R1()),
    "stranger": rsa.generate_private_key(public_exponent=65537, key_size=2048),
}
PUBLIC = KEYS["r"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def signed(key: str = "r", algorithm: str = "RS256", kid: str | None = "r", **claims: Any) -> str:
    kept = {name: value for name, value in {**CLAIMS, **claims}.items() if value is not None}
    return jwt.encode(kept, KEYS[key], algorithm=algorithm, headers={"kid": kid} if kid else {})


def forged() -> str:
    """Claims of another under a signature that is right for the first."""
    head, _, signature = signed().split(".")
    claims = base64.urlsafe_b64encode(json.dumps({**CLAIMS, "sub": "root"}).encode()).decode().rstrip("=")
    return f"{head}.{claims}.{signature}"


TOKENS = {
    "RS256": signed(),
    "PS256": signed(algorithm="PS256"),
    "ES256": signed("e", "ES256", "e"),
    "a stranger's key": signed("stranger"),
    "an unknown kid": signed(kid="unknown"),
    "another's kid": signed(kid="e"),
    "forged claims": forged(),
    "cut off": signed()[:-10],
    "unsecured": unsecured(aud=OURS, iss=ISSUER),
    "signed with the public key": jwt.encode(
        CLAIMS, base64.b64encode(PUBLIC), algorithm="HS256", headers={"kid": "r"}
    ),
    "no parts": "token",
    "expired a moment ago": signed(iat=NOW_S - 99, exp=NOW_S - SKEW_S // 3),
    "expired": signed(iat=NOW_S - 9999, exp=NOW_S - 999),
    "no expiry": signed(exp=None),
    "no issue time": signed(iat=None),
    "not valid yet": signed(nbf=NOW_S + 999),
    "valid in a moment": signed(nbf=NOW_S + SKEW_S // 3),
    "several audiences": signed(aud=[OTHER, OURS]),
    "another audience": signed(aud=OTHER),
    "no audience": signed(aud=None),
    "another issuer": signed(iss="https://elsewhere.example.org"),
    "no issuer": signed(iss=None),
    "no subject": signed(sub=None),
    "an empty subject": signed(sub=" "),
    "scopes": signed(scope=["a", "b"]),
    "a scope": signed(scope="a"),
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, class_path: str) -> Iterator[Servers]:
    directory = tmp_path_factory.mktemp("signed")
    with both_with_sasl(directory, {**SETTINGS, **_properties(directory)}) as both:
        yield both


def _properties(directory: Path) -> dict[str, str]:
    keys = [
        {**json.loads(RSAAlgorithm.to_jwk(KEYS["r"].public_key())), "kid": "r"},
        {**json.loads(ECAlgorithm.to_jwk(KEYS["e"].public_key())), "kid": "e"},
    ]
    path = directory / "keys.json"
    path.write_text(json.dumps({"keys": keys}))
    of_mechanism = f"{LISTENER}oauthbearer.sasl."
    return {
        f"{of_mechanism}server.callback.handler.class": HANDLER,
        f"{of_mechanism}oauthbearer.jwks.endpoint.url": path.as_uri(),
        f"{of_mechanism}oauthbearer.expected.audience": OURS,
        f"{of_mechanism}oauthbearer.expected.issuer": ISSUER,
    }


def show(token: str) -> Callable[[SaslTalk], None]:
    """The story of a client that authenticates with a token."""

    def story(talk: SaslTalk) -> None:
        talk.handshake("OAUTHBEARER")
        if talk.token(bearer(token)):
            talk.token(b"\x01")

    return story


def test_the_same_tokens_are_taken(servers: Servers, compared: Callable[[int], None]) -> None:
    with ThreadPoolExecutor(8) as threads:
        submitted = [
            {
                what: threads.submit(told, show(token), SaslTalk(server.host, server.port))
                for what, token in TOKENS.items()
            }
            for server in servers
        ]
        theirs, ours = ({what: each.result() for what, each in found.items()} for found in submitted)
    assert ours == theirs
    compared(sum(map(len, ours.values())))
    taken = {what for what, lines in ours.items() if len(lines) == 2 and "for a time" in lines[1]}
    assert {"RS256", "ES256", "several audiences"} <= taken
    assert not taken & {"a stranger's key", "forged claims", "unsecured", "expired", "another audience"}
