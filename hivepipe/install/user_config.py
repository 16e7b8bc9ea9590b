"""Writes one setting into the user's own config.toml without other changes to the file."""

import os
import re
import tomllib

from hivepipe.config.setting_table import NAME
from hivepipe.errors import SettingsError, os_error_as
from hivepipe.files.regular_file import BYTE_ORDER_MARK
from hivepipe.home import make_folders, user_config_folder, write_small
from hivepipe.install.edits import Edit, make, read


def config_path() -> str:
    """Return the path of the user's own config.toml."""
    return f"{user_config_folder()}/{NAME}"


def put_setting(name: str, value: str) -> None:
    """Set a setting to a word. Raises SettingsError if the file cannot be changed safely."""
    path, line = config_path(), f'{name} = "{value}"'
    before = read(path)
    text = (before or "").removeprefix(BYTE_ORDER_MARK)
    after = _with_line(text, name, line)
    settings = _settings(path, text)
    if _settings(path, after) != {**settings, name: value}:
        raise SettingsError(f"{path} cannot be changed safely: put this line into it: {line}")
    if before is not None:
        make(Edit(path, before, after))
        return
    with os_error_as(SettingsError, f"{path} cannot be written"):
        make_folders(os.path.dirname(path))
        write_small(path, after)


def _with_line(text: str, name: str, line: str) -> str:
    """Return the text with this line instead of the old line, or at the start.

    The line is not appended, because a line after a `[table]` header would belong to that table.
    """
    changed, number = re.subn(rf"^{name}[ \t]*=.*$", line, text, count=1, flags=re.MULTILINE)
    return changed if number else f"{line}\n{text}"


def _settings(path: str, text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from None
