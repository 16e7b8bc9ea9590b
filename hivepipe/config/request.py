"""The requests of a repository in its `hivepipe.toml`: some settings, and texts by keyword.

    checkpoint_interval = 120
    guard = "all"
    [[context]]
    keywords = ["deploy"]
    text = "Staging first."

The requests apply after the user has trusted the file (hivepipe.config.trust). Texts are marked as
quotations, because the user did not write them.
"""

import tomllib
from collections.abc import Iterator
from typing import Any

from hivepipe.config.keyword_rules import CONTEXT, MOST_CONTEXT_CHARS, keyword_rules
from hivepipe.config.setting_table import BY_NAME, SECTIONS, files
from hivepipe.text.quoting import of_repository

NAME = "hivepipe.toml"  # a file in the root of a project
ASKABLE = ("checkpoint_interval", "guard")


class Request:
    """A parsed hivepipe.toml. `unreadable` is the parser's error, `problems` the ignored parts."""

    def __init__(self, text: str, project: str, home: str) -> None:
        self.path = f"{project}/{NAME}"
        self.unreadable = ""
        self.problems: list[str] = []
        self.values: dict[str, str] = {}
        self.keyword_rules: list[dict[str, Any]] = []
        try:
            found = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            self.unreadable = f"cannot be read: {error}"
            return
        rules, problems = keyword_rules(self.path, found.pop(CONTEXT, []))
        self.keyword_rules = [
            {**rule, "text": of_repository(NAME, rule["text"], MOST_CONTEXT_CHARS)}
            for rule in rules
        ]
        self.problems = [*problems, *self._store_requested(found, home)]

    def _store_requested(self, found: dict[str, Any], home: str) -> Iterator[str]:
        """Store the values that a repository can request. Yield a message about any other value."""
        for name, value in found.items():
            setting = BY_NAME.get(name)
            if setting is None and name not in SECTIONS:
                yield f"{self.path}: there is no setting {name!r}"
            elif setting is None or name not in ASKABLE:
                users, homes = files(home)
                where = users if setting and setting.is_the_users else f"{users} or {homes}"
                yield f"{self.path}: a repository cannot ask for {name}: it belongs in {where}"
            elif (text := setting.read(value)) is None:
                yield f"{self.path}: {name} must be {setting.kind}"
            else:
                self.values[name] = text
