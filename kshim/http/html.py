"""HTML from Python: elements with escaped text, and the frame around all pages."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from datetime import UTC, datetime
from html import escape

from kshim.control.long import PIECE_BYTES
from kshim.http.answers import Answer, HttpError
from kshim.recorder.story import seconds

CONTENT_TYPE = "text/html; charset=utf-8"
VOID = frozenset(("link", "meta", "input"))
"""Elements without an end tag."""
PAGES = {"Groups": "/", "Topics": "/page/topics", "Connections": "/page/connections"}


class Html(str):
    """Markup. Any other text is escaped when it is put into markup."""

    __slots__ = ()


NOTHING = Html()


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element. In attributes' names "_" becomes "-". The value None or False leaves an attribute out."""
    written = "".join(
        f" {key.strip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if not children and name in VOID:
        return Html(
            f"<{name}{written}>" if name in ("link", "meta", "input", "br") else f"<{name}{written}/>"
        )
    return Html(f"<{name}{written}>{joined(children)}</{name}>")


def joined(children: Iterable[object]) -> Html:
    """The children one after the other, without those that are None."""
    return Html(
        "".join(
            child if isinstance(child, Html) else escape(str(child))
            for child in children
            if child is not None
        )
    )


def page(title: str, here: str, live: str, parts: AsyncIterator[Html]) -> Answer:
    """A page. here: the one of PAGES that the navigation marks. live: how page.js keeps the page current."""
    return Answer(_pieces(title, here, live, parts), CONTENT_TYPE)


def error_page(error: HttpError) -> Answer:
    """An error as a page with the way to the others: links and bookmarks outlive groups and topics."""
    why = str(error).partition("; GET ")[0]
    title = "Not found" if error.status == 404 else "That is not possible"
    body = joined((tag("h1", title), tag("p", f"{why[:1].upper()}{why[1:]}.")))
    text = f"{_head(title, '', 'still')}{body}</main></body></html>\n"
    return Answer(text.encode("utf-8", "replace"), CONTENT_TYPE, error.status, error.headers)


async def _pieces(
    title: str, here: str, live: str, parts: AsyncIterator[Html]
) -> AsyncGenerator[bytes, None]:
    piece = bytearray(_head(title, here, live).encode())
    async for part in parts:
        piece += part.encode("utf-8", "replace")
        if len(piece) >= PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece + b"</main></body></html>\n")


def _head(title: str, here: str, live: str) -> str:
    links = (
        tag("a", name, href=path, aria_current="page" if name == here else None)
        for name, path in PAGES.items()
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · kshim"),
        tag("link", rel="icon", href="/page/icon.svg", type="image/svg+xml"),
        tag("link", rel="stylesheet", href="/page/page.css"),
        tag("script", src="/page/page.js", defer=True),
    )
    top = tag(
        "header",
        tag("a", "kshim", class_="brand", href="/"),
        tag("nav", *links, aria_label="Pages"),
        tag("p", class_="live", id="live", role="status"),
    )
    skip = tag("a", "To the content", class_="skip", href="#main")
    main = f'<main id="main" data-live="{escape(live)}" tabindex="-1">'
    return f'<!doctype html><html lang="en">{head}<body>{skip}{top}{main}'


def table(caption: str, columns: Iterable[str], rows: Iterable[Html], **attributes: object) -> Html:
    """A table that may be scrolled where it is too wide. Columns that begin with "#" hold numbers."""
    return joined((table_head(caption, columns, **attributes), *rows, TABLE_END))


def table_head(caption: str, columns: Iterable[str], **attributes: object) -> Html:
    """The beginning of a table whose rows follow; TABLE_END ends it."""
    cells = (
        tag("th", name.lstrip("#"), scope="col", class_="number" if name[0] == "#" else None)
        for name in columns
    )
    head = tag("thead", tag("tr", *cells))
    opened = tag("table", **attributes).removesuffix("</table>")
    return Html(f"{opened}{tag('caption', caption)}{head}<tbody>")


TABLE_END = Html("</tbody></table>")


def cell(label: str, value: object, **attributes: object) -> Html:
    """A cell. On narrow screens the label is shown before it; a label with "#" in front marks a number."""
    if label[0] == "#":
        attributes["class_"] = "number"
    return tag("td", value, data_label=label.lstrip("#"), **attributes)


def number(value: int | None) -> str:
    """A number with thin spaces between the thousands; "–" for None, which is an unknown number."""
    return "–" if value is None else f"{value:,}".replace(",", "\u202f")


def duration(ms: float) -> str:
    """A duration in words: "0.041 s", "12.3 s", "3 min", "2 h 5 min", "4 d"."""
    minutes = int(ms // 60_000)
    if minutes < 1:
        return seconds(ms)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d"


def moment(ms: int) -> Html:
    """A date and time of day, in UTC. ms: since 1970."""
    at = datetime.fromtimestamp(ms / 1000, UTC)
    shown = f"{at:%Y-%m-%d %H:%M:%S}.{ms % 1000:03d}Z"
    return tag("time", shown, datetime=f"{at:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z", title="UTC")
