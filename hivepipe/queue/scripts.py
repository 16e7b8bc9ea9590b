"""The Lua scripts of the queue, read from `hivepipe/queue/lua/` when a module that needs one loads.

The header of each file says what the script does, its KEYS and ARGV, and what it returns. Constants
that Python uses too are put before the script as Lua locals.
"""

from collections.abc import Sequence

from hivepipe.home import lua_text

Constant = str | int | Sequence[str]


def script(name: str, **constants: Constant) -> str:
    """Return a script, preceded by its constants.

    Raise FileNotFoundError if the file is missing.
    """
    text = lua_text(f"queue/lua/{name}.lua")
    if not text:
        raise FileNotFoundError(f"hivepipe/queue/lua/{name}.lua")
    return "".join(f"local {key} = {_lua(value)}\n" for key, value in constants.items()) + text


def _lua(value: Constant) -> str:
    """Return a Lua literal. The constants contain no quote and no backslash."""
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return f"'{value}'"
    return "{" + ", ".join(map(_lua, value)) + "}"
