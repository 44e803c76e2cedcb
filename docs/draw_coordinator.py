"""Draw the state diagram and the tables of docs/coordinator.md from `kshim/coordination/groups/states.py`.

python docs/draw_coordinator.py        rewrites the text between the markers of docs/coordinator.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from kshim.coordination.groups.states import ANSWERS, TRANSITIONS, Action, State
from schemas.error_code import ErrorCode

PAGE = Path(__file__).with_name("coordinator.md")


def diagram() -> str:
    """The states and their transitions as Mermaid text, without Dead, which follows every state."""
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> Empty"]
    for state, following in TRANSITIONS.items():
        for next_state in following:
            if State.DEAD not in (state, next_state):
                lines.append(f"    {state} --> {next_state}")
    return "\n".join([*lines, "```"])


def transitions() -> str:
    """A row for each legal transition."""
    rows = ["| From | To | When |", "|---|---|---|"]
    for state, following in TRANSITIONS.items():
        rows += [f"| {state} | {next_state} | {when} |" for next_state, when in following.items()]
    return "\n".join(rows)


def answers() -> str:
    """A row for each request, a column for each state."""
    rows = ["| Request | " + " | ".join(State) + " |", "|---" * (len(State) + 1) + "|"]
    for api_key, by_state in ANSWERS.items():
        name = api_key.name.title().replace("_", "")
        rows.append(f"| {name} | " + " | ".join(_answer(by_state[state]) for state in State) + " |")
    return "\n".join(rows)


def _answer(answer: ErrorCode | Action) -> str:
    return answer.value if isinstance(answer, Action) else answer.name


def drawn(page: str, draws: Sequence[Callable[[], str]] = (diagram, transitions, answers)) -> str:
    """`page` with each block between `<!-- NAME -->` and `<!-- /NAME -->` redrawn."""
    for draw in draws:
        begin, end = f"<!-- {draw.__name__} -->\n", f"\n<!-- /{draw.__name__} -->"
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = f"{before}{begin}{draw()}{end}{after}"
    return page


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text()))
