"""A server with groups on it, and a browser: Debian's Chromium, without a screen."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from integration.page.look import Look
from integration.page.world import World
from integration.support.server import Server

OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"),
    *("--force-color-profile=srgb", "--lang=en"),
)


def tool(*names: str) -> str:
    """The path of the first of these programs that is there. Without one a test is skipped, also in CI."""
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip(f"{names[0]} is not installed")
    return found


@pytest.fixture(scope="session")
def driver() -> Iterator[webdriver.Chrome]:
    browser, driver = tool("chromium", "google-chrome"), tool("chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for option in OPTIONS:
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    yield chrome
    chrome.quit()


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    options = ["--http", "127.0.0.1:0", "--set", "offsets.topic.num.partitions=2"]
    server = Server(tmp_path_factory.mktemp("page") / "data", options).start()
    world = World(server)
    yield world
    world.close()
    assert server.stop() == 0, server.report()


@pytest.fixture
def look(driver: webdriver.Chrome, world: World) -> Iterator[Look]:
    """The page in a browser. At the end it has had no errors, and has loaded nothing from another host."""
    look = Look(driver, world.http)
    yield look
    look.check()
