"""UpdateFeatures: what is refused is what Kafka 4.2 refuses; what is changed is announced, and durable."""

from __future__ import annotations

from typing import Any

import pytest

from kshim.answering import Broker
from kshim.api.api_versions import api_versions
from kshim.api.update_features import update_features
from kshim.storage.memory import MemoryStore
from schemas.error_code import ErrorCode
from schemas.messages.api_versions import ApiVersionsRequest
from schemas.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from tests.api.harness import PENDING, HeldStore, ask, context, later, new_broker, result

T = "transaction.version"
UNKNOWN, UPGRADE, SAFE, UNSAFE = range(4)
DONE = UpdateFeaturesResponse(error_message=None)
Update = tuple[str, int, int]


def updating(*updates: Update, validate_only: bool = False) -> UpdateFeaturesRequest:
    keys = (
        FeatureUpdateKey(feature=n, max_version_level=level, upgrade_type=kind) for n, level, kind in updates
    )
    return UpdateFeaturesRequest(feature_updates=tuple(keys), validate_only=validate_only)


def update(broker: Broker, *updates: Update, validate_only: bool = False) -> Any:
    response = ask(update_features, broker, updating(*updates, validate_only=validate_only), 2)
    return response.error_code, response.error_message


def announced(broker: Broker) -> tuple[list[tuple[str, int, int]], int]:
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    response = ask(api_versions, broker, request, 4)
    features = [it for it in response.finalized_features if it.name == T]
    found = [(it.name, it.min_version_level, it.max_version_level) for it in features]
    return found, response.finalized_features_epoch


def test_a_change_is_announced_and_durable_and_its_epoch_is_later() -> None:
    store = MemoryStore()
    broker = new_broker(store)
    assert announced(broker)[0] == [(T, 2, 2)]
    epochs = [announced(broker)[1]]
    for level, kind in ((1, SAFE), (0, UNSAFE), (1, UPGRADE)):
        assert update(broker, (T, level, kind)) == (ErrorCode.NONE, None)
        expected = [(T, level, level)] if level else []
        for each in (broker, new_broker(store)):
            features, epoch = announced(each)
            assert (features, epoch > epochs[-1]) == (expected, True)
        epochs.append(epoch)


def test_a_dry_run_and_what_changes_nothing() -> None:
    broker = new_broker()
    before = announced(broker)
    assert update(broker, (T, 1, SAFE), validate_only=True) == (ErrorCode.NONE, None)
    for kind in (UPGRADE, SAFE, UNSAFE):
        assert update(broker, (T, 2, kind)) == (ErrorCode.NONE, None)
    assert update(broker) == (ErrorCode.NONE, None)
    assert announced(broker) == before


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        ((T, 1, UPGRADE), "Can't downgrade the version of this feature without setting the upgrade type to "
         "either safe or unsafe downgrade."),
        ((T, 3, UPGRADE), "Local controller 1 only supports versions 0-2"),
        ((T, 3, SAFE), "Local controller 1 only supports versions 0-2"),
        ((T, -1, SAFE), "A feature version cannot be less than 0."),
        ((T, -1, UNKNOWN), "The controller does not support the given upgrade type."),
        ((T, 2, 4), "The controller does not support the given upgrade type."),
        (("no.such", 1, UPGRADE), "Local controller 1 does not support this feature."),
        (("no.such", 0, SAFE), "Feature no.such not found."),
        (("share.version", 1, UPGRADE), "Local controller 1 does not support this feature."),
        (("group.version", 2, UPGRADE), "Local controller 1 only supports versions 0-1"),
    ],
)  # fmt: skip
def test_one_refusal_refuses_all(refused: Update, why: str) -> None:
    broker = new_broker(node_id=1)
    before = announced(broker)
    name, level, _ = refused
    told = (
        "The update failed for all features since the following feature had an error: "
        f"Invalid update version {level} for feature {name}. {why}"
    )
    updates = [refused] if name == T else [(T, 1, SAFE), refused]
    assert update(broker, *updates) == (ErrorCode.INVALID_UPDATE_VERSION, told)
    assert announced(broker) == before


def test_a_higher_version_is_no_downgrade() -> None:
    broker = new_broker()
    assert update(broker, (T, 0, SAFE))[0] == ErrorCode.NONE
    error, message = update(broker, (T, 1, SAFE))
    assert (error, message[-31:]) == (95, "Can't downgrade to a newer version."[-31:])


def test_of_two_updates_of_one_feature_the_last_counts_and_both_are_answered() -> None:
    broker = new_broker()
    answer = ask(update_features, broker, updating((T, 0, SAFE), (T, 1, SAFE)), 1)
    result_of_t = UpdatableFeatureResult(feature=T, error_message="NONE")
    assert answer == UpdateFeaturesResponse(error_message=None, results=(result_of_t,) * 2)
    assert announced(broker)[0] == [(T, 1, 1)]


def test_an_update_is_answered_when_it_is_durable() -> None:
    store = HeldStore()
    broker = new_broker(store)
    answer = update_features(broker, context(2), updating((T, 1, SAFE)))
    assert (result(answer), announced(broker)[0]) == (PENDING, [(T, 2, 2)])
    store.release_all()
    assert announced(broker)[0] == [(T, 1, 1)]


def test_an_update_that_cannot_be_stored() -> None:
    store = HeldStore()
    broker = new_broker(store)
    before = announced(broker)
    answer = later(update_features(broker, context(2), updating((T, 1, SAFE))))
    store.fail()
    assert result(answer).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert announced(broker) == before
