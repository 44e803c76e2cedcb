"""A broker's loggers as configs with levels as values (KIP-412). All brokers of the process share them."""

from __future__ import annotations

import logging

from kshim.cluster import Refusal
from kshim.cluster.broker_configs import parse_node_id
from kshim.cluster.config_changes import ConfigChange, ConfigOperation, Operation
from schemas.error_code import ErrorCode

ROOT = "root"
LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
"""Levels by Java's names, which Kafka's tools use. Python has none below DEBUG, so TRACE is DEBUG, too."""


def levels() -> dict[str, str]:
    """Java's name of the level of each logger, by the logger's name; "root" is the root logger."""
    known = logging.root.manager.loggerDict.items()
    loggers = {ROOT: logging.root} | {
        name: logger for name, logger in sorted(known) if isinstance(logger, logging.Logger)
    }
    return {name: _java_level(logger.getEffectiveLevel()) for name, logger in loggers.items()}


def set_level(name: str, level: str | None) -> None:
    """Set the level of a logger that `levels()` names. With None it takes the level of its parent."""
    logging.getLogger(None if name == ROOT else name).setLevel(
        logging.NOTSET if level is None else LEVELS[level]
    )


def _java_level(level: int) -> str:
    """Java's name of the lowest level that is not below `level`."""
    return next((name for name, number in LEVELS.items() if name != "TRACE" and number >= level), "FATAL")


def alter_loggers(change: ConfigChange, node_id: int, *, validate_only: bool) -> Refusal | None:
    """Change levels until the next start, all or none. Returns a refusal, in Kafka's words, or None."""
    asked = parse_node_id(change.resource_name)
    if asked is None:
        fault = f"Node id must be an integer, but it is: {change.resource_name}"
        return Refusal(ErrorCode.INVALID_REQUEST, fault)
    if asked != node_id:
        fault = f"Unexpected node id. Expected {node_id}, but received {asked}"
        return Refusal(ErrorCode.INVALID_REQUEST, fault)
    known = levels()
    for operation in change.operations:
        refusal = _refuse(operation, operation.name in known)
        if refusal is not None:
            return refusal
    if not validate_only:
        for operation in change.operations:
            set_level(operation.name, operation.value if operation.operation == Operation.SET else None)
    return None


def _refuse(operation: ConfigOperation, is_known: bool) -> Refusal | None:
    name = operation.name
    if operation.operation not in list(Operation):
        what = f"Unknown operation type {operation.operation}"
        return Refusal(ErrorCode.INVALID_REQUEST, f"{what} is not allowed for the BROKER_LOGGER resource")
    if operation.operation in (Operation.APPEND, Operation.SUBTRACT):
        what = f"{Operation(operation.operation).name} operation"
        return Refusal(ErrorCode.INVALID_REQUEST, f"{what} is not allowed for the BROKER_LOGGER resource")
    if not is_known:
        return Refusal(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation.operation == Operation.DELETE and name == ROOT:
        fault = f"Removing the log level of the {name} logger is not allowed"
        return Refusal(ErrorCode.INVALID_REQUEST, fault)
    if operation.operation == Operation.SET and operation.value not in LEVELS:
        return Refusal(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {name} to {operation.value} as it is not a supported log level. "
            f"Valid log levels are {', '.join(sorted(LEVELS))}",
        )
    return None
