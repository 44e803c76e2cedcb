"""Reads and changes users in the data directory of a server that does not run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kshim.cli.reactor import import_reactor
from kshim.cluster.scram import ScramUsers
from kshim.cluster.writer import Writer
from kshim.control.commands import SteeringError, run
from kshim.control.users import UserSteering
from kshim.storage.embedded import EmbeddedStore
from kshim.storage.interfaces import StorageError

Question = tuple[str, *tuple[object, ...]]
"""The name of a command of UserSteering, followed by its arguments."""


def ask_data_dir(data_dir: Path, questions: Sequence[Question]) -> list[object]:
    """Run commands, and return their results. Call it once per process, as Twisted's reactor can run only
    once.

    Raises ClickException.
    """
    if not data_dir.is_dir() and all(command != "put-user" for command, *_ in questions):
        raise click.ClickException(f"there is no data directory {data_dir}; name it with --data-dir")
    reactor = import_reactor()
    found: list[list[object] | Failure] = []

    def begin() -> None:
        answers = Deferred.fromCoroutine(_answers(EmbeddedStore(data_dir, reactor), questions))
        answers.addBoth(found.append).addBoth(lambda _: reactor.stop())

    reactor.callWhenRunning(begin)
    reactor.run()
    (outcome,) = found
    if isinstance(outcome, Failure):
        if isinstance(outcome.value, SteeringError | StorageError):
            raise click.ClickException(str(outcome.value))
        outcome.raiseException()
    return outcome


async def _answers(store: EmbeddedStore, questions: Sequence[Question]) -> list[object]:
    """Open the store, and run the commands. Raises SteeringError, StorageError."""
    store.open()
    try:
        writer = Writer(store.metadata)
        writer.start()
        users = ScramUsers(writer)
        users.read(store.metadata)
        commands = UserSteering(users).commands()
        answers = []
        for command, *arguments in questions:
            answer = run(commands, command, arguments)
            answers.append(await answer if isinstance(answer, Deferred) else answer)
        return answers
    finally:
        await store.close()
