"""The properties of an authorizer: its class, and the super users, who may do everything."""

from __future__ import annotations

from typing import Final

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def authorizer_class(text: str) -> str:
    """Return `text`: the only known authorizer, or the empty text for none. Raises ValueError, in words for
    the user.
    """
    if text not in ("", STANDARD_AUTHORIZER):
        raise ValueError(f"expected {STANDARD_AUTHORIZER}, or nothing for no authorizer")
    return text


def checked_super_users(text: str) -> str:
    """Return `text` if `super_users` can read it. Raises ValueError, in words for the user."""
    super_users(text)
    return text


def super_users(text: str) -> frozenset[str]:
    """The principals in "User:alice;User:bob". Raises ValueError, in words for the user."""
    users = frozenset(user for part in text.split(";") if (user := part.strip()))
    for user in sorted(users):
        principal_type, _, name = user.partition(":")
        if not (principal_type and name):
            raise ValueError(f"{user}: expected TYPE:NAME;TYPE:NAME, as in User:alice;User:bob")
    return users
