"""The page that `kshim torture --page` saves, in a real browser: everybody can read it, wide or narrow.

KSHIM_SCREENSHOTS=docs/pages draws the pictures of docs/torture.md anew.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver

from integration.page.look import Look
from integration.torture.playing import program, tortured

WIDE, NARROW = 1280, 390
PICTURE = 840
SEED = "1"


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a program that commits before it processes."""
    path = tmp_path_factory.mktemp("torture") / "story.html"
    options = ("-q", "--report", "--seed", SEED, "--runs", "5", "--page", str(path))
    done = tortured(program("kafka_python", "commit-first"), *options)
    assert done.returncode == 1, done.stdout + done.stderr
    path.write_text(path.read_text().replace(sys.executable, "python"))
    return path


@pytest.fixture
def look(driver: webdriver.Chrome) -> Iterator[Look]:
    look = Look(driver, "file://")
    yield look
    look.check()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_story_can_be_read_by_everybody(look: Look, story: Path, width: int, scheme: str) -> None:
    look.show(width, scheme)
    look.driver.get(story.as_uri())
    assert "at-least-once is broken" in look.text("main")
    assert look.overflow() == 0
    assert look.violations() == []
    if directory := os.environ.get("KSHIM_SCREENSHOTS"):
        narrow, dark = "-narrow" if width == NARROW else "", "-dark" if scheme == "dark" else ""
        look.draw(Path(directory, f"torture{narrow}{dark}.png"), PICTURE)
