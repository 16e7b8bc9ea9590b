"""The header of each Lua script names its keys, arguments, constants and result."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import hivepipe
from hivepipe.guard import client as guard
from hivepipe.guard.listed_calls import LIST_SCRIPT
from hivepipe.home import lua_text
from hivepipe.hook import hand_over
from hivepipe.queue import client
from hivepipe.queue.scripts import script
from hivepipe.stack.hook_bundle import MODULES, SCRIPTS, bundle, source_of

PACKAGE = Path(hivepipe.__file__).parent
FILES = sorted(PACKAGE.rglob("*.lua"))
SENT_BY_HOOKS = {
    "push": client.SCRIPT,
    "count_hook": hand_over.COUNT_SCRIPT,
    "in_time": hand_over.IN_TIME_SCRIPT,
    "note": guard.SCRIPT,
    "verdict": guard.VERDICT_SCRIPT,
    "list_calls": guard.SCRIPT + LIST_SCRIPT,  # appended to the other, with its constants
}
STRING = r"'[^'\n]*'"


def header_of(path: Path) -> str:
    return path.read_text().partition("\n\n")[0]


def constants_of(path: Path) -> set[str]:
    """Return the constants that a header names."""
    found = header_of(path).partition("\n-- Constants")[2]
    return set(re.findall(r"[A-Z_]+", found))


@cache
def calls() -> dict[str, set[str]]:
    """Return the constants that the code passes, by script."""
    texts = (path.read_text() for path in PACKAGE.rglob("*.py"))
    named = (text for text in texts if re.search(r"\bscript\b", text))
    nodes = (node for text in named for node in ast.walk(ast.parse(text)))
    return {
        ast.literal_eval(node.args[0]): {str(given.arg) for given in node.keywords}
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "script"
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_header_maps_keys_arguments_and_the_result(path: Path) -> None:
    header = header_of(path)
    assert all(line.startswith("-- ") for line in header.splitlines())
    for name in ("KEYS", "ARGV", "Returns"):
        assert re.search(rf"^-- {name}", header, re.M)
    assert max(map(len, path.read_text().splitlines())) <= 100
    read = re.findall(r"(?:ARGV|KEYS)\[\d+\]", lua_text(of_package(path)))
    assert all(f"-- {name}" in header.replace("..]", "]") for name in read)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_constants_of_a_script_are_those_in_its_header(path: Path) -> None:
    used = re.findall(r"\b[A-Z][A-Z_]+\b", re.sub(STRING, "", lua_text(of_package(path))))
    named = constants_of(path)
    assert set(used) - {"KEYS", "ARGV"} == named
    if path.stem in SENT_BY_HOOKS:
        head = SENT_BY_HOOKS[path.stem].removesuffix(lua_text(of_package(path)))
        assert named <= set(re.findall(r"[A-Z_]+", head))
    else:
        assert calls()[path.stem] == named


def of_package(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def test_no_script_is_in_a_python_file() -> None:
    found = [path for path in PACKAGE.rglob("*.py") if "redis.call(" in path.read_text()]
    assert found == []


def test_constants_become_locals_before_the_script() -> None:
    text = script("put_back", A=1, B="two", C=["x", "y"])
    assert text == "local A = 1\nlocal B = 'two'\nlocal C = {'x', 'y'}\n" + script("put_back")


def test_comment_lines_are_not_sent() -> None:
    assert not any(line.lstrip().startswith("--") for line in client.SCRIPT.splitlines())
    assert client.SCRIPT.rstrip().endswith("or new")


def test_a_missing_script_is_named() -> None:
    assert lua_text("queue/lua/none.lua") == ""
    with pytest.raises(FileNotFoundError, match=r"queue/lua/none\.lua"):
        script("none")


def test_the_bundle_of_the_hooks_holds_their_scripts() -> None:
    """Each call that reads a script is replaced by its text, so that a hook reads no other file."""
    read_paths = {
        path
        for name in MODULES
        for path in re.findall(r'lua_text\("([^"]+)"\)', source_of(name).read_text())
    }
    assert read_paths == set(SCRIPTS)
    made = bundle()
    assert b'lua_text("' not in made
    assert all(repr(lua_text(path)).encode() in made for path in SCRIPTS)
