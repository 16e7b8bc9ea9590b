"""Whole files are read by files.regular_file, so that no pipe or device blocks a reader."""

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "hivepipe"
FILES = sorted(PACKAGE.rglob("*.py"))
# the module itself, files of the package, and files that the user names on the command line
OTHERS = {
    "files/regular_file.py",
    "costs/price_table.py",
    "stack/hook_bundle.py",
    "stack/hook_copy.py",
    "install/known_entries.py",
    "cli/redact.py",
    "cli/guard.py",
}
CALL = re.compile(r"\b(open|read_text|read_bytes)\(")  # only files with one are parsed


def reads(tree: ast.AST) -> list[int]:
    """Return the lines that open or read a file by its path in another way."""
    found = []
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        named = {word.arg for word in call.keywords}
        modes = [each.value for each in call.args if isinstance(each, ast.Constant)]
        is_method = isinstance(call.func, ast.Attribute)
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if isinstance(call.func, ast.Name):
            name = call.func.id
        if is_method and name in ("read_text", "read_bytes"):
            found.append(call.lineno)
        if name == "open" and "opener" not in named and "fileobj" not in named:
            opened = ast.unparse(call.args[0]) if call.args else ""
            if opened.startswith("regular("):
                continue
            is_builtin = not is_method and call.args and not isinstance(call.args[0], ast.Name)
            if modes == ["rb"] or (is_builtin and modes in ([], ["r"])):
                found.append(call.lineno)
    return found


def test_no_file_is_read_in_another_way() -> None:
    texts = {str(path.relative_to(PACKAGE)): path.read_text() for path in FILES}
    calling = {name: text for name, text in texts.items() if CALL.search(text)}
    assert {name for name, text in calling.items() if reads(ast.parse(text))} <= OTHERS
