"""Find out which hook runs here (native or Python) and why, and measure both start times."""

import os
import statistics
import time
from dataclasses import asdict, dataclass

from hivepipe.settings import variable
from hivepipe.stack import hook_copy

_STARTS = 3


@dataclass(frozen=True)
class HookInUse:
    """The hook's kind (`native` or `python`), why it is not native, and both start times.

    A start time is in milliseconds, or None if that hook does not start here.
    """

    kind: str
    reason: str
    native_ms: float | None
    python_ms: float | None

    @property
    def ratio(self) -> float | None:
        """Return the Python hook's start time divided by the native hook's, or None."""
        if self.native_ms is None or self.python_ms is None:
            return None
        return self.python_ms / self.native_ms

    def line(self) -> str:
        """Describe the hook in use, and both start times, on one line."""
        reason = f" ({self.reason})" if self.reason else ""
        times = {"native": self.native_ms, "Python": self.python_ms}
        found = [f"{name} {ms:.1f} ms" for name, ms in times.items() if ms is not None]
        ratio = f"; Python takes {self.ratio:.1f} times as long" if self.ratio else ""
        return f"hook: {self.kind}{reason}; start time: {', '.join(found) or 'fails'}{ratio}"

    def entry(self) -> dict[str, object]:
        """Return the result in the form that `hivepipe doctor --json` prints."""
        return {**asdict(self), "ratio": self.ratio}


def hook_in_use() -> HookInUse | None:
    """Find and measure the hooks of this installation. Return None if it has no hook copy."""
    if not os.path.exists(hook_copy.launcher()):
        return None
    reason = _reason()
    native = hook_copy.launcher() if hook_copy.is_native() else str(hook_copy.NATIVE)
    times = _starts([native, hook_copy.python_launcher()])
    return HookInUse("python" if reason else "native", reason, *times)


def _reason() -> str:
    """Return why the Python hook runs, or "" if the native hook runs."""
    if variable("HIVEPIPE_HOOK") == "python":
        return "HIVEPIPE_HOOK=python is set"
    if hook_copy.wants_python():
        return "HIVEPIPE_HOOK=python was set at the last `hivepipe init`"
    if hook_copy.is_native():
        return ""
    if not hook_copy.NATIVE.exists():
        return "no native hook was built at the installation: that needs `cc`"
    if not hook_copy.runs(hook_copy.NATIVE):
        return "the native hook does not run on this machine"
    return "the last `hivepipe init` chose it: run `hivepipe init` again"


def _starts(programs: list[str]) -> list[float | None]:
    """Return each program's median start time in ms, or None if it fails; starts alternate."""
    found: list[list[float]] = [[] for _ in programs]
    for _ in range(_STARTS):
        for program, times in zip(programs, found, strict=True):
            times += _start(program)
    return [statistics.median(times) if times else None for times in found]


def _start(program: str) -> list[float]:
    began = time.perf_counter()
    return [(time.perf_counter() - began) * 1000] if hook_copy.runs(program) else []
