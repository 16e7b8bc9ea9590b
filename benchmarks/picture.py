"""Draw the picture of the benchmarks: the hook and its rivals, and the cost of growth."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure as Canvas

OURS, THEIRS, BARE = "#0b6e4f", "#b0b7bf", "#dfe3e8"
EVENTS = ("PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart")
NATIVE = ("native hook, stack up, worst", "native hook, stack down, worst")


def draw(path: Path, found: dict[str, dict[str, Any]]) -> None:
    """Draw both halves into one PNG."""
    canvas = Canvas(figsize=(12, 4.6), dpi=110, layout="constrained")
    left, right = canvas.subplots(1, 2, width_ratios=(3, 2))
    _hooks(left, found["hook_cost"]["details"])
    _growth(right, found["growth"]["details"])
    canvas.savefig(path)


def _hooks(axes: Any, details: dict[str, Any]) -> None:
    """Draw the hooks' time in bare starts, on a logarithmic scale; rivals come below our events."""
    bars: list[tuple[str, float, str]] = [("bare python", 1.0, BARE)]
    native = details["native"]  # empty where the native hook is not built
    bars += [(name, native[name], OURS) for name in NATIVE if name in native]
    up = details["tables"]["up"]
    for event in EVENTS:
        hook, bare = up[event]["1 kB"]
        bars.append((f"Python hook, {event}", hook / bare, OURS))
    hook, bare = up["PostToolUse"]["1 kB"]
    for rival, events in details["rivals"].items():
        slow, fast = events["PostToolUse"]
        bars.append((f"{rival}, PostToolUse", slow / fast * hook / bare, THEIRS))
    names, values, colours = zip(*bars, strict=True)
    axes.barh(names, values, color=colours)
    for number, value in enumerate(values):
        axes.text(
            value * 1.03, number, f"{value:.2f}" if value < 5 else f"{value:.0f}", va="center"
        )
    axes.set_xscale("log")
    axes.set_xlim(min(values) * 0.8, max(values) * 1.6)
    axes.invert_yaxis()
    axes.set_title("A hook's whole process, in bare Python starts (log scale)")
    axes.spines[["top", "right"]].set_visible(False)


def _growth(axes: Any, details: dict[str, Any]) -> None:
    """Draw the cost of an event over the number of stored events, as multiples of the first."""
    for what, colour in (("writer", OURS), ("hook", "#5b8def"), ("session show", THEIRS)):
        points = {int(level): cost for level, cost in details[what].items()}
        first = points[min(points)]
        axes.plot(
            list(points), [cost / first for cost in points.values()], "o-", label=what, color=colour
        )
    axes.set_xscale("log")
    axes.set_ylim(0, max(2.0, axes.get_ylim()[1]))
    axes.axhline(1, color=BARE, zorder=0)
    axes.set_xlabel("events stored")
    axes.set_title("Cost of an event, beside that at 1,000 stored")
    axes.legend(frameon=False, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
