"""All administrator stories, and the differences that they meet."""

from __future__ import annotations

from integration.differential.stories import admin as admin_stories
from integration.differential.stories import cluster as cluster_stories
from integration.differential.stories import group_configs as group_stories
from integration.differential.stories import quotas as quota_stories
from integration.differential.stories import topics as topic_stories
from integration.differential.stories import users as user_stories
from integration.differential.stories.admin_talk import Rehearsal, Story
from schemas.registry import VERSIONS

STORIES = [
    each
    for module in (admin_stories, cluster_stories, group_stories, quota_stories, topic_stories, user_stories)
    for each in vars(module).values()
    if isinstance(each, Story)
]


def meant_in_stories() -> set[str]:
    """The keys of the differences that some story meets, found without asking a server."""
    met: set[str] = set()
    for story in STORIES:
        for version in VERSIONS[story.api_key]:
            admin = Rehearsal(None, story.name, version)
            story.tell(admin)
            met |= {told.meant for told in admin.heard}
    return met - {""}
