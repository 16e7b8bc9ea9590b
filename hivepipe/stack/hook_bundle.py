"""All modules of the hook path in one file, so that a hook loads them in a third of the time.

Importing a module costs 0.15 ms, most of it spent looking for its file: a sixth of a bare
interpreter's start for the whole hook path. The bundle is a cache like Python's own `.pyc`
files, and lies beside them: it is used only while every source file is the one it was made
from, and without it hooks import as usual.

    hivepipe/__pycache__/hook_path.<Python's hexversion>    marshal of what `write_bundle` collects
"""

import marshal
import sys
from compileall import compile_file
from importlib.util import find_spec
from pathlib import Path

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
    "hivepipe.intake.reply",
    "hivepipe.intake.snapshots",
    "hivepipe.guard",
    "hivepipe.guard.check",
    "hivepipe.guard.client",
    "hivepipe.guard.rules",
    "hivepipe.guard.shared_disk",
    "hivepipe.guard.shell_writes",
    "hivepipe.guard.words",
    "hivepipe.queues",
    "hivepipe.queues.client",
    "hivepipe.queues.endpoint",
    "hivepipe.queues.spool",
)

# Of the standard library, what is a file of its own.
EXTENSIONS = ("_blake2", "_json", "_socket")

# Runs among the globals of the hook's script, which has `root` and `bundle`; hence only what a
# bare interpreter has loaded.
BOOT = '''
import gc, marshal, posix, sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import ExtensionFileLoader

gc.disable()  # a hook ends before there is garbage worth collecting

class Bundle:
    """Finds the modules of the hook path among the marshalled ones."""

    def __init__(self, modules):
        self.modules = modules

    def find_spec(self, name, path=None, target=None):
        if name not in self.modules:
            return None
        is_package, file, code = self.modules[name]
        if not code:
            return ModuleSpec(name, ExtensionFileLoader(name, file), origin=file)
        file = f"{root}/{file}"
        spec = ModuleSpec(name, self, origin=file, is_package=is_package)
        if is_package:
            spec.submodule_search_locations.append(file.rpartition("/")[0])
        spec.has_location = True
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(marshal.loads(self.modules[module.__name__][2]), module.__dict__)

def unchanged(file, size, time_ns):
    now = posix.stat(f"{root}/{file}")
    return now.st_size == size and now.st_mtime_ns == time_ns

if bundle[3] in sys.path and all(unchanged(*source) for source in bundle[1]):
    sys.meta_path.insert(0, Bundle(bundle[2]))
'''


def bundle_path() -> Path:
    """Return where the running interpreter's bundle is."""
    return PACKAGE / "__pycache__" / f"hook_path.{sys.hexversion:x}"


def write_bundle() -> Path:
    """Make the bundle for the running interpreter; OSError where the package is read-only."""
    sources = []
    modules = {}
    for name in MODULES:
        file = source_of(name)
        status = file.stat()
        place = str(file.relative_to(PACKAGE.parent))  # a copy of the folder has its own sources
        sources.append((place, status.st_size, status.st_mtime_ns))
        code = compile(file.read_bytes(), place, "exec", dont_inherit=True)
        modules[name] = (file.name == "__init__.py", place, marshal.dumps(code))
    library = ""
    for name in EXTENSIONS:
        spec = find_spec(name)
        if spec and spec.origin and spec.origin.startswith("/"):  # else it is built in
            modules[name] = (False, spec.origin, b"")
            library = spec.origin.rpartition("/")[0]
    boot = compile(BOOT, "<hook bundle>", "exec", dont_inherit=True)
    path = bundle_path()
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_suffix(path.suffix + ".tmp")
    temporary.write_bytes(marshal.dumps((boot, tuple(sources), modules, library)))
    temporary.replace(path)
    return path


def is_compiled() -> bool:
    """Is there a bundle for the running interpreter, made from the sources as they are now?"""
    try:
        _, sources, _, _ = marshal.loads(bundle_path().read_bytes())
        found = [(PACKAGE.parent / place).stat() for place, _, _ in sources]
        return [(status.st_size, status.st_mtime_ns) for status in found] == [
            (size, time_ns) for _, size, time_ns in sources
        ]
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
