"""The page in a real browser: what it shows, how soon, and that everybody can use it.

KSHIM_SCREENSHOTS=docs/pages draws the pictures of docs/http.md anew.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from integration.page.look import NARROW, PATIENCE_S, WIDE, Look
from integration.page.world import World, assign, rebalance
from integration.support.awaiting import wait_until
from integration.support.server import Server

SOON_S = 3.0
"""After so long a page shows what has changed, on a busy machine too; tests/http holds the server to 1 s."""
CHECKOUT = "/page/groups/checkout"
PAGES = ("/", CHECKOUT, "/page/topics", "/page/connections")


def lag(look: Look, group_id: str) -> str:
    return look.text(f"tr[data-group={group_id}] [data-name=lag]").replace("\u202f", "")


def test_groups_are_listed_and_their_lag_is_live(look: Look, world: World) -> None:
    look.open("/")
    names = look.texts("#groups tbody th")
    assert [name for name in names if name in ("billing", "checkout")] == ["billing", "checkout"]
    assert look.text("tr[data-group=checkout] .state") == "Stable"
    before = int(lag(look, "checkout"))
    world.checkout[0].commit("orders", {0: 160})
    began_s = time.monotonic()
    wait_until(lambda: lag(look, "checkout") == str(before - 10), PATIENCE_S, "the lag is shown")
    assert time.monotonic() - began_s < SOON_S
    world.produce("payments", 7)
    began_s = time.monotonic()
    wait_until(lambda: int(lag(look, "billing")) >= 7, PATIENCE_S, "the lag is shown")
    assert time.monotonic() - began_s < SOON_S


def test_groups_come_and_go(look: Look, world: World) -> None:
    look.open("/")
    world.consumer("a-new-one", "x").commit("orders", {0: 1})
    first = "#groups tbody tr a"
    wait_until(lambda: look.text(first) == "a-new-one", PATIENCE_S, "the new group comes first")
    world.delete_group("a-new-one")
    wait_until(lambda: look.text(first) == "billing", PATIENCE_S, "the group has gone")


def test_names_that_clients_chose_are_text(look: Look, world: World) -> None:
    name = "</script><img src=x onerror=document.title='bad'>\"'&%2F/ü"
    world.consumer(name, "<b>x</b>").commit("orders", {0: 1})
    look.open("/")
    assert look.texts("#groups img, #groups b") == []
    look.driver.find_element(By.LINK_TEXT, name).click()
    wait_until(lambda: look.text("h1 .id") == name, PATIENCE_S, "the group's own page")
    look.wait_live()
    assert look.driver.title == f"{name} · kshim"
    look.open("/")  # a page of a group that is gone would ask for it in vain
    world.delete_group(name)


def test_a_rebalance_is_drawn_and_explained(look: Look) -> None:
    look.open(CHECKOUT)
    assert len(look.texts("svg .band")) == 4
    assert look.texts(".names .name") == ["checkout-1", "checkout-2", "checkout-3"]
    assert len(look.texts("svg .gone")) == 1
    assert {"checkout-1 has orders-0", "checkout-2 has orders-1"} <= set(look.texts("svg title"))
    assert len(look.texts("svg .waits")) == 8
    assert "rebalanced because a member left: checkout-2" in look.text("article .story")
    look.click("article summary")
    assert look.texts("article details[open] tbody th") != []


def test_who_waits_for_whom_is_shown_while_it_lasts(look: Look, world: World) -> None:
    look.open(CHECKOUT)
    assert look.text(".now p") == "Nobody waits."
    look.click("article summary")
    fourth = world.consumer("checkout", "checkout-4", "kafka-python 3.0.12")
    fourth.send_join("orders")
    began_s = time.monotonic()
    wait_until(lambda: "waits for" in look.text(".now p"), PATIENCE_S, "the wait is shown")
    assert time.monotonic() - began_s < SOON_S
    chips = {kind: look.texts(f".{kind}") for kind in ("waiting", "awaited")}
    assert chips == {"waiting": ["checkout-4"], "awaited": ["checkout-1", "checkout-3"]}
    assert look.texts("article details[open]") != []
    first, _, third = world.checkout
    for member in (first, third):
        wait_until(member.is_told, PATIENCE_S, "the member is told")
        member.send_join("orders")
    leaders = [member for member in (first, third, fourth) if member.joined()]
    wait_until(lambda: "to assign the partitions" in look.text(".now p"), PATIENCE_S, "the leader is awaited")
    assign(leaders[0], [first, third, fourth], "orders", 6)
    wait_until(lambda: look.text(".now p") == "Nobody waits.", PATIENCE_S, "it is over")
    wait_until(lambda: len(look.texts("svg .band")) == 5, PATIENCE_S, "it is drawn")
    assert look.texts("article details[open]") != []
    fourth.leave()
    rebalance([first, third], "orders", 6)


def test_topics_and_connections(look: Look, world: World) -> None:
    look.open("/page/topics")
    assert "orders51110385385" in look.texts("tbody tr")
    assert look.texts("tbody th")[-1].startswith("__")
    world.produce("orders", 1, 5)
    wait_until(lambda: "386" in look.text("tbody"), PATIENCE_S, "the page is fetched again")
    look.open("/page/connections")
    assert "apache-kafka-java 4.2.0" in look.text("tbody")
    assert "librdkafka 2.16.1" in look.text("tbody")


def test_the_keyboard_is_enough(look: Look) -> None:
    look.open("/")
    look.press(Keys.TAB)
    assert look.focused() == "A To the content"
    look.press(Keys.ENTER, "/")
    assert look.focused() == "INPUT search"
    look.press(*"check")
    assert look.texts("#groups tbody tr:not([hidden]) th") == ["checkout"]
    look.press(Keys.TAB)
    assert look.focused() == "A checkout"
    look.press(Keys.ENTER)
    wait_until(lambda: look.text("h1 .id") == "checkout", PATIENCE_S, "the group's page")
    look.wait_live()
    look.run("document.querySelector('.scroll').focus()")
    look.press(Keys.TAB)
    assert "generation" in look.focused()
    look.press(Keys.ENTER)
    assert "#r" in look.driver.current_url
    look.show(NARROW, "light")
    look.open(CHECKOUT)
    look.run("const s = document.querySelector('.scroll'); s.scrollLeft = 0; s.focus()")
    look.press(Keys.ARROW_RIGHT)
    scrolled = "return document.querySelector('.scroll').scrollLeft"
    wait_until(lambda: look.run(scrolled) > 0, PATIENCE_S, "it scrolls")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_everybody_can_use_it(look: Look, width: int, scheme: str) -> None:
    look.show(width, scheme)
    for page in PAGES:
        look.open(page)
        look.run("for (const each of document.querySelectorAll('article details')) each.open = true")
        assert look.violations() == [], page
        assert look.overflow() <= 0, page


def test_the_page_says_that_a_server_has_gone_and_goes_on_when_it_is_back(
    look: Look, new_server: Callable[..., Server]
) -> None:
    server = new_server("--http", f"127.0.0.1:{free_port()}").start()
    world = Look(look.driver, f"http://{http_of(server)}")
    world.open("/")
    server.kill()
    wait_until(lambda: "does not answer" in world.text("#live"), PATIENCE_S, "the page says so")
    server.restart()
    wait_until(lambda: world.text("#live") == "live", PATIENCE_S, "the page is live again")
    world.driver.get("about:blank")
    server.stop()
    look.forget_errors()
    world.driver.get_log("performance")


def test_a_browser_keeps_the_token(look: Look, new_server: Callable[..., Server]) -> None:
    server = new_server("--http", "127.0.0.1:0", "--set", "http.token=hocus-pocus").start()
    guarded = Look(look.driver, f"http://{http_of(server)}")
    guarded.driver.get(guarded.base)
    assert "expected the token" in guarded.text("body")
    guarded.await_error("401")
    guarded.open("/?token=hocus-pocus")
    assert guarded.driver.current_url == f"{guarded.base}/"
    guarded.open("/page/topics")
    assert guarded.text("h1") == "Topics"
    guarded.check()
    guarded.driver.get("about:blank")


def http_of(server: Server) -> str:
    wait_until(lambda: len(server.stdout) > 1, PATIENCE_S, "the line that names the page")
    return server.stdout[1].split()[2]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    return port


@pytest.mark.parametrize(
    ("name", "page", "width", "scheme"),
    [
        ("groups", "/", WIDE, "light"),
        ("groups-dark", "/", WIDE, "dark"),
        ("groups-narrow", "/", NARROW, "light"),
        ("group", CHECKOUT, WIDE, "light"),
        ("group-dark", CHECKOUT, WIDE, "dark"),
        ("group-narrow", CHECKOUT, NARROW, "dark"),
    ],
)
def test_the_pictures(look: Look, tmp_path: Path, name: str, page: str, width: int, scheme: str) -> None:
    look.show(width, scheme)
    look.open(page)
    picture = Path(os.environ.get("KSHIM_SCREENSHOTS") or tmp_path) / f"{name}.png"
    look.draw(picture)
    assert picture.stat().st_size > 5_000
