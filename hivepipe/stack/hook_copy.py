"""The program that Claude Code runs on every event: a copy of the hook path in the state folder.

Claude Code's settings name this program and no file of the package. Files of the package may be
missing: pip replaces them one by one, and they are deleted with their virtual environment.

    <state>/hivepipe/hooks/<hash of the package's folder>/
        hook         the native hook (native/hook.c) or a copy of hook.py; usage: `hook [EVENT]`
        hook.py      the Python hook, run by the interpreter in its first line
        hook_path    its modules (hivepipe.stack.hook_bundle)
        python-only  exists if the last `init` had HIVEPIPE_HOOK=python: `hook` is the Python hook
    <state>/hivepipe/hooks/default -> the folder that `init` made last, for hooks called by name;
        without an `init`, the folder that a start of a stack made first

`init` and every start of a stack update the copy if the package has changed. Each file is replaced
atomically.
"""

import os
import shlex
import sys
from pathlib import Path

from hivepipe import settings
from hivepipe.errors import StackError, os_error_as
from hivepipe.files.regular_file import read_bytes, regular
from hivepipe.home import read_small, real_path, short_hash, state_folder
from hivepipe.programs import run_to_end
from hivepipe.stack.hook_bundle import INDEX_BYTES, PACKAGE, bundle, is_current
from hivepipe.stack.installed import installed
from hivepipe.stack.runtime_folder import make_private

NATIVE = PACKAGE / "_native" / "hook"  # in wheels for a platform, and built by `make install`
LARGEST_HOOK = 1 << 20
TRIAL_SECS = 5
_LONGEST_SHEBANG = 115  # bytes of the path; older kernels cut the line at 127
# `-ISXutf8` is `-I -S -X utf8`: the kernel passes the rest of the line as one argument.
_SHEBANG = "#!{python} -ISXutf8\n"
# Valid as sh and as Python, for interpreter paths that do not fit in a `#!` line.
_BY_SHELL = "#!/bin/sh\n'''exec' {python} -I -S -X utf8 \"$0\" \"$@\"\n' '''\n"
_PROGRAM = """\
# Claude Code runs this on every event: `hook EVENT`, and as a status line: `hook statusline`.
# `hivepipe init` makes it, of the package in {root}.
# Without an argument it takes the name from the event: some programs that run the hooks of Claude
# Code's settings ignore `args`.
import marshal
import posix
import sys
from _frozen_importlib_external import MAGIC_NUMBER as magic

root, python, words = {root!r}, {python!r}, sys.argv[1:]
here = __file__.rpartition("/")[0]
try:
    sys.path.append(root)
    try:  # the bundle has the boot code compiled, because compiling it takes 0.2 ms
        file = posix.open(here + "/hook_path", posix.O_RDONLY | posix.O_CLOEXEC)
        bundle = marshal.loads(posix.read(file, {index_bytes}))
        exec(marshal.loads(bundle[1]) if bundle[0] == magic else bundle[2])
        run
    except Exception:  # without a bundle, import the package itself
        from hivepipe.stack.hook_bundle import START
        exec(START)
except BaseException as error:
    # One report per turn is enough, and some programs take exit code 1 as a denial.
    if words[:1] not in (["session_start"], ["stop"]):
        sys.exit()
    sys.exit(f"hivepipe records nothing ({{error}}): run `hivepipe init`")
run(event)
"""


def launcher() -> str:
    """Return the path of this installation's hook program."""
    return f"{_folder()}/{short_hash(str(PACKAGE))}/hook"


def default_launcher() -> str:
    """Return the path of the hook program in `default`, the folder that `init` made last."""
    return f"{_folder()}/default/hook"


def is_in_place(launcher: str) -> bool:
    """Tell whether a program is in the folder of this user's hook copies."""
    return real_path(os.path.dirname(os.path.dirname(launcher))) == real_path(_folder())


def _folder() -> str:
    return f"{state_folder()}/hooks"


def write(as_default: bool = False) -> None:
    """Write the copy of the hook path, if the existing copy is not up to date.

    The copy becomes the default copy if `as_default` is True or no default copy exists. With
    `as_default`, HIVEPIPE_HOOK chooses the hook also for later updates.
    Raise StackError if the copy cannot be written or executed.
    """
    path = Path(launcher())
    make_private(str(path.parent))
    with os_error_as(StackError, f"cannot write {path}"):
        if as_default:
            _note_choice(path.with_name("python-only"))
        if not is_fresh():
            _replace(path.with_name("hook_path"), bundle(), 0o600)
            _replace(path.with_name("hook.py"), _python_hook(), 0o700)
            _replace(path, _chosen(path.with_name(f"hook.{os.getpid()}.new")), 0o700)
        if as_default or not os.path.exists(default_launcher()):
            _link(path.parent)
    if not os.access(path, os.X_OK):
        raise StackError(f"{path} cannot be executed: is its file system mounted noexec?")


def _note_choice(mark: Path) -> None:
    if settings.variable("HIVEPIPE_HOOK") == "python":
        mark.touch()
    else:
        mark.unlink(missing_ok=True)


def wants_python() -> bool:
    """Tell whether the last `init` chose the Python hook."""
    return Path(launcher()).with_name("python-only").exists()


def _chosen(trial: Path) -> bytes:
    """Return the native hook if it is wanted and runs here, else the Python hook.

    `trial` is the path of a temporary copy of the native hook, which is run once.
    """
    if wants_python() or not NATIVE.exists():
        return _python_hook()
    data = NATIVE.read_bytes()
    _replace(trial, data, 0o700)
    try:
        return data if runs(trial) else _python_hook()
    finally:
        trial.unlink(missing_ok=True)


def runs(program: str | Path) -> bool:
    """Tell whether a hook program runs here: with HIVEPIPE_DISABLED it must end without output."""
    done = run_to_end([program], TRIAL_SECS, {"HIVEPIPE_DISABLED": "1"})
    return done is not None and (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def is_native() -> bool:
    path = Path(launcher())
    return path.exists() and path.read_bytes()[:2] != b"#!"


def python_launcher() -> str:
    return f"{launcher()}.py"


def refresh() -> None:
    """Update the copy of the hook path if the package has changed. On an error the old copy stays.

    Do nothing while an upgrade is running: only some modules are new at that time.
    """
    if installed() and not is_fresh():
        try:
            write()
        except StackError:
            return


def is_fresh() -> bool:
    """Tell whether the copy of the hook path exists and matches the current package."""
    path = Path(launcher())
    try:
        with open(path.with_name("hook_path"), "rb", opener=regular) as file:
            data = file.read(INDEX_BYTES)
        is_ours = read_bytes(path.with_name("hook.py"), LARGEST_HOOK) == _python_hook()
        return is_ours and _is_chosen(path) and os.access(path, os.X_OK) and is_current(data)
    except OSError:
        return False


def _is_chosen(path: Path) -> bool:
    """Tell whether a program is the hook that `write` would install, native or Python."""
    data = read_bytes(path, LARGEST_HOOK)
    if data == _python_hook():
        return wants_python() or not NATIVE.exists() or not runs(NATIVE)
    return not wants_python() and NATIVE.exists() and data == NATIVE.read_bytes()


def interpreter_of(path: str) -> list[str]:
    """Return a list with the path of a hook copy's Python, or [] if the hook is missing."""
    text = read_small(f"{path}.py") or read_small(path)  # version 1.0.0 has only one program
    first, second, *_ = *text.splitlines(), "", ""
    if first.startswith("#!/bin/sh"):
        return shlex.split(second.removeprefix("'''exec'"))[:1]
    return first.removeprefix("#!").rsplit(" ", 1)[:1] if first else []


def _python_hook() -> bytes:
    # The real path avoids shims, such as pyenv's, which make a hook several times slower.
    python = os.path.realpath(sys.executable)
    is_plain = " " not in python and "\t" not in python
    fits = is_plain and len(os.fsencode(python)) <= _LONGEST_SHEBANG
    first = _SHEBANG.format(python=python) if fits else _BY_SHELL.format(python=shlex.quote(python))
    root = str(PACKAGE.parent)
    text = first + _PROGRAM.format(root=root, python=python, index_bytes=INDEX_BYTES)
    return text.encode("utf-8", "surrogateescape")


def _replace(path: Path, data: bytes, mode: int) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        with open(os.open(temporary, flags, mode), "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # an empty program would fail at every event
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _link(folder: Path) -> None:
    temporary = Path(f"{_folder()}/default.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(folder.name)
    temporary.replace(f"{_folder()}/default")
