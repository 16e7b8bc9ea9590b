"""Wheels with the native hook of each platform, and the pure wheel: their contents and hooks."""

import json
import platform
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.conftest import ROOT
from tests.integration import test_installation_forms as forms
from tests.integration.test_installation_forms import Account, assert_records
from tests.native import BUILT
from tests.wheels import PROGRAM, Wheels, program_in

pytestmark = pytest.mark.skipif(not BUILT.exists(), reason="no native hook for this machine")

account = forms.account

HERE = f"{platform.machine()}-linux-musl"
TAGS = {
    "x86_64-linux-musl": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "aarch64-linux-musl": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "x86_64-macos": "macosx_11_0_x86_64",
    "aarch64-macos": "macosx_11_0_arm64",
}
# The first bytes of each target's program: ELF with the machine, Mach-O with the processor.
HEADERS = {
    "x86_64-linux-musl": (18, struct.pack("<H", 62), b"\x7fELF\x02"),
    "aarch64-linux-musl": (18, struct.pack("<H", 183), b"\x7fELF\x02"),
    "x86_64-macos": (4, struct.pack("<I", 0x01000007), b"\xcf\xfa\xed\xfe"),
    "aarch64-macos": (4, struct.pack("<I", 0x0100000C), b"\xcf\xfa\xed\xfe"),
}


def is_cross(target: str) -> bool:
    return "linux" in target and target != HERE


@pytest.mark.parametrize(
    "target",
    [pytest.param(each, marks=[pytest.mark.cross] if is_cross(each) else []) for each in TAGS],
)
def test_a_wheel_of_each_platform_has_its_program_and_tag(wheels: Wheels, target: str) -> None:
    wheel = wheels.built() if target == HERE else wheels.built(TARGET=target)
    assert wheel.name == f"hivepipe-1.0.0-py3-none-{TAGS[target]}.whl"
    with ZipFile(wheel) as file:
        about = file.read("hivepipe-1.0.0.dist-info/WHEEL").decode()
    tags = {line.partition(": ")[2] for line in about.splitlines() if line.startswith("Tag: ")}
    assert tags == {f"py3-none-{tag}" for tag in TAGS[target].split(".")}
    assert "Root-Is-Purelib: false" in about
    program = program_in(wheel)
    at, machine, magic = HEADERS[target]
    assert program.startswith(magic)
    assert program[at:].startswith(machine)


def test_the_pure_wheel_has_no_program(wheels: Wheels) -> None:
    wheel = wheels.built(BUILD="pure")
    assert wheel.name == "hivepipe-1.0.0-py3-none-any.whl"
    assert program_in(wheel) == b""


def test_a_build_is_the_same_from_any_folder(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "native/build.py"), HERE, "made"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert (tmp_path / "made").read_bytes() == BUILT.read_bytes()


def doctor_of(account: Account) -> dict[str, str]:
    """Return doctor's entry on the hook, whatever else doctor finds."""
    command = [account.bin / "hivepipe", "doctor", "--json"]
    done = subprocess.run(command, cwd=account.project, env=account.env, capture_output=True)
    return dict(json.loads(done.stdout)["hook"])


@pytest.mark.long
def test_hooks_of_a_wheel_record_without_a_compiler(
    account: Account, wheels: Wheels, tmp_path: Path
) -> None:
    """The environment has no ziglang, and PATH no `cc`."""
    account.install(str(wheels.built()))
    account.env["PATH"] = f"{account.bin}:{without_compiler(tmp_path)}"
    assert_hook(account, "native")
    program = account.packages / PROGRAM
    other = next(filter(is_cross, TAGS))
    at, machine, _ = HEADERS[other]
    built = program.read_bytes()
    program.write_bytes(built[:at] + machine + built[at + len(machine) :])
    account.open("with-the-program-of-another-machine")
    assert_hook(account, "python")
    program.unlink()
    account.open("without-a-program-as-of-the-pure-wheel")
    assert_hook(account, "python")


def assert_hook(account: Account, kind: str) -> None:
    """Install hooks in the project; they are of a kind, doctor names it, and they record."""
    account.hivepipe("init")
    handlers = account.handlers()
    begin = Path(handlers["Stop"]["command"]).read_bytes()[:4]
    assert (begin == b"\x7fELF") == (kind == "native")
    hook = doctor_of(account)
    assert (hook["kind"], bool(hook["reason"])) == (kind, kind != "native")
    assert_records(account, handlers)


def without_compiler(folder: Path) -> Path:
    """Return a folder with the few programs that a user's shell and hooks need."""
    made = folder / "programs"
    made.mkdir()
    for name in ("sh", "env", "git", "cat", "uname", "dirname", "readlink"):
        (made / name).symlink_to(str(shutil.which(name)))
    return made
