"""All modules of the hook path in one file, so that a hook loads them in a third of the time.

Importing a module costs 0.15 ms, most of it spent looking for its file: a sixth of a bare
interpreter's start for the whole hook path. The bundle is a cache like Python's own `.pyc`
files, and lies beside them: it is used only while every source file is the one it was made
from, and without it hooks import as usual.

    hivepipe/__pycache__/hook_path.<Python's hexversion>
        0        marshal of (boot, module -> (package?, file, size, time, offset, length), library)
        16384    the modules' code, each a marshal of its own

A hook reads the first block, then of the rest what it imports: all of it is three times as much.
"""

import marshal
import sys
from compileall import compile_file
from importlib.util import find_spec
from pathlib import Path
from types import CodeType

import hivepipe

PACKAGE = Path(hivepipe.__file__).parent
MODULES = (
    "hivepipe",
    "hivepipe.settings",
    "hivepipe.home",
    "hivepipe.events",
    "hivepipe.jobs",
    "hivepipe.hook_log",
    "hivepipe.intake",
    "hivepipe.intake.stdin",
    "hivepipe.intake.instance",
    "hivepipe.intake.throttle",
    "hivepipe.intake.hand_over",
    "hivepipe.intake.autostart",
    "hivepipe.intake.notice",
    "hivepipe.intake.hook",
    "hivepipe.intake.answers",
    "hivepipe.intake.greeting",
    "hivepipe.intake.keywords",
    "hivepipe.intake.recall",
    "hivepipe.intake.plugin",
    "hivepipe.intake.reply",
    "hivepipe.intake.snapshots",
    "hivepipe.guard",
    "hivepipe.guard.check",
    "hivepipe.guard.client",
    "hivepipe.guard.rules",
    "hivepipe.guard.shared_disk",
    "hivepipe.guard.shell_words",
    "hivepipe.guard.shell_writes",
    "hivepipe.guard.words",
    "hivepipe.queues",
    "hivepipe.queues.client",
    "hivepipe.queues.endpoint",
    "hivepipe.queues.spool",
)

# Of the standard library, what is a file of its own.
EXTENSIONS = ("_blake2", "_json", "_socket")

INDEX_BYTES = 16384

# Runs among the globals of the hook's script, which has `root`, `file` and `bundle`; hence only
# what a bare interpreter has loaded.
BOOT = '''
import gc, marshal, posix, sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import ExtensionFileLoader

gc.disable()  # a hook ends before there is garbage worth collecting

class Bundle:
    """Finds the modules of the hook path in the file, while their sources are as they were."""

    def __init__(self, modules, code):
        self.modules = modules
        self.code = code
        self.read = {}

    def find_spec(self, name, path=None, target=None):
        if name not in self.modules:
            return None
        is_package, source, size, time_ns, offset, length = self.modules[name]
        if not length:
            return ModuleSpec(name, ExtensionFileLoader(name, source), origin=source)
        source = f"{root}/{source}"
        now = posix.stat(source)
        code = posix.pread(self.code, length, offset)
        if now.st_size != size or now.st_mtime_ns != time_ns or len(code) != length:
            return None
        self.read[name] = code
        spec = ModuleSpec(name, self, origin=source, is_package=is_package)
        if is_package:
            spec.submodule_search_locations.append(source.rpartition("/")[0])
        spec.has_location = True
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(marshal.loads(self.read.pop(module.__name__)), module.__dict__)

if bundle[2] in sys.path:
    sys.meta_path.insert(0, Bundle(bundle[1], file))
'''


def bundle_path() -> Path:
    """Return where the running interpreter's bundle is."""
    return PACKAGE / "__pycache__" / f"hook_path.{sys.hexversion:x}"


def write_bundle() -> Path:
    """Make the bundle for the running interpreter; OSError where the package is read-only."""
    modules: dict[str, tuple[bool, str, int, int, int, int]] = {}
    codes = b""
    for name in MODULES:
        file = source_of(name)
        status = file.stat()
        place = str(file.relative_to(PACKAGE.parent))  # a copy of the folder has its own sources
        # optimize=2: without docstrings and assertions.
        code = marshal.dumps(
            _without_lines(compile(file.read_bytes(), place, "exec", dont_inherit=True, optimize=2))
        )
        known = (status.st_size, status.st_mtime_ns, INDEX_BYTES + len(codes), len(code))
        modules[name] = (file.name == "__init__.py", place, *known)
        codes += code
    library = ""
    for name in EXTENSIONS:
        spec = find_spec(name)
        if spec and spec.origin and spec.origin.startswith("/"):  # else it is built in
            modules[name] = (False, spec.origin, 0, 0, 0, 0)
            library = spec.origin.rpartition("/")[0]
    boot = compile(BOOT, "<hook bundle>", "exec", dont_inherit=True, optimize=2)
    index = marshal.dumps((boot, modules, library))
    if len(index) > INDEX_BYTES:
        raise ValueError(f"the index of the hook bundle has {len(index)} bytes")
    path = bundle_path()
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_suffix(path.suffix + ".tmp")
    temporary.write_bytes(index.ljust(INDEX_BYTES, b"\0") + codes)
    temporary.replace(path)
    return path


def _without_lines(code: CodeType) -> CodeType:
    """Drop the line numbers, a fifth of the code: hooks log an error's kind alone."""
    constants = tuple(
        _without_lines(value) if isinstance(value, CodeType) else value for value in code.co_consts
    )
    return code.replace(co_consts=constants, co_linetable=b"")


def is_compiled() -> bool:
    """Is there a bundle for the running interpreter, made from the sources as they are now?"""
    try:
        _, modules, _ = marshal.loads(bundle_path().read_bytes())
        return all(
            (now.st_size, now.st_mtime_ns) == (size, time_ns)
            for _, place, size, time_ns, _, length in modules.values()
            if length and (now := (PACKAGE.parent / place).stat())
        )
    except (OSError, ValueError, EOFError, TypeError):
        return False


def compile_hook_path() -> None:
    """Make the `.pyc` files and the bundle of the hook path; a read-only installation does without.

    Without `.pyc` files a hook takes twice as long.
    """
    for name in MODULES:
        compile_file(source_of(name), quiet=2)
    write_bundle_if_possible()


def write_bundle_if_possible() -> None:
    """Make the bundle; a read-only installation does without."""
    try:
        write_bundle()
    except OSError:
        return


def source_of(name: str) -> Path:
    """Return the file of a module of the hook path."""
    inside = PACKAGE.joinpath(*name.split(".")[1:])
    return inside / "__init__.py" if inside.is_dir() else inside.with_suffix(".py")
