"""All modules of the hook path in one file, so that a hook loads them in a third of the time.

Importing a module takes 0.15 ms, mostly to search for its file. The imports of the whole hook path
would take a sixth of the start of a bare interpreter. The bundle needs no other file of the
package. So a hook works while an upgrade replaces the package's files one by one.

    0        marshal of (magic, boot, boot's source, module -> location, library, sources, location
             of the last part)
    16384    the marshalled code of each module, the source texts, and the code of FIRST

A hook reads the first block, and then only the modules that the hook imports: a third of the file.
The source texts are needed if an upgrade brings a Python with another bytecode version. Modules are
executed without the import system, which takes 0.04 ms a module. The modules that every event needs
(FIRST) are read together.
"""

import ast
import errno
import marshal
from importlib.util import MAGIC_NUMBER, find_spec
from pathlib import Path
from types import CodeType

import hivepipe
from hivepipe.home import lua_text

PACKAGE = Path(hivepipe.__file__).parent
MODULES = (
    "hivepipe",
    "hivepipe.sender",
    "hivepipe.settings",
    "hivepipe.home",
    "hivepipe.text",
    "hivepipe.text.visible",
    "hivepipe.text.quoting",
    "hivepipe.events",
    "hivepipe.events.hosts",
    "hivepipe.events.claude_code",
    "hivepipe.events.task_notifications",
    "hivepipe.events.other_events",
    "hivepipe.events.notices",
    "hivepipe.events.job_plan",
    "hivepipe.files",
    "hivepipe.files.hook_log",
    "hivepipe.hook",
    "hivepipe.hook.stdin",
    "hivepipe.hook.instance",
    "hivepipe.hook.throttle",
    "hivepipe.hook.hand_over",
    "hivepipe.hook.autostart",
    "hivepipe.hook.waiting_notice",
    "hivepipe.hook.intake",
    "hivepipe.hook.run",
    "hivepipe.hook.answers",
    "hivepipe.hook.compiled_settings",
    "hivepipe.hook.greeting",
    "hivepipe.hook.keywords",
    "hivepipe.hook.recall",
    "hivepipe.hook.plugin",
    "hivepipe.hook.probe_event",
    "hivepipe.hook.status_line",
    "hivepipe.hook.verdict_answer",
    "hivepipe.hook.identity_snapshots",
    "hivepipe.guard",
    "hivepipe.guard.check",
    "hivepipe.guard.client",
    "hivepipe.guard.rules",
    "hivepipe.guard.shared_disk",
    "hivepipe.guard.shell_options",
    "hivepipe.guard.shell_text",
    "hivepipe.guard.shell_variables",
    "hivepipe.guard.shell_words",
    "hivepipe.guard.shell_wrappers",
    "hivepipe.guard.shell_writes",
    "hivepipe.guard.messages",
    "hivepipe.queue",
    "hivepipe.queue.client",
    "hivepipe.queue.endpoint",
    "hivepipe.queue.spool",
)

# Modules that every event needs, in an order in which each needs only earlier ones.
FIRST = (
    "hivepipe",
    "hivepipe.hook",
    "hivepipe.sender",
    "hivepipe.settings",
    "hivepipe.home",
    "hivepipe.events.claude_code",
    "hivepipe.events",
    "hivepipe.events.job_plan",
    "hivepipe.hook.instance",
    "hivepipe.hook.intake",
    "hivepipe.hook.stdin",
    "hivepipe.hook.run",
)

# Lua scripts that hooks send. The bundle contains their texts instead of the calls that read them.
SCRIPTS = (
    *("queue/lua/push.lua", "queue/lua/count_hook.lua", "queue/lua/in_time.lua"),
    *("guard/lua/note.lua", "guard/lua/verdict.lua"),
)

# Modules of the standard library that are separate files.
EXTENSIONS = ("_blake2", "_json", "_socket")

INDEX_BYTES = 16384
_PLAIN_MARSHAL = 2  # a version that every Python can read

# Executed in the globals of the hook's script, which defines `words`, `here`, `python`
# and `posix`.
START = """
import sys
event = words[0].title().replace("_", "") if words else ""
sys.argv = [sys.argv[0], *words[1:]]
sys.executable = python  # whatever PYTHONEXECUTABLE says
state = here.rpartition("/hivepipe/hooks/")[0]
if state:  # the records are beside this file, whatever HOME says in a session
    posix.environ[b"XDG_STATE_HOME"] = state.encode("utf-8", "surrogateescape")
if event == "Statusline":
    from hivepipe.hook.status_line import run
elif event == "StartStack":
    from hivepipe.hook.autostart import run
else:
    from hivepipe.hook.run import run
"""

# Executed like START, but with modules from the bundle. The script also defines `root`, `file`,
# `magic` and `bundle`. This code may import only modules that a bare interpreter has already
# loaded.
BOOT = (
    '''
import builtins, gc, marshal, posix, sys
from _frozen_importlib import ModuleSpec
from _imp import create_dynamic, exec_dynamic

gc.disable()  # a hook ends before there is garbage worth collecting

library = bundle[4]
modules = bundle[3]
if library and library not in sys.path:
    modules = {name: found for name, found in modules.items() if found[1]}
usual_import = builtins.__import__

def import_(name, globals=None, locals=None, parts=(), level=0):
    """Load modules of the bundle before the import system finds that they are missing."""
    for each in (name, *[f"{name}.{part}" for part in parts or ()]):
        if each in modules and each not in sys.modules:
            load(each)
    return usual_import(name, globals, locals, parts, level)

def load(name):
    package = name.rpartition(".")[0]
    if package and package not in sys.modules:
        load(package)
    source, code, text = modules[name]
    if not code:
        module = sys.modules[name] = create_dynamic(ModuleSpec(name, None, origin=source))
        return exec_dynamic(module)
    make(name, source)
    try:
        if bundle[0] == magic:
            code = marshal.loads(posix.pread(file, *code))
        else:
            code = compile(posix.pread(file, *text), source, "exec", 0, True, 2)
        execute(name, code)
    except BaseException:
        del sys.modules[name]
        raise

def make(name, source):
    module = sys.modules[name] = type(sys)(name)
    module.__file__ = f"{root}/{source}"
    if source.endswith("/__init__.py"):
        module.__path__ = [module.__file__.rpartition("/")[0]]

def execute(name, code):
    exec(code, sys.modules[name].__dict__)
    package, _, own_name = name.rpartition(".")
    if package:
        setattr(sys.modules[package], own_name, sys.modules[name])

if bundle[0] == magic and words[:1] not in (["statusline"], ["start_stack"]):
    first = marshal.loads(posix.pread(file, *bundle[6]))
    for name in ("_blake2", "_json"):
        if name in modules:
            load(name)
    for name, source, _ in first:
        make(name, source)
    for name, _, code in first:
        execute(name, code)
builtins.__import__ = import_  # from here on, because each import statement pays for it
'''
    + START
)


def bundle() -> bytes:
    """Return the bundle for this interpreter. Raise OSError if the package is being replaced.

    Raise ValueError if the index exceeds INDEX_BYTES.
    """
    files = {name: source_of(name) for name in MODULES}
    sources = _sources()
    texts = {name: _with_scripts(file.read_text()) for name, file in files.items()}
    places = {name: str(file.relative_to(PACKAGE.parent)) for name, file in files.items()}
    compiled = {name: _compiled(text, places[name]) for name, text in texts.items()}
    first = marshal.dumps([(name, places[name], compiled[name]) for name in FIRST])
    codes = {name: marshal.dumps(code) for name, code in compiled.items()}
    at_code = _offsets(codes, INDEX_BYTES)
    at_text = _offsets(texts, INDEX_BYTES + sum(map(len, codes.values())))
    body = b"".join([*codes.values(), *texts.values()])
    modules: dict[str, tuple[object, ...]] = {
        name: (places[name], at_code[name], at_text[name]) for name in files
    }
    extensions = _extensions()
    modules |= {name: (origin, (), ()) for name, origin in extensions.items()}
    library = next(iter(extensions.values()), "").rpartition("/")[0]
    boot = marshal.dumps(compile(BOOT, "<hook bundle>", "exec", dont_inherit=True, optimize=2))
    if sources != _sources():
        raise FileNotFoundError(errno.ENOENT, "the package is being replaced")
    at_first = len(first), INDEX_BYTES + len(body)
    index = (MAGIC_NUMBER, boot, BOOT, modules, library, sources, at_first)
    head = marshal.dumps(index, _PLAIN_MARSHAL)
    if len(head) > INDEX_BYTES:
        raise ValueError(f"the index of the hook bundle has {len(head)} bytes")
    return head.ljust(INDEX_BYTES, b"\0") + body + first


def _with_scripts(text: str) -> bytes:
    for path in SCRIPTS:
        text = text.replace(f'lua_text("{path}")', repr(lua_text(path)))
    return text.encode()


def _offsets(parts: dict[str, bytes], start: int) -> dict[str, tuple[int, int]]:
    """Return length and offset of each part, in the order of `pread`'s arguments."""
    found = {}
    for name, data in parts.items():
        found[name] = (len(data), start)
        start += len(data)
    return found


def _extensions() -> dict[str, str]:
    """Return name -> file of those modules in EXTENSIONS that are separate files."""
    specs = {name: find_spec(name) for name in EXTENSIONS}
    origins = {name: spec.origin or "" for name, spec in specs.items() if spec}
    return {name: origin for name, origin in origins.items() if origin.startswith("/")}


def _sources() -> tuple[tuple[int, int], ...]:
    """Return size and modification time of every source, to detect an outdated bundle."""
    files = [*map(source_of, MODULES), *(PACKAGE / path for path in SCRIPTS)]
    found = [file.stat() for file in files]
    return tuple((status.st_size, status.st_mtime_ns) for status in found)


def _compiled(text: bytes, place: str) -> CodeType:
    """Compile a module without docstrings, assertions and annotations, which take time to run."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef):
            node.returns = None
    return _without_lines(compile(tree, place, "exec", dont_inherit=True, optimize=2))


def _without_lines(code: CodeType) -> CodeType:
    """Remove the line numbers, a fifth of the code, because hooks log only an error's type."""
    constants = tuple(
        _without_lines(value) if isinstance(value, CodeType) else value for value in code.co_consts
    )
    return code.replace(co_consts=constants, co_linetable=b"")


def is_current(data: bytes) -> bool:
    """Tell whether a bundle matches the current sources and the running interpreter."""
    try:
        magic, _, boot, _, _, sources, _ = marshal.loads(data)
        return bool((magic, boot, sources) == (MAGIC_NUMBER, BOOT, _sources()))
    except (OSError, ValueError, EOFError, TypeError):
        return False


def source_of(name: str) -> Path:
    """Return the source file of a module of the hook path."""
    inside = PACKAGE.joinpath(*name.split(".")[1:])
    return inside / "__init__.py" if inside.is_dir() else inside.with_suffix(".py")
