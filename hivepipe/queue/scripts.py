"""The Lua scripts of the queue, read from `hivepipe/queue/lua/` when a module that needs one loads.

The header of each file says what it does, what KEYS and ARGV hold, and what it returns. Constants
that Python has too are locals in front of the script.
"""

from collections.abc import Sequence

from hivepipe.home import lua_text

Constant = str | int | Sequence[str]


def script(name: str, **constants: Constant) -> str:
    """Return the text of a script, its constants in front; FileNotFoundError: there is no such."""
    text = lua_text(f"queue/lua/{name}.lua")
    if not text:
        raise FileNotFoundError(f"hivepipe/queue/lua/{name}.lua")
    return "".join(f"local {key} = {_lua(value)}\n" for key, value in constants.items()) + text


def _lua(value: Constant) -> str:
    """Return a literal of Lua; none of the constants has a quote or a backslash in it."""
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return f"'{value}'"
    return "{" + ", ".join(map(_lua, value)) + "}"
