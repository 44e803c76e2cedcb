"""kshim as a client of its own mechanisms."""

from __future__ import annotations

import pytest

from kshim.authentication.client import MAX_ITERATIONS, Exchange, NotOurServer, OAuthBearer, Plain, Scram
from kshim.authentication.mechanism import AuthenticationFailed, Login, Mechanism
from kshim.authentication.oauthbearer import OAuthBearer as OAuthBearerServer
from kshim.authentication.plain import Plain as PlainServer
from kshim.authentication.scram import Keys
from kshim.authentication.scram import Scram as ScramServer
from kshim.authentication.scram_credential import ScramMechanism
from kshim.authentication.scram_keys import new_credential, salted_password
from kshim.authentication.tokens import ClaimRules, unsecured_claims
from kshim.authentication.unsecured_token import new_token
from kshim.configs.values import Secret

USER, PASSWORD = "al=i,ce", Secret("wonder=l,and é")
NOW_S = 1_700_000_000


def log_in(exchange: Exchange, server: Mechanism) -> Login | None:
    """The principal that has logged in. Raises the errors of either side."""
    token: bytes | None = exchange.first()
    login = None
    while token is not None:
        answer = server.step(token, NOW_S * 1000)
        login = answer.login
        token = exchange.answer(answer.token)
    return login


def scram_server(mechanism: ScramMechanism, password: str = PASSWORD, iterations: int = 4096) -> ScramServer:
    salted = salted_password(mechanism, password, b"salt", iterations)
    keys = Keys(new_credential(mechanism, salted, b"salt", iterations), is_known=True)
    return ScramServer(mechanism, lambda _: keys, lambda: "servers")


def test_plain() -> None:
    assert log_in(Plain(USER, PASSWORD), PlainServer({USER: PASSWORD})) == Login(USER)
    with pytest.raises(AuthenticationFailed):
        log_in(Plain(USER, Secret("x")), PlainServer({USER: PASSWORD}))


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_scram(mechanism: ScramMechanism) -> None:
    assert log_in(Scram(mechanism, USER, PASSWORD), scram_server(mechanism)) == Login(USER)
    with pytest.raises(AuthenticationFailed):
        log_in(Scram(mechanism, USER, Secret("x")), scram_server(mechanism))


def test_a_server_that_does_not_know_the_password_is_found_out() -> None:
    client = Scram(ScramMechanism.SHA_256, USER, PASSWORD, new_nonce=lambda: "ours")
    client.first()
    assert client.answer(b"r=oursservers,s=c2FsdA==,i=4096") is not None
    with pytest.raises(NotOurServer, match="its signature is wrong"):
        client.answer(b"v=AAAA")


@pytest.mark.parametrize(
    "challenge",
    [
        b"",
        b"r=ours,s=c2FsdA==,i=4096",
        b"r=others,s=c2FsdA==,i=4096",
        b"r=oursservers,s=c2FsdA=,i=4096",
        b"r=oursservers,s=c2FsdA==,i=1",
        b"r=oursservers,s=c2FsdA==,i=%d" % (MAX_ITERATIONS + 1),
        b"r=oursservers,s=c2FsdA==,i=" + b"9" * 400,
        b"\xff" * 60_000,
    ],
)
def test_a_challenge_that_no_server_would_send(challenge: bytes) -> None:
    client = Scram(ScramMechanism.SHA_512, USER, PASSWORD, new_nonce=lambda: "ours")
    client.first()
    with pytest.raises(NotOurServer):
        client.answer(challenge)


def test_a_delegation_token_is_announced() -> None:
    client = Scram(ScramMechanism.SHA_256, "t", PASSWORD, is_delegation_token=True, new_nonce=lambda: "n")
    assert client.first() == b"n,,n=t,r=n,tokenauth=true"


def bearer_server() -> OAuthBearerServer:
    rules = ClaimRules(scope_claim="may", required_scope=("read",))
    return OAuthBearerServer(lambda token, now_ms: rules.login(unsecured_claims(token), now_ms))


def test_an_unsecured_token_has_the_claims_of_the_options() -> None:
    options = {
        "unsecuredLoginStringClaim_sub": "alice",
        "unsecuredLoginListClaim_may": ",read,write",
        "unsecuredLoginNumberClaim_n": "1",
        "unsecuredLoginLifetimeSeconds": "60",
        "unsecuredLoginExtension_x": "y",
    }
    token = new_token({name: Secret(text) for name, text in options.items()}, NOW_S)
    assert unsecured_claims(token) == {
        **{"sub": "alice", "may": ["read", "write"], "n": 1},
        **{"iat": NOW_S, "exp": NOW_S + 60},
    }
    login = log_in(OAuthBearer(token, {"x": "y"}), bearer_server())
    assert login == Login("alice", (NOW_S + 60) * 1000)


def test_a_broker_takes_a_token_in_the_millisecond_in_which_it_was_made() -> None:
    """A broker's clock has no microseconds."""
    now_s = 1_700_000_000.1239
    token = new_token({"unsecuredLoginStringClaim_sub": Secret("alice")}, now_s)
    assert ClaimRules().login(unsecured_claims(token), int(now_s * 1000)).name == "alice"


def test_a_refused_token_is_given_up() -> None:
    token = new_token({"unsecuredLoginStringClaim_sub": Secret("alice")}, NOW_S)
    with pytest.raises(AuthenticationFailed, match="it lacks the scope"):
        log_in(OAuthBearer(token, {}), bearer_server())
