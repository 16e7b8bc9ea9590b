"""The geometry of a bar chart's SVG, in percent of its width and height."""

from collections.abc import Sequence
from math import log

from hivepipe.db.listings import Entry

_GAP = 0.2  # share of a bar's slot
_FEWEST = 60  # slots, so that a single bar is not as wide as the chart


def bars(heights: Sequence[float], slots: int) -> list[Entry]:
    """Return `x`, `y`, `width` and `height` of a bar per height; the highest bar is 100 % high."""
    highest = max(heights, default=0) or 1
    place = 100 / slots
    return [
        {
            "x": round(number * place, 3),
            "y": round(100 * (1 - height / highest), 3),
            "width": round(place * (1 - _GAP), 3),
            "height": round(100 * height / highest, 3),
        }
        for number, height in enumerate(heights)
    ]


def latency_bars(course: Sequence[Entry]) -> list[Entry]:
    """Return latency samples, oldest first, each with a bar of the logarithm of its p99 latency.

    The bars are spread over the whole width, because the labels below name the first and the last.
    """
    heights = [log(1 + each["p99_ms"]) for each in course]
    drawn = bars(heights, max(len(course), _FEWEST))
    apart = (100 - drawn[0]["width"]) / max(len(drawn) - 1, 1) if drawn else 0
    return [
        {**each, **bar, "x": round(number * apart, 3)}
        for number, (each, bar) in enumerate(zip(course, drawn, strict=True))
    ]
