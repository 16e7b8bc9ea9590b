"""Every module can be imported first, and leaves the standard library intact.

Modules of the hook path are imported by an interpreter that has loaded nothing: a process forks
once for each. The others are imported by one process in the order of their imports, so that each
runs directly after `json` was removed, which it could replace. No cycle can break another order.
"""

import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

from hivepipe.stack.hook_bundle import MODULES
from tests.outcome import outcome_of

ROOT = Path(__file__).resolve().parents[2]

# The arguments are the path, "fork" or "", and modules. It prints a line for each that failed.
PROGRAM = """
import gc, os, sys
gc.disable()
path, fork, *names = sys.argv[1:]
sys.path[:0] = path.split(":")
sys.dont_write_bytecode = True
MADE_SO = ("__main__", "typing.io", "typing.re")  # by Python itself

def is_whole(name, module, found):
    if name.partition(".")[0] not in sys.stdlib_module_names or name in MADE_SO:
        return True
    if name in found:
        return False
    place = getattr(module, "__file__", None)
    of_python = place is None or place.startswith((os.path.dirname(os.__file__), sys.prefix))
    return type(module) is type(sys) and of_python

def check(name):
    for other in [name for name in sys.modules if name == "json" or name.startswith("json.")]:
        del sys.modules[other]
    found = dict(sys.modules)
    __import__(name)
    new = [each for each in sys.modules.items() if found.get(each[0]) is not each[1]]
    broken = [name for name, module in new if not is_whole(name, module, found)]
    assert not broken, broken
    import json
    assert json.loads("[1]") == [1]
    assert json.JSONDecodeError is json.decoder.JSONDecodeError

for name in names:
    child = os.fork() if fork else 0
    if child:
        os.waitpid(child, 0)
        continue
    try:
        check(name)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        print(name, "cannot be imported", flush=True)
    if fork:
        os._exit(0)
"""


def failures(modules: list[str], *, fork: bool = False) -> tuple[str, str]:
    """Return a line for each module that fails, and the tracebacks."""
    words = [":".join(sys.path), "fork" * fork, *modules]
    done = outcome_of([sys.executable, "-I", "-S", "-c", PROGRAM, *words], check=True)
    return done.stdout, done.stderr


def test_each_module_of_the_hook_path_can_be_imported_first() -> None:
    assert failures(list(MODULES), fork=True) == ("", "")


def test_each_module_can_be_imported_and_no_imports_form_a_cycle() -> None:
    graph = grimp.build_graph("hivepipe", exclude_type_checking_imports=True, cache_dir=None)
    assert len(graph.modules) == len([*ROOT.glob("hivepipe/**/*.py")])
    imports = {
        name: sorted(graph.find_modules_directly_imported_by(name)) for name in graph.modules
    }
    order = [*TopologicalSorter(imports).static_order()]  # CycleError names them
    assert failures(order) == ("", "")


def test_a_replaced_standard_module_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import sys\nsys.modules.setdefault('json', type('StandIn', (), {}))\n"
    (tmp_path / "stands_in.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    said, traceback = failures(["stands_in"])
    assert said == "stands_in cannot be imported\n"
    assert "AssertionError: ['json']" in traceback


def test_the_python_interface_that_the_pages_name_can_be_imported() -> None:
    page = (ROOT / "docs" / "hive.md").read_text()
    assert "`hivepipe.Orchestrator`" in page
    program = "from hivepipe import Orchestrator"
    subprocess.run([sys.executable, "-I", "-c", program], check=True)
