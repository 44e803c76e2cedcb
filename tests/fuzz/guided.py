"""The search with atheris, if it is installed: libFuzzer, guided by which code an input reaches.

libFuzzer ends its process, so that each target has a process of its own. `python -m tests.fuzz.guided` is
that process.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random


def run_guided(name: str, executions: int, seed: int, directory: Path) -> tuple[int, int, int]:
    """Number of executions, of inputs kept, and of findings; a finding is printed."""
    from tests.fuzz.targets import TARGETS

    with tempfile.TemporaryDirectory(prefix="kshim-fuzz-") as corpus:
        for index, data in enumerate(TARGETS[name].seeds(Random(f"{name} {seed}"))):
            (Path(corpus) / f"seed-{index}").write_bytes(data)
        command = [sys.executable, "-m", "tests.fuzz.guided", name, str(directory)]
        options = [f"-runs={executions}", f"-seed={seed + 1}", "-max_len=65536", "-print_final_stats=1"]
        ended = subprocess.run([*command, *options, corpus], capture_output=True, text=True, errors="replace")
        kept = len(list(Path(corpus).iterdir()))
    executed = re.search(r"stat::number_of_executed_units: (\d+)", ended.stderr)
    if ended.returncode or executed is None:
        print(ended.stderr[-5000:])
    print(ended.stdout, end="")
    crashes = int(ended.returncode != 0)
    return int(executed[1]) if executed else 0, kept, ended.stdout.count(FOUND) + crashes


FOUND = "\nfound in "


def main() -> None:
    """Run libFuzzer on the target of the first argument; findings go into the directory of the second."""
    import atheris

    with atheris.instrument_imports(include=["schemas", "kshim"]):
        from schemas.compiled.text import Text
        from tests.fuzz.__main__ import told
        from tests.fuzz.target import examine, examine_memory
        from tests.fuzz.targets import TARGETS

    finish = Text.finish
    # The compiled readers and writers are made while the target runs.
    Text.finish = lambda *arguments: atheris.instrument_func(finish(*arguments))
    _, name, directory, *options = sys.argv
    target = TARGETS[name]
    places = set()
    executions = 0

    def one_input(data: bytes) -> None:
        nonlocal executions
        executions += 1
        found = examine(target, data).finding
        if found is None and executions % 500 == 0:
            found = examine_memory(target, data)
        if found is not None and found.place not in places:
            places.add(found.place)
            print(f"{FOUND}{name}: {found.place}")
            told(found, Path(directory))

    atheris.Setup([sys.argv[0], *options], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
