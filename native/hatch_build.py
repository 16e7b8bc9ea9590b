"""Builds the native hook into a wheel of its platform, where ziglang is installed.

Without ziglang, or with HIVEPIPE_BUILD=pure, the wheel is the pure one, with the Python hook alone.
HIVEPIPE_TARGET names one of `TARGETS` to build for another machine.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Of each target the tag of its wheel. The Linux ones are static, and run on any distribution.
TARGETS = {
    "x86_64-linux-musl": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "aarch64-linux-musl": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "x86_64-macos": "macosx_11_0_x86_64",
    "aarch64-macos": "macosx_11_0_arm64",
}


class NativeHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds `hivepipe/_native/hook` and the platform's tag."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, unless the wheel is an editable or the pure one."""
        if self.target_name != "wheel" or version == "editable" or is_pure():
            return
        sys.path.insert(0, str(Path(self.root, "native")))
        from build import build, target  # noqa: PLC0415  of the sdist's own folder

        wanted = os.environ.get("HIVEPIPE_TARGET") or target()
        if wanted not in TARGETS:
            return
        built = Path(self.directory, "native", wanted, "hook")
        build(wanted, built)
        build_data["force_include"][str(built)] = "hivepipe/_native/hook"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{TARGETS[wanted]}"


def is_pure() -> bool:
    """Tell whether no native hook is to be, or can be, built."""
    return os.environ.get("HIVEPIPE_BUILD") == "pure" or find_spec("ziglang") is None
