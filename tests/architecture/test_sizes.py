"""Limits for the sizes of files and functions."""

import ast
import statistics
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    path for room in ("hivepipe", "hooks", "workers") for path in ROOT.glob(f"{room}/**/*.py")
)
MOST_LINES = 400
MOST_FUNCTION_LINES = 50
MEDIAN_FUNCTION_LINES = 8
# Each module of the hook path costs every tool call 0.1 ms.
LONGER = {
    "hivepipe/events/job_plan.py": 620,
    "hivepipe/events/claude_code.py": 570,
    "hivepipe/home.py": 420,
    "hivepipe/hook/intake.py": 460,
}


@cache
def functions() -> list[tuple[str, int]]:
    return [
        (f"{path.relative_to(ROOT)}:{node.name}", node.end_lineno - node.lineno + 1)  # type: ignore[operator]
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    ]


def test_no_file_is_too_long() -> None:
    lines = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in FILES}
    assert {name: n for name, n in lines.items() if n > LONGER.get(name, MOST_LINES)} == {}


def test_no_function_is_too_long() -> None:
    assert [(name, lines) for name, lines in functions() if lines > MOST_FUNCTION_LINES] == []


def test_the_median_function_is_short() -> None:
    assert statistics.median(lines for _, lines in functions()) <= MEDIAN_FUNCTION_LINES


def test_no_module_is_named_utils_or_helpers() -> None:
    drawers = {"utils", "util", "helpers", "common", "misc", "manager"}
    assert [path for path in FILES if path.stem in drawers or path.parent.name in drawers] == []
