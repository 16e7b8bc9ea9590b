"""Every module can be imported first, and leaves the standard library intact.

A process forks once for each module. Modules of the hook path are imported by an interpreter that
has loaded nothing. The others follow layer by layer: imports point down, so the process may keep
the lower layers loaded, which were tested before. Each child removes `json` first, because a module
of the hook path could replace it.
"""

import re
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

from hivepipe.stack.hook_bundle import MODULES

ROOT = Path(__file__).resolve().parents[2]
EVERY = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in ROOT.glob("hivepipe/**/*.py")
)


def room_of(module: str) -> str:
    """Return the package or module below hivepipe that contains a module."""
    return module.split(".")[1] if "." in module else ""


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
(CONTRACT,) = PROJECT["tool"]["importlinter"]["contracts"]
ROOMS = [re.split(r" [|:] ", layer) for layer in reversed(CONTRACT["layers"])]
LAYERS = [[module for module in EVERY if room_of(module) in rooms] for rooms in ROOMS]

# The arguments are layers of modules. It prints a line for each module that failed.
PROGRAM = """
import gc, os, sys
gc.disable()
path, *layers = sys.argv[1:]
sys.path[:0] = path.split(":")
sys.dont_write_bytecode = True
# Every later child would copy the pages of what these import.
LARGE = ("hivepipe.summaries.by_anthropic", "hivepipe.summaries.by_openai")
MADE_SO = ("__main__", "typing.io", "typing.re")  # by Python itself

def is_whole(name, module):
    if name.partition(".")[0] not in sys.stdlib_module_names or name in MADE_SO:
        return True
    if name in found:
        return module is found[name]
    place = getattr(module, "__file__", None)
    of_python = place is None or place.startswith((os.path.dirname(os.__file__), sys.prefix))
    return type(module) is type(sys) and of_python

for layer in layers:
    for name in layer.split():
        child = os.fork()
        if child:
            if os.waitpid(child, 0)[1]:
                print(name, "cannot be the first import", flush=True)
            continue
        try:
            for other in [name for name in sys.modules if name.partition(".")[0] == "json"]:
                del sys.modules[other]
            found = dict(sys.modules)
            __import__(name)
            broken = [each for each, module in [*sys.modules.items()] if not is_whole(each, module)]
            assert not broken, broken
            import json
            assert json.loads("[1]") == [1]
            assert json.JSONDecodeError is json.decoder.JSONDecodeError
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    for name in layer.split() if layer is not layers[-1] else ():
        if name not in LARGE:
            __import__(name)
"""


def failures(*layers: list[str]) -> tuple[str, str]:
    """Return a line for each module that fails, and the tracebacks; the lowest layer is first."""
    words = [":".join(sys.path), *map(" ".join, layers)]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PROGRAM, *words],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr


def test_each_module_of_the_hook_path_can_be_imported_first() -> None:
    assert failures(list(MODULES)) == ("", "")


@pytest.mark.long
def test_each_module_can_be_imported_first() -> None:
    assert sum(map(len, LAYERS)) == len(EVERY) - 1  # the package itself is in no layer
    assert failures(*LAYERS) == ("", "")


def test_a_replaced_standard_module_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import sys\nsys.modules.setdefault('json', type('StandIn', (), {}))\n"
    (tmp_path / "stands_in.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    said, traceback = failures(["stands_in"])
    assert said == "stands_in cannot be the first import\n"
    assert "AssertionError: ['json']" in traceback


def test_the_python_interface_that_the_pages_name_can_be_imported() -> None:
    page = (ROOT / "docs" / "hive.md").read_text()
    assert "`hivepipe.Orchestrator`" in page
    program = "from hivepipe import Orchestrator"
    subprocess.run([sys.executable, "-I", "-c", program], check=True)


def test_no_imports_form_a_cycle() -> None:
    graph = grimp.build_graph("hivepipe", exclude_type_checking_imports=True, cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    TopologicalSorter(imports).prepare()  # CycleError names them
