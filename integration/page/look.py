"""A browser's window on one server, and what must be true of each page in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from axe_core_python.selenium import Axe
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from integration.support.awaiting import wait_until

PATIENCE_S = 10.0
WIDE, NARROW = 1100, 360
MOST_PIXELS = 1300
"""Of a picture's height."""
LOCAL = frozenset(("data", "blob", "about", "chrome"))


class Look:
    """One window."""

    def __init__(self, driver: webdriver.Chrome, base: str) -> None:
        self.driver, self.base = driver, base
        driver.execute_cdp_cmd("Network.enable", {})
        self._logs()
        self.show(WIDE, "light")

    def show(self, width: int, scheme: str, height: int = 900) -> None:
        """Use a window of so many pixels, in the colours that the user prefers."""
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def open(self, path: str) -> None:
        """Go to a page, and wait until it is live."""
        self.driver.get(self.base + path)
        self.wait_live()

    def wait_live(self) -> None:
        """Wait until the page receives changes, or asks for them."""
        polls = self.find("main").get_attribute("data-live") in ("poll", "still")
        wait_until(lambda: polls or self.text("#live") == "live", PATIENCE_S, "the page is live")

    def find(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        """The text of the first such element at one moment; empty if there is none."""
        script = "return document.querySelector(arguments[0])?.textContent ?? ''"
        return str(self.run(script, selector))

    def texts(self, selector: str) -> list[str]:
        """The texts of all such elements at one moment; the page may be fetched again between two calls."""
        script = "return Array.from(document.querySelectorAll(arguments[0]), (each) => each.textContent)"
        found: list[str] = self.run(script, selector)
        return found

    def click(self, selector: str) -> None:
        """Click the first such element."""
        self.run("document.querySelector(arguments[0]).click()", selector)

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def press(self, *keys: str) -> None:
        """Press one key after the other."""
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def focused(self) -> str:
        """The tag and the text of what has the focus."""
        script = "const e = document.activeElement; return `${e.tagName} ${e.textContent || e.id}`.trim()"
        return str(self.run(script))

    def overflow(self) -> int:
        """The page's width beyond the window's, in pixels."""
        page = "document.documentElement"
        return int(self.run(f"return {page}.scrollWidth - {page}.clientWidth"))

    def violations(self) -> list[str]:
        """axe's findings: what makes the page hard to use for some people."""
        found = Axe().run(self.driver)["violations"]
        return [
            f"{each['id']}: {node['html'][:200]}"
            for each in found
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"]
        ]

    def draw(self, path: Path, most_pixels: int = MOST_PIXELS) -> None:
        """Draw the page, from its top on. most_pixels: the picture's greatest height."""
        height = int(self.run("return document.documentElement.scrollHeight"))
        width = int(self.run("return window.innerWidth"))
        size = {"width": width, "height": min(height, most_pixels), "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        assert self.driver.save_screenshot(str(path))

    def check(self) -> None:
        """Nothing was wrong in the window, and nothing came from elsewhere."""
        errors, urls = self._logs()
        assert errors == [], errors
        assert {urlsplit(url).netloc for url in urls} <= {urlsplit(self.base).netloc}, urls

    def await_error(self, what: str) -> None:
        """Wait until the browser has logged this error, and forget all errors until then."""
        wait_until(lambda: any(what in each for each in self._logs()[0]), PATIENCE_S, f"the error {what!r}")

    def forget_errors(self) -> None:
        """Forget the errors so far: the test has caused them."""
        self.driver.get_log("browser")

    def _logs(self) -> tuple[list[str], list[str]]:
        errors = [entry["message"] for entry in self.driver.get_log("browser")]
        messages = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        sent = (each["params"] for each in messages if each["method"] == "Network.requestWillBeSent")
        urls = [each["request"]["url"] for each in sent]
        return errors, [url for url in urls if urlsplit(url).scheme not in LOCAL]
