"""Build the native hook: `python native/build.py [TARGET] [FILE]`.

TARGET is a target of zig, such as `aarch64-linux-musl`; the default is this machine. ziglang builds
for every target; without ziglang, `cc` builds for this machine.
"""

import platform
import shutil
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILT = HERE.parent / "hivepipe" / "_native" / "hook"
SYSTEMS = {"Linux": "linux-musl", "Darwin": "macos"}
MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-fstack-protector-strong", "-s")


def target() -> str:
    """Return zig's name for this machine, or "" if the hook is not built for it."""
    machine = MACHINES.get(platform.machine().lower(), "")
    system = SYSTEMS.get(platform.system(), "")
    return f"{machine}-{system}" if machine and system else ""


def has_ziglang() -> bool:
    """Tell whether ziglang, the compiler for every target, is installed."""
    return find_spec("ziglang") is not None


def can_build(wanted: str) -> bool:
    """Tell whether there is a compiler for a target."""
    return has_ziglang() or (wanted == target() and shutil.which("cc") is not None)


def build(wanted: str, path: Path) -> None:
    """Compile. Raise CalledProcessError on failure, with the reason on stderr.

    The compiler runs in "/". Otherwise zig may name its C library relative to the working folder,
    and compiles the library again, for half a minute, under each new name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", wanted, "-Werror"]
    static = ["-static"] if "linux" in wanted else []
    made = str(path.absolute())
    command = [*(zig if has_ziglang() else ["cc"]), *FLAGS, "-o", made, str(HERE / "hook.c")]
    run = partial(subprocess.run, cwd="/")
    done = run([*command, *static], check=has_ziglang(), capture_output=not has_ziglang())
    if done.returncode:  # the system has no static libraries
        run(command, check=True)
    path.chmod(0o755)


def main() -> None:
    """Build for the named target, else for this machine."""
    wanted = sys.argv[1] if sys.argv[1:] else target()
    if wanted:
        build(wanted, Path(sys.argv[2]) if sys.argv[2:] else BUILT)


if __name__ == "__main__":
    main()
