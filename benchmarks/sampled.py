"""kshim in a process that notes what it does every millisecond of processor time.

`python -m benchmarks.sampled FILE serve …` is `kshim serve …`, and writes FILE at its end: a line of JSON for
each stack, [functions, times], the outermost first. What the writing thread takes is noted as what the main
one does meanwhile.
"""

from __future__ import annotations

import json
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

from kshim.cli.main import main

EVERY_S = 0.001
GENERATED = "schemas.generated"
"""What decodes and encodes messages is written at run time, and has no module."""


def run(file: Path) -> None:
    """Run kshim with the arguments of this process. Raises SystemExit."""
    stacks: Counter[tuple[str, ...]] = Counter()

    def look(_: int, frame: FrameType | None) -> None:
        stack = []
        while frame is not None:
            module = frame.f_globals.get("__name__") or GENERATED
            stack.append(f"{module}.{frame.f_code.co_qualname}")
            frame = frame.f_back
        stacks[tuple(reversed(stack))] += 1

    signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S)
    try:
        main()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        file.write_text("".join(json.dumps([stack, times]) + "\n" for stack, times in stacks.items()))


if __name__ == "__main__":
    run(Path(sys.argv.pop(1)))
