"""sasl.jaas.config, as Kafka's own parser reads it."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshim.configs.jaas import LoginModule, parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("options", "users"),
    [
        ('user_alice="wonderland"', {"alice": "wonderland"}),
        ("user_alice='it\\'s'", {"alice": "it's"}),
        ('user_alice = "a;b=c"\n user_bob="//no comment"', {"alice": "a;b=c", "bob": "//no comment"}),
        ('user_alice="a" /* and */ user_bob="b" // the last\n', {"alice": "a", "bob": "b"}),
        ("user_alice=word-with_signs$.x", {"alice": "word-with_signs$.x"}),
        ('user_alice="first" user_alice="second"', {"alice": "second"}),
        ('"user_a b"="quoted key"', {"a b": "quoted key"}),
        ('user_alice="\\t\\101\\\\\\""', {"alice": '\tA\\"'}),
        ('user_größe="Ünïcode€"', {"größe": "Ünïcode€"}),
        ('username="admin" password="x" user_admin="x"', {"admin": "x"}),
        ("", {}),
    ],
)
def test_users(options: str, users: dict[str, str]) -> None:
    module = parse_jaas(f"{PLAIN} REQUIRED {options};")
    assert module.name == PLAIN
    assert module.users() == users


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "expected one login module, but there are 0"),
        (f"{PLAIN} required; {PLAIN} required;", "expected one login module, but there are 2"),
        (PLAIN, "after the name"),
        (f'{PLAIN} user_alice="s3cret";', "after the name"),
        (f'{PLAIN} required user_alice="s3cret"', "a semicolon"),
        (f'{PLAIN} required user_alice "s3cret";', "as option 1"),
        (f'{PLAIN} required user_alice="a" user_bob=12345;', "as option 2"),
        (f'{PLAIN} required user_alice="s3cret', "a semicolon"),
        (f'{PLAIN} required user_alice="s3\ncret";', "as option 2"),
    ],
)
def test_a_fault_names_no_password(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match="expected") as fault:
        parse_jaas(text)
    assert expected in str(fault.value)
    assert not any(secret in str(fault.value) for secret in ("s3cret", "12345", "cret"))


def test_a_password_is_not_in_the_repr() -> None:
    assert "wonderland" not in repr(parse_jaas(f'{PLAIN} required user_alice="wonderland";'))


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert isinstance(parse_jaas(text), LoginModule)


@given(st.text(alphabet=st.characters(exclude_characters='"\\\r\n', exclude_categories=["Cs"])))
def test_any_password_can_be_quoted(password: str) -> None:
    assert parse_jaas(f'{PLAIN} required user_alice="{password}";').users() == {"alice": password}
