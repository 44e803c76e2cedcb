"""DescribeClientQuotas without quotas: a senseless filter is refused as in Kafka 4.2."""

from __future__ import annotations

import pytest

from kshim.api.describe_client_quotas import describe_client_quotas
from schemas.error_code import ErrorCode
from schemas.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from tests.api.harness import ask, new_broker

EXACT, DEFAULT, SPECIFIED = range(3)
Component = tuple[str, int, str | None]


def describe(*components: Component) -> tuple[int, str | None, tuple[object, ...] | None]:
    request = DescribeClientQuotasRequest(
        components=tuple(
            ComponentData(entity_type=entity_type, match_type=match_type, match=match)
            for entity_type, match_type, match in components
        ),
        strict=False,
    )
    answer = ask(describe_client_quotas, new_broker(), request, 1)
    return answer.error_code, answer.error_message, answer.entries


@pytest.mark.parametrize(
    "components",
    [
        (),
        (("user", EXACT, "x"),),
        (("user", DEFAULT, None), ("client-id", SPECIFIED, None)),
        (("ip", EXACT, "x"),),
    ],
)
def test_there_are_no_quotas(components: tuple[Component, ...]) -> None:
    assert describe(*components) == (0, "", ())


@pytest.mark.parametrize(
    ("components", "message"),
    [
        ((("", SPECIFIED, None),), "Invalid empty entity type."),
        ((("user", 5, None),), "Unknown match type 5"),
        (
            (("user", EXACT, None),),
            "Request specified MATCH_TYPE_EXACT, but set match string to null.",
        ),
        (
            (("user", DEFAULT, "x"),),
            "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.",
        ),
        (
            (("user", EXACT, "x"), ("user", EXACT, "y")),
            "Entity type user cannot appear more than once in the filter.",
        ),
        (
            (("ip", SPECIFIED, None), ("user", SPECIFIED, None)),
            "Invalid entity filter component combination. IP filter component should not be used with user "
            "or clientId filter component.",
        ),
    ],
)
def test_filters_that_make_no_sense(components: tuple[Component, ...], message: str) -> None:
    assert describe(*components) == (ErrorCode.INVALID_REQUEST, message, None)


@pytest.mark.parametrize(
    "component", [("nope", SPECIFIED, None), ("nope", SPECIFIED, "x"), ("nope", 5, None)]
)
def test_an_unknown_entity_type_is_found_before_what_is_asked_of_it(component: Component) -> None:
    expected = (ErrorCode.UNSUPPORTED_VERSION, "Unsupported entity type nope", None)
    assert describe(component) == expected
