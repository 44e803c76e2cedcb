"""`python -m build` makes a source distribution and, from that, a wheel; a fresh environment installs it."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from integration.support.readme import ROOT
from kshim import __version__

ROOMS = ("kshim", "schemas")
NAME = f"kshim-{__version__}"
TIMEOUT_S = 900
TEST = """
def test_it(kshim, kshim_topic):
    kshim.produce(kshim_topic, ["a"], compression="zstd")
    assert [record.value for record in kshim.consume(kshim_topic, 1)] == [b"a"]
"""

LIST_ASSETS = """
from importlib.resources import files
print(*(each.name for each in files("kshim.http.assets").iterdir()))
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command, which has to succeed, without this checkout on its path. Return its output."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def packaged() -> set[str]:
    """The files that git keeps of the packages."""
    return set(run("git", "ls-files", *ROOMS, cwd=ROOT).split())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with both distributions, built from what git keeps."""
    base = tmp_path_factory.mktemp("build")
    source = base / "source"
    source.mkdir()
    top = ("setup.cfg", "pyproject.toml", "README.md", "LICENSE")
    kept = run("git", "ls-files", "-z", "--", *ROOMS, *top, cwd=ROOT)
    for name in filter(None, kept.split("\0")):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", base / "dist", source, cwd=base)
    return base / "dist"


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh environment that has the wheel and pytest."""
    directory = tmp_path_factory.mktemp("fresh")
    venv.create(directory, with_pip=True)
    (wheel,) = built.glob("*.whl")
    run(directory / "bin" / "pip", "install", "--quiet", wheel, "pytest", cwd=directory)
    return directory / "bin"


def test_the_wheel_has_every_file_of_the_packages(built: Path) -> None:
    with zipfile.ZipFile(built / f"{NAME}-py3-none-any.whl") as wheel:
        files = {name for name in wheel.namelist() if not name.startswith(f"{NAME}.dist-info/")}
        metadata = wheel.read(f"{NAME}.dist-info/METADATA").decode()
    assert files == packaged()
    assert "Requires-Python: >=3.11" in metadata
    assert "# kshim" in metadata


def test_the_source_distribution_has_them_too(built: Path) -> None:
    with tarfile.open(built / f"{NAME}.tar.gz") as archive:
        files = {name.removeprefix(f"{NAME}/") for name in archive.getnames()}
    assert packaged() | {"LICENSE", "README.md", "pyproject.toml", "setup.cfg"} <= files


def test_a_fresh_environment_runs_it(installed: Path, tmp_path: Path) -> None:
    assert run(installed / "kshim", "--version", cwd=tmp_path) == f"kshim {__version__}\n"
    origin = run(installed / "python", "-c", "import kshim; print(kshim.__file__)", cwd=tmp_path)
    assert Path(origin.strip()).is_relative_to(installed.parent)


def test_its_pytest_plugin_starts_a_server(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    assert "1 passed" in run(installed / "python", "-m", "pytest", "-q", cwd=tmp_path)


def test_the_page_has_its_assets(installed: Path, tmp_path: Path) -> None:
    found = run(installed / "python", "-c", LIST_ASSETS, cwd=tmp_path)
    assert {"page.css", "page.js"} <= set(found.split())
