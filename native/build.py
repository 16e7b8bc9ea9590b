"""Build the native hook by ziglang: `python native/build.py [TARGET] [FILE]`.

TARGET is one of zig's, such as `aarch64-linux-musl`; without one it is this machine's.
"""

import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILT = HERE.parent / "hivepipe" / "_native" / "hook"
SYSTEMS = {"Linux": "linux-musl", "Darwin": "macos"}
MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-fstack-protector-strong", "-s")


def target() -> str:
    """Return zig's name of this machine, or "" if the hook is not built for it."""
    machine = MACHINES.get(platform.machine().lower(), "")
    system = SYSTEMS.get(platform.system(), "")
    return f"{machine}-{system}" if machine and system else ""


def build(wanted: str, path: Path) -> None:
    """Compile; CalledProcessError: the compiler said why on stderr."""
    path.parent.mkdir(parents=True, exist_ok=True)
    static = ["-static"] if "linux" in wanted else []
    command = [sys.executable, "-m", "ziglang", "cc", "-target", wanted, *FLAGS, *static]
    subprocess.run([*command, "-o", str(path), str(HERE / "hook.c")], check=True)
    path.chmod(0o755)


def main() -> None:
    """Build for the named target, else for this machine."""
    wanted = sys.argv[1] if sys.argv[1:] else target()
    if wanted:
        build(wanted, Path(sys.argv[2]) if sys.argv[2:] else BUILT)


if __name__ == "__main__":
    main()
