"""Read the settings in `config.toml` of the user and of the home, and compile them for hooks.

    ~/.config/hivepipe/config.toml    for all projects
    <home>/config.toml                for one home; takes precedence
    <project>/hivepipe.toml           a repository's requests; if the user trusted them
                                      (hivepipe.config.trust), they apply where the other two
                                      files have no value
    <home>/hook-settings.json         all values, compiled: hooks do not parse TOML

A setting has the name of its variable, in lower case and without HIVEPIPE_. The environment takes
precedence over the files. Errors in a file are reported, and its invalid parts are ignored.
hivepipe keeps running, but calls no language model while the cost limits cannot be read.
"""

import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hivepipe import settings
from hivepipe.config import request, trust
from hivepipe.config.keyword_rules import CONTEXT, keyword_rules
from hivepipe.config.setting_table import (
    BY_NAME,
    LIMIT_BYTES,
    SECTIONS,
    SETTINGS,
    files,
    text_of,
    variables,
)
from hivepipe.errors import SettingsError
from hivepipe.home import Place, locate, read_small, write_small

COMPILED = "hook-settings.json"

UNUSABLE = "?"  # the value of an unreadable setting with `limits_spending`


class Config:
    """The parsed config files of a home.

    `problems` are messages for users. `requests` has the trusted requests of each project.
    """

    def __init__(self, home: str, project: str = "") -> None:
        """Read the user's file, the home's file and `project`'s trusted request, if they exist."""
        self.home = home
        self.project = project
        self.requests = {
            each: request.Request(trusted[request.NAME].text, each, home)
            for each in trust.projects(home)
            if request.NAME in (trusted := trust.trusted_files(home, each))
        }
        self.problems: list[str] = []
        self._values: dict[str, tuple[str, str]] = {}
        self.keyword_rules: list[dict[str, Any]] = []
        self._users = files(home)[0]
        for path in files(home):
            for name, text in self._read(path):
                self._values[name] = (text, path)

    def for_settings(self) -> dict[str, str]:
        """Return the values for `settings.use`."""
        requested = self.requests.get(self.project)
        return {**(variables(requested.values) if requested else {}), **self.of_files()}

    def of_files(self) -> dict[str, str]:
        """Return the values in the user's and the home's file, without a repository's requests."""
        return variables({name: text for name, (text, _) in self._values.items()})

    def all_keyword_rules(self) -> list[dict[str, Any]]:
        """Return the user's keyword rules, and the repository's rules that the user trusts."""
        requested = self.requests.get(self.project)
        return [*self.keyword_rules, *(requested.keyword_rules if requested else ())]

    def values(self) -> Iterator[tuple[str, str, str]]:
        """Yield name, value and source of every setting: environment, a file, or default."""
        trusted = self.requests.get(self.project)
        for setting in SETTINGS:
            value = settings.environment(setting.variable)
            if value and not setting.is_of_files:
                yield setting.name, value, "environment"
            elif setting.name in self._values:
                yield setting.name, *self._values[setting.name]
            elif trusted and setting.name in trusted.values:
                yield setting.name, trusted.values[setting.name], f"{trusted.path}, as trusted"
            else:
                yield setting.name, setting.default, "default"

    def _read(self, path: str) -> Iterator[tuple[str, str]]:
        try:
            found = tomllib.loads(text_of(path))
        except FileNotFoundError:
            return
        except (OSError, ValueError, RecursionError) as error:  # an error of TOML or UTF-8
            self.problems.append(f"{path}: cannot be read: {error}")
            self.requests.clear()  # requests might contradict this unreadable file
            if path == self._users:
                yield from ((each.name, UNUSABLE) for each in SETTINGS if each.limits_spending)
            return
        rules, problems = keyword_rules(path, found.pop(CONTEXT, []))
        self.keyword_rules += rules
        self.problems += problems
        for name, value in found.items():
            if name in SECTIONS:
                continue
            setting = BY_NAME.get(name)
            text = setting.read(value) if setting else None
            if setting is None:
                self.problems.append(f"{path}: there is no setting {name!r}")
            elif setting.is_the_users and path != self._users:
                self.problems.append(f"{path}: {name} belongs in {self._users}")
            elif text is None:
                self.problems.append(f"{path}: {name} must be {setting.kind}")
                if setting.limits_spending:
                    yield name, UNUSABLE
            else:
                yield name, text


def load() -> tuple[Place, Config]:
    """Return the paths (`Place`) and the settings for the working directory."""
    place = locate(".")
    return place, Config(place.home, place.project)


def load_and_use() -> tuple[Place, Config]:
    """Load the settings, apply them to this process, and return them with the paths.

    This is called once, when the process starts.
    """
    place, config = load()
    settings.use(config.for_settings())
    return place, config


def unseen(home: str) -> list[str]:
    """Return a note for each variable of this shell that limits spending.

    Stacks do not see these variables.
    """
    return [
        f"{it.variable} is set in this shell, which no stack sees: "
        + ("`hivepipe summaries enable`, or " if it.name == "summaries" else "")
        + f"put `{it.name}` into {files(home)[0]}"
        for it in SETTINGS
        if it.limits_spending and settings.environment(it.variable)
    ]


def renewed(home: str, values: dict[str, str]) -> dict[str, str]:
    """Return `values` with the settings that limit spending read again from the files."""
    of_spending = {setting.variable for setting in SETTINGS if setting.limits_spending}
    now = Config(home).for_settings()
    return {name: text for name, text in values.items() if name not in of_spending} | {
        name: text for name, text in now.items() if name in of_spending
    }


def compile_for_hooks(config: Config) -> None:
    """Write the compiled settings for the hooks of this home.

    Raises OSError if nothing was written. Raises SettingsError if only the texts were left out,
    because they are too large.
    """
    path = f"{config.home}/{COMPILED}"
    text = _compiled(config)
    if len(text.encode()) <= LIMIT_BYTES:
        _put(path, text)
        return
    _put(path, _compiled(config, with_texts=False))  # a hook would ignore a larger file
    raise SettingsError(
        f"the texts of [[{CONTEXT}]] make more than 1 MB, so no text is in force; "
        "the other settings apply"
    )


def _compiled(config: Config, *, with_texts: bool = True) -> str:
    """Return the hooks' settings, with or without keyword texts, as JSON; "" if there are none."""
    compiled: dict[str, Any] = {"v": 1, "values": config.of_files()}
    if config.keyword_rules and with_texts:
        compiled[CONTEXT] = config.keyword_rules
    if config.requests:
        compiled["asked"] = {
            project: {
                "values": variables(requested.values),
                CONTEXT: requested.keyword_rules if with_texts else [],
            }
            for project, requested in config.requests.items()
        }
    if not any([*compiled.values()][1:]):
        return ""
    text = json.dumps(compiled, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "backslashreplace").decode()  # some paths are not UTF-8


def _put(path: str, text: str) -> None:
    if text == read_small(path, LIMIT_BYTES) or not os.path.isdir(os.path.dirname(path)):
        return
    if text:
        write_small(path, text)
    else:
        Path(path).unlink(missing_ok=True)  # two commands may delete it at the same time
