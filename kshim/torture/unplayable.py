"""Says why a program cannot be tortured or judged: it never took part, or left nothing behind. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kshim.torture.evidence import Evidence
from kshim.torture.promises import Output
from kshim.torture.settings import Settings


class Unplayable(Exception):
    """The program cannot be tortured: it never took part. str() says why, and what to do; the first line is a
    sentence, the others are what the program said.
    """


def ended_at_once(name: str, status: int | None, said: Sequence[str]) -> str:
    """Say that an instance has ended before it took part."""
    text = f"{name} ended with status {status} before it had any partition"
    return "\n".join((text, *said)) if said else f"{text}, and said nothing"


def shows_nothing(evidence: Evidence, settings: Settings) -> str | None:
    """Say why a program cannot be judged: it has worked, and left no sign of any record; else None."""
    has_worked = evidence.commits or not settings.has_group
    if evidence.processed is None or evidence.processed or not has_worked:
        return None
    if settings.judged.output is Output.REPORT:
        return "the program printed no line 'processed TOPIC PARTITION OFFSET': does it print and flush one?"
    if evidence.unknown:
        return (
            f"{evidence.unknown[0]}: copy the header kshim-number, or name the number's place with --pointer"
        )
    return f"the program wrote nothing to {settings.output_topic}, which is in KSHIM_OUTPUT"


def never_joined(
    settings: Settings, connected: set[str], others: Sequence[str], has_joined: bool, said: Sequence[str]
) -> str:
    """Say why a program has no partitions: the first line is a sentence, the others are what it said.

    connected: the instances that have sent any noted request. others: the ids of other groups.
    """
    start = f"{settings.start_s:g} s"
    if not settings.has_group:
        text = f"no instance fetched a record of {settings.topic} in {start}: does the program connect to "
        text += "KSHIM_BOOTSTRAP, and read KSHIM_TOPIC from its beginning?"
    elif has_joined:
        text = f"the group {settings.group} has no partition of {settings.topic} after {start}: does the "
        text += "program subscribe to KSHIM_TOPIC?"
    elif others:
        text = f"the program is in group {', '.join(others)}, not in KSHIM_GROUP, which is {settings.group}"
    elif connected - {""}:
        text = (
            f"the program connects, but never joins group {settings.group} (KSHIM_GROUP): it has to subscribe"
        )
    else:
        text = f"the program never joined its group in {start}: does it connect to KSHIM_BOOTSTRAP?"
    return "\n".join((text, *said))
