"""Recognise the hook entries that any version of hivepipe writes into a settings file.

The whole entry must match, not only the name, because a recognised entry is trusted, replaced by
`init` and removed by `uninstall`.
"""

import re
import shlex

from hivepipe.install.hook_entries import EVENTS, Form, entry

_SCRIPTS = tuple(event.script for event in EVENTS)
_LAUNCHER = re.compile(r"/.*/hivepipe/hooks/[0-9a-f]{16}/hook", re.DOTALL)

# Entries of 1.0.0 and before name the interpreter and a script of the package.
_OLD_SCRIPT = re.compile(rf"/.*/({'|'.join(_SCRIPTS)})\.py", re.DOTALL)
_OLD_START = """import sys
try:
    hook = open(sys.argv[1], "rb")
except OSError:
    sys.exit()
__file__ = sys.argv[1]
exec(hook.read())
"""
_OLD_MARK = "# hivepipe"
_OLD_HINT = f"{_OLD_MARK}: if this fails, run 'hivepipe init' again or delete this entry"
_OLD_BY_NAME = frozenset(
    f'h=$(command -v hivepipe-hook) && exec "$h" {script}; exit 0 {_OLD_MARK}'
    for script in _SCRIPTS
)
_NAMES_A_HOOK = re.compile(
    rf"(hivepipe/hooks/([0-9a-f]{{16}}|default)/hook|(?<![\w-])hivepipe-hook)(?![\w./-])|{_OLD_HINT}"
)
_BY_NAME = frozenset(entry(event, Form.SHARED)["hooks"][0]["command"] for event in EVENTS)
EDITED = "a hook there runs hivepipe's program in a form that hivepipe does not write"


def is_ours(handler: object) -> bool:
    """Tell whether any version of hivepipe wrote a hook handler, in any form."""
    return bool(form_of(handler)) or is_old(handler)


def is_edited(handler: object) -> bool:
    """Tell whether a hook handler names a hook of hivepipe in a form that no version writes."""
    command, args = _parts(handler)
    return not is_ours(handler) and bool(_NAMES_A_HOOK.search(" ".join([command, *(args or [])])))


def form_of(handler: object) -> Form | None:
    """Return the form of a hook handler that this version writes, or None for any other."""
    command, args = _parts(handler)
    if args is None and command in _BY_NAME:
        return Form.SHARED
    words = [command, *args] if args is not None else _split(command)
    if len(words) != 2 or not _LAUNCHER.fullmatch(words[0]) or words[1] not in _SCRIPTS:
        return None
    if args is not None:
        return Form.EXEC
    return Form.SHELL if command == shlex.join(words) else None  # unquoted, `$(...)` would run


def is_old(handler: object) -> bool:
    """Tell whether an older version of hivepipe wrote this hook handler."""
    command, args = _parts(handler)
    if args is not None:
        return command.startswith("/") and _is_old_start(args)
    return command in _OLD_BY_NAME or _is_old_shell(command)


def launcher_of(handler: dict[str, object]) -> str:
    """Return the program that a hook handler of hivepipe names, or ""."""
    form = form_of(handler)
    if form not in (Form.EXEC, Form.SHELL):
        return ""
    command = str(handler["command"])
    return command if form is Form.EXEC else _split(command)[0]


def old_paths(handler: dict[str, object]) -> list[str]:
    """Return the paths that an older version's hook handler names: interpreter and script."""
    command, args = _parts(handler)
    words = [command, *args] if args is not None else _split(command)
    return list(dict.fromkeys(word for word in words if word.startswith("/")))


def _parts(handler: object) -> tuple[str, list[str] | None]:
    """Return command and arguments of a hook handler, or ("", None) for any other value."""
    if not isinstance(handler, dict) or not isinstance(handler.get("command"), str):
        return "", None
    args = handler.get("args")
    if args is None:
        return handler["command"], None
    if not isinstance(args, list) or not all(isinstance(word, str) for word in args):
        return "", None
    return handler["command"], args


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command, comments=True)
    except ValueError:
        return []


def _is_old_start(args: list[str]) -> bool:
    script, hint = args[-2:] if len(args) > 2 else ("", "")
    flags = args[:-2]
    started = flags in (["-I", "-S"], ["-I", "-S", "-c", _OLD_START])
    return started and hint == _OLD_HINT and bool(_OLD_SCRIPT.fullmatch(script))


def _is_old_shell(command: str) -> bool:
    words = _split(command)
    if not command.endswith(f" {_OLD_HINT}") or len(words) < 4:
        return False
    if words[0] != "[":
        python, *rest = words
        return rest[:2] == ["-I", "-S"] and _is_old_run(python, rest[2:])
    python, script = words[2], words[7] if len(words) > 7 else ""
    run = f"exec {shlex.join((python, '-I', '-S', script))} || exit 0 {_OLD_HINT}"
    there = f"[ -x {shlex.quote(python)} ] && [ -r {shlex.quote(script)} ]"
    return command == f"{there} && {run}" and _is_old_run(python, [script])


def _is_old_run(python: str, script: list[str]) -> bool:
    return python.startswith("/") and len(script) == 1 and bool(_OLD_SCRIPT.fullmatch(script[0]))
