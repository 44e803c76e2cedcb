"""OAUTHBEARER: unsecured and signed tokens, and the answers to refused ones."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from kshim.authentication.mechanism import Answer, AuthenticationFailed, Login, Unreadable
from kshim.authentication.oauthbearer import OAuthBearer
from kshim.authentication.signed_tokens import SignedTokens
from kshim.authentication.tokens import ClaimRules, TokenRefused, unsecured_claims

NOW_S = 1_700_000_000
NOW_MS = NOW_S * 1000
CLAIMS = {"sub": "alice", "iat": NOW_S - 10, "exp": NOW_S + 60}
INVALID = '{"status":"invalid_token"}'


def part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def unsecured(**claims: Any) -> str:
    kept = {key: value for key, value in {**CLAIMS, **claims}.items() if value is not None}
    return f"{part({'alg': 'none'})}.{part(kept)}."


def validate(rules: ClaimRules) -> Callable[[str, int], Login]:
    return lambda token, now_ms: rules.login(unsecured_claims(token), now_ms)


def message(token: str, asked: str = "", more: str = "") -> bytes:
    return f"n,{asked and 'a=' + asked},\x01auth=Bearer {token}{more}\x01\x01".encode()


def bearer(rules: ClaimRules | None = None) -> OAuthBearer:
    return OAuthBearer(validate(rules or ClaimRules()))


@pytest.mark.parametrize(
    "token",
    [message(unsecured()), message(unsecured(), "alice"), message(unsecured(iat=None), more="\x01trait=x")],
)
def test_a_valid_token_lets_its_bearer_in(token: bytes) -> None:
    assert bearer().step(token, NOW_MS) == Answer(b"", Login("alice", NOW_MS + 60_000))


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": None}, "no claim exp"),
        ({"exp": "soon"}, "no number"),
        ({"exp": True}, "no number"),
        ({"exp": 10**400}, "no time"),
        ({"exp": NOW_S}, "has expired"),
        ({"iat": NOW_S + 1}, "in the future"),
        ({"iat": NOW_S - 5, "exp": NOW_S - 5}, "has expired"),
        ({"sub": None}, "no claim sub"),
        ({"sub": " "}, "no claim sub"),
        ({"sub": 7}, "no claim sub"),
    ],
)
def test_a_refused_token_is_told_and_then_given_up(claims: dict[str, Any], why: str) -> None:
    exchange = bearer()
    assert exchange.step(message(unsecured(**claims)), NOW_MS) == Answer(INVALID.encode())
    with pytest.raises(AuthenticationFailed, match=why) as failed:
        exchange.step(b"\x01", NOW_MS)
    assert failed.value.message == INVALID


def test_a_second_token_may_follow_a_refused_one() -> None:
    exchange = bearer()
    exchange.step(message(unsecured(exp=None)), NOW_MS)
    assert exchange.step(message(unsecured()), NOW_MS).login is not None


def test_a_scope_that_is_missing_is_told() -> None:
    rules = ClaimRules(required_scope=("read", "write"))
    assert bearer(rules).step(message(unsecured(scope=["write", "read"])), NOW_MS).login is not None
    told = bearer(rules).step(message(unsecured(scope="read")), NOW_MS).token
    assert json.loads(told) == {"status": "insufficient_scope", "scope": "[read, write]"}


@pytest.mark.parametrize(
    "token",
    [
        "e30.e30",
        "e30.e30.e30.e30",
        f"{part({'alg': 'HS256'})}.{part(CLAIMS)}.",
        unsecured() + "c2ln",
        "YQ.YQ.",
        "a.b.",
    ],
)
def test_what_is_no_unsecured_token(token: str) -> None:
    with pytest.raises((TokenRefused, Unreadable)):
        unsecured_claims(token)


@pytest.mark.parametrize(
    "token",
    [b"", b"\x01", b"n,,auth=Bearer x", b"n,,\x01x=y\x01\x01", b"n,,\x01auth=Bearer \x01\x01"],
)
def test_a_malformed_message(token: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        bearer().step(token, NOW_MS)


def test_nobody_acts_for_another() -> None:
    with pytest.raises(AuthenticationFailed) as failed:
        bearer().step(message(unsecured(), "bob"), NOW_MS)
    assert "authorization id (bob)" in failed.value.message


# ---- signed


@pytest.fixture(scope="module")
def keys() -> dict[str, Any]:
    return {
        "RS256": rsa.generate_private_key(public_exponent=65537, key_size=2048),
        "ES256": ec.generate_private_key(ec.SECP256R1()),
        "stranger": rsa.generate_private_key(public_exponent=65537, key_size=2048),
    }


@pytest.fixture
def jwks(keys: dict[str, Any], tmp_path: Path) -> Path:
    public = [
        {**json.loads(RSAAlgorithm.to_jwk(keys["RS256"].public_key())), "kid": "r", "alg": "RS256"},
        {**json.loads(ECAlgorithm.to_jwk(keys["ES256"].public_key())), "kid": "e"},
        {"kty": "oct", "k": "c2VjcmV0", "kid": "shared"},
        {"kty": "unheard"},
    ]
    path = tmp_path / "keys of all.json"
    path.write_text(json.dumps({"keys": public}))
    return path


def test_a_token_is_signed_by_a_key_of_the_file(keys: dict[str, Any], jwks: Path) -> None:
    tokens = SignedTokens.of_url(jwks.as_uri())
    for algorithm, key_id in (("RS256", "r"), ("ES256", "e"), ("RS256", None)):
        headers = {"kid": key_id} if key_id else {}
        token = jwt.encode(CLAIMS, keys[algorithm], algorithm=algorithm, headers=headers)
        assert tokens.claims(token) == CLAIMS
        head, body, signature = token.split(".")
        for forged in (
            f"{head}.{part({**CLAIMS, 'sub': 'root'})}.{signature}",
            f"{head}.{body}.",
            token[:-9],
        ):
            with pytest.raises(TokenRefused):
                tokens.claims(forged)


def test_tokens_that_nobody_of_the_file_has_signed(keys: dict[str, Any], jwks: Path) -> None:
    tokens = SignedTokens.of_url(jwks.as_uri())
    shared = jwt.encode(CLAIMS, "secret" * 8, algorithm="HS256", headers={"kid": "shared"})
    stranger = jwt.encode(CLAIMS, keys["stranger"], algorithm="RS256", headers={"kid": "r"})
    for token in (shared, stranger, unsecured(), "", "a.b.c"):
        with pytest.raises(TokenRefused):
            tokens.claims(token)


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"iat": None}, "no claim iat"),
        ({"nbf": NOW_S + 40}, "not valid yet"),
        ({"aud": "others"}, "another audience"),
        ({"aud": None}, "another audience"),
        ({"iss": "https://elsewhere"}, "another issuer"),
        ({"exp": NOW_S - 31}, "has expired"),
    ],
)
def test_claims_of_a_signed_token(claims: dict[str, Any], why: str) -> None:
    rules = ClaimRules(audiences=("kafka",), issuer="https://here", is_signed=True, clock_skew_ms=30_000)
    good = {
        **CLAIMS,
        "aud": ["kafka", "x"],
        "iss": "https://here",
        "nbf": NOW_S + 20,
        "exp": NOW_S - 29,
        "iat": NOW_S - 99,
    }
    assert rules.login(good, NOW_MS).name == "alice"
    with pytest.raises(TokenRefused, match=why):
        rules.login({key: value for key, value in {**good, **claims}.items() if value is not None}, NOW_MS)


@pytest.mark.parametrize("audience", [{}, {"aud": "kafka"}])
def test_a_token_for_any_audience(audience: dict[str, str]) -> None:
    """As with Apache Kafka's sasl.oauthbearer.allow.unverified.audience."""
    assert ClaimRules(is_signed=True).login({**CLAIMS, **audience}, NOW_MS).name == "alice"


def test_files_that_are_no_keys(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text('{"keys": []}')
    (tmp_path / "text").write_text("keys")
    for url, why in (
        ("https://example.org/keys", "file:///PATH"),
        ((tmp_path / "missing").as_uri(), "No such file"),
        ((tmp_path / "text").as_uri(), "no JSON file"),
        ((tmp_path / "empty").as_uri(), "no public key"),
    ):
        with pytest.raises(ValueError, match=why):
            SignedTokens.of_url(url)
