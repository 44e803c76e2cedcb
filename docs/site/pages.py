"""Adds pages from the top of the repository to the site: README.md as its first page, and others as they are.

MkDocs calls the functions named `on_…`. Those pages link to docs/ from the top, so "docs/" is taken off.
"""

from __future__ import annotations

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

TOP = Path(__file__).parents[2]
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
}
"""The name that each page has in the site."""
FOLDERS = ("docs/decisions",)
"""Folders that pages link to, which have no page in the site; the link becomes plain text."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=_in_site((TOP / name).read_text())))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    return markdown.replace("](../README.md", "](index.md")


def _in_site(text: str) -> str:
    for folder in FOLDERS:
        text = re.sub(rf"\[([^]]*)\]\({folder}\)", r"\1", text)
    return re.sub(r"\]\(docs/", "](", text)
