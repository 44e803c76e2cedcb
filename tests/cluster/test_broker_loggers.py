"""A broker's loggers as configs. The facts are Apache Kafka 4.2's."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from kshim.api.list_config_resources import list_config_resources
from schemas.error_code import ErrorCode
from schemas.messages.list_config_resources import ListConfigResourcesRequest
from tests.api.configs import APPEND, DELETE, SET, SUBTRACT, alter, described, replace
from tests.api.harness import ask, new_broker

LOGGER, OF_LOGGER = 8, 6
NAME = "kshim.tested"
DONE = [(ErrorCode.NONE, None)]


@pytest.fixture(autouse=True)
def logger() -> Iterator[logging.Logger]:
    logger, level = logging.getLogger(NAME), logging.root.level
    logger.setLevel(logging.NOTSET)
    yield logger
    logger.setLevel(logging.NOTSET)
    logging.root.setLevel(level)


@pytest.mark.parametrize(
    ("level", "number"),
    [("DEBUG", 10), ("INFO", 20), ("WARN", 30), ("ERROR", 40), ("FATAL", 50)],
)
def test_a_level_is_changed_and_forgotten(logger: logging.Logger, level: str, number: int) -> None:
    broker = new_broker()
    assert alter(broker, (LOGGER, "1", [(NAME, SET, level)]), validate_only=True) == DONE
    assert logger.level == logging.NOTSET
    assert alter(broker, (LOGGER, "1", [(NAME, SET, level)])) == DONE
    assert logger.level == number
    config = described(broker, LOGGER, "1")[NAME]
    assert (config.value, config.config_source, config.config_type) == (level, OF_LOGGER, 0)
    assert (config.read_only, config.is_sensitive, config.synonyms) == (False, False, ())
    assert alter(broker, (LOGGER, "1", [(NAME, DELETE, None)])) == DONE
    assert logger.level == logging.NOTSET


def test_the_root_and_what_inherits_from_it() -> None:
    broker = new_broker()
    assert alter(broker, (LOGGER, "1", [("root", SET, "TRACE")])) == DONE
    found = described(broker, LOGGER, "1")
    assert (found["root"].value, found[NAME].value) == ("DEBUG", "DEBUG")


@pytest.mark.parametrize(
    ("broker_name", "logger_name", "operation", "level", "error", "message"),
    [
        ("1", "no.such", SET, "INFO", ErrorCode.INVALID_CONFIG, "Logger no.such does not exist!"),
        ("1", "no.such", DELETE, None, ErrorCode.INVALID_CONFIG, "Logger no.such does not exist!"),
        (
            *("1", "root", SET, "LOUD", ErrorCode.INVALID_CONFIG),
            "Cannot set the log level of root to LOUD as it is not a supported log level. "
            "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN",
        ),
        (
            *("1", "root", DELETE, None, ErrorCode.INVALID_REQUEST),
            "Removing the log level of the root logger is not allowed",
        ),
        (
            *("1", NAME, APPEND, "INFO", ErrorCode.INVALID_REQUEST),
            "APPEND operation is not allowed for the BROKER_LOGGER resource",
        ),
        (
            *("1", NAME, SUBTRACT, "INFO", ErrorCode.INVALID_REQUEST),
            "SUBTRACT operation is not allowed for the BROKER_LOGGER resource",
        ),
        (
            *("1", NAME, 7, "INFO", ErrorCode.INVALID_REQUEST),
            "Unknown operation type 7 is not allowed for the BROKER_LOGGER resource",
        ),
        ("x", NAME, SET, "INFO", ErrorCode.INVALID_REQUEST, "Node id must be an integer, but it is: x"),
        ("2", NAME, SET, "INFO", ErrorCode.INVALID_REQUEST, "Unexpected node id. Expected 1, but received 2"),
    ],
)
def test_refusals(
    logger: logging.Logger,
    broker_name: str,
    logger_name: str,
    operation: int,
    level: str | None,
    error: ErrorCode,
    message: str,
) -> None:
    changes = [(NAME, SET, "ERROR"), (logger_name, operation, level)][logger_name == NAME :]
    assert alter(new_broker(), (LOGGER, broker_name, changes)) == [(error, message)]
    assert logger.level == logging.NOTSET


def test_the_older_request_knows_no_loggers() -> None:
    assert replace(new_broker(), LOGGER, "1", []) == (ErrorCode.INVALID_REQUEST, "Unknown resource type 8")


def test_every_broker_has_loggers() -> None:
    answer = ask(
        list_config_resources, new_broker(brokers=2), ListConfigResourcesRequest(resource_types=(8,)), 1
    )
    assert [(each.resource_type, each.resource_name) for each in answer.config_resources] == [
        (8, "1"),
        (8, "2"),
    ]
