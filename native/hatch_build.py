"""Builds the native hook into a platform wheel, if there is a compiler (build.py).

Without a compiler, or with HIVEPIPE_BUILD=pure, the wheel is pure and contains only the Python
hook. HIVEPIPE_TARGET names one of `TARGETS`, to build for another machine with ziglang.
"""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Target -> tag of the wheel if ziglang builds it. The Linux wheels run on any distribution.
TARGETS = {
    "x86_64-linux-musl": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "aarch64-linux-musl": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "x86_64-macos": "macosx_11_0_x86_64",
    "aarch64-macos": "macosx_11_0_arm64",
}


class NativeHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds `hivepipe/_native/hook` and the tag of the platform to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, unless the wheel is editable or pure."""
        if self.target_name != "wheel" or version == "editable":
            return
        sys.path.insert(0, str(Path(self.root, "native")))
        import build  # noqa: PLC0415  of the sdist's own folder

        wanted = os.environ.get("HIVEPIPE_TARGET") or build.target()
        is_pure = os.environ.get("HIVEPIPE_BUILD") == "pure"
        if is_pure or wanted not in TARGETS or not build.can_build(wanted):
            return
        built = Path(self.directory, "native", wanted, "hook")
        try:
            build.build(wanted, built)
        except subprocess.CalledProcessError as error:
            self.app.display_warning(f"no native hook: {error}")
            return
        build_data["force_include"][str(built)] = "hivepipe/_native/hook"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{TARGETS[wanted] if build.has_ziglang() else own_tag()}"


def own_tag() -> str:
    """Return the tag of this machine, for a hook that the machine's own compiler built."""
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
