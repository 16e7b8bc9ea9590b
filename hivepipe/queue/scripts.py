"""The Lua scripts of the queue. A module reads its scripts from `hivepipe/queue/lua/` on import.

The header of each file describes the script, its KEYS and ARGV, and its result. Constants
that Python uses too are put before the script as Lua locals.
"""

from collections.abc import Sequence

from hivepipe.home import lua_text

Constant = str | int | Sequence[str]


def script(name: str, **constants: Constant) -> str:
    """Return the Lua script `name`, preceded by constants, or raise FileNotFoundError."""
    text = lua_text(f"queue/lua/{name}.lua")
    if not text:
        raise FileNotFoundError(f"hivepipe/queue/lua/{name}.lua")
    return "".join(f"local {key} = {_lua(value)}\n" for key, value in constants.items()) + text


def _lua(value: Constant) -> str:
    """Return a constant as a Lua literal. It must contain no quote and no backslash."""
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return f"'{value}'"
    return "{" + ", ".join(map(_lua, value)) + "}"
