"""The stories of administrators, told to two releases at every version that both serve."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from integration.differential.playing.pairs import Pair
from integration.differential.releases.causes import Found, without
from integration.differential.stories.admin_talk import Admin, Story, Told
from integration.differential.stories.administrators import STORIES
from integration.support.server import Server
from schemas.registry import VERSIONS


def told(pair: Pair, configs: Collection[str]) -> Iterator[tuple[str, list[Found]]]:
    """The differing answers of each story. configs: those that are known to differ."""
    newest = pair.targets[0].newest
    for story in STORIES:
        for version in VERSIONS[story.api_key]:
            if version <= newest.get(story.api_key, -1):
                yield f"{story.name} v{version}", _differing(pair, story, version, configs)


def _differing(pair: Pair, story: Story, version: int, configs: Collection[str]) -> list[Found]:
    new = _heard(pair.kshim, story, version)
    old = _heard(pair.apache_kafka, story, version, new)
    both = (
        Found(
            one.request.partition("(")[0],
            version,
            without(one.answer, configs),
            without(other.answer, configs),
        )
        for one, other in zip(old, new, strict=False)
    )
    return [found for found in both if found.old != found.new]


def _heard(server: Server, story: Story, version: int, expected: list[Told] | None = None) -> list[Told]:
    admin = Admin((server.host, server.port), story.name, version, expected)
    try:
        story.tell(admin)
    finally:
        admin.close()
    return admin.told
