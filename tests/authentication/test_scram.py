"""SCRAM: the exchange of RFC 7677, what is refused, and unknown users, which look like others."""

from __future__ import annotations

import base64
import re

import pytest

from kshim.authentication.mechanism import Answer, AuthenticationFailed, Login, Unreadable
from kshim.authentication.plain import FOR_ANOTHER
from kshim.authentication.scram import Keys, Scram
from kshim.authentication.scram_credential import ScramCredential, ScramMechanism
from kshim.authentication.scram_keys import invented_credential, new_credential, new_salt, salted_password

NONCE, SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
FIRST = f"n,,n=user,r={NONCE}".encode()
CHALLENGE = f"r={NONCE}{SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
WITHOUT_PROOF = f"c=biws,r={NONCE}{SERVER_NONCE}"
FINAL = f"{WITHOUT_PROOF},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
VERIFIER = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
SHA_256, SHA_512 = ScramMechanism


def credential(password: str = "pencil") -> ScramCredential:
    return new_credential(SHA_256, salted_password(SHA_256, password, SALT, 4096), SALT, 4096)


def exchange(*, password: str = "pencil", is_known: bool = True) -> Scram:
    return Scram(SHA_256, lambda name: Keys(credential(password), is_known), lambda: SERVER_NONCE)


def test_the_exchange_of_the_rfc() -> None:
    scram = exchange()
    assert scram.step(FIRST, 0) == Answer(CHALLENGE)
    assert scram.step(FINAL, 0) == Answer(VERIFIER, Login("user"))


@pytest.mark.parametrize(
    "scram", [exchange(password="pen"), exchange(is_known=False)], ids=["wrong", "unknown"]
)
def test_a_wrong_password_fails_as_an_unknown_user(scram: Scram) -> None:
    assert scram.step(FIRST, 0) == Answer(CHALLENGE)
    with pytest.raises(AuthenticationFailed) as failed:
        scram.step(FINAL, 0)
    assert (str(failed.value), failed.value.message) == ("unknown user or wrong password", "")


@pytest.mark.parametrize(
    ("first", "told"),
    [
        ("", ""),
        (f"y,,n=user,r={NONCE}", ""),
        (f"p=tls-unique,,n=user,r={NONCE}", ""),
        ("n,,n=user", ""),
        ("n,,n=user,r=", ""),
        (f"n,,n=us=er,r={NONCE}", ""),
        (f"n,,n=user,r={NONCE},", ""),
        (f"n,,n=user,r={NONCE},tokenauth=true", ""),
        (f"n,a=bob,n=user,r={NONCE}", FOR_ANOTHER),
    ],
)
def test_a_first_message_is_refused(first: str, told: str) -> None:
    with pytest.raises(AuthenticationFailed) as failed:
        exchange().step(first.encode(), 0)
    assert failed.value.message == told


@pytest.mark.parametrize(
    "final",
    [b"", FIRST, b"c=biws,r=x,p=" + FINAL[-44:], FINAL.replace(b"p=d", b"p=e"), FINAL[:-3], FINAL + b"\0"],
)
def test_a_final_message_is_refused(final: bytes) -> None:
    scram = exchange()
    scram.step(FIRST, 0)
    with pytest.raises(AuthenticationFailed):
        scram.step(final, 0)


def test_a_proof_of_another_length_cannot_be_read() -> None:
    scram = exchange()
    scram.step(FIRST, 0)
    with pytest.raises(Unreadable):
        scram.step(f"{WITHOUT_PROOF},p=AAAA".encode(), 0)


def test_a_name_may_have_commas_and_equals_signs() -> None:
    scram = exchange()
    scram.step(f"n,,n=a=2Cb=3D2C,r={NONCE}".encode(), 0)
    assert scram.user == "a,b=2C"


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_an_unknown_user_has_a_credential_that_looks_like_others_and_stays_the_same(
    mechanism: ScramMechanism,
) -> None:
    found = {name: invented_credential(mechanism, b"secret", name, 8192) for name in ("a", "b")}
    assert found["a"] == invented_credential(mechanism, b"secret", "a", 8192)
    assert found["a"] != found["b"]
    assert found["a"] != invented_credential(mechanism, b"other", "a", 8192)
    real = new_credential(mechanism, salted_password(mechanism, "x", b"salt", 4096), new_salt(), 8192)
    for each in (*found.values(), real):
        assert re.fullmatch(rb"[0-9a-z]{20,26}", each.salt)
        assert len(each.stored_key) == len(real.stored_key)
        assert each.iterations == 8192


def test_no_repr_has_keys() -> None:
    assert repr(credential()) == "ScramCredential()"


def test_the_numbers_of_kip_554() -> None:
    assert [(each.number, each.value) for each in ScramMechanism] == [
        (1, "SCRAM-SHA-256"),
        (2, "SCRAM-SHA-512"),
    ]
    assert [ScramMechanism.numbered(number) for number in (0, 1, 2, 3)] == [None, SHA_256, SHA_512, None]


def test_a_message_that_is_too_large_is_not_looked_into() -> None:
    with pytest.raises(AuthenticationFailed, match="more than 16384 bytes"):
        exchange().step(FIRST + b",x=" + b"y" * 16384, 0)
