"""The geometry of the latency chart's SVG, in percent of its width and height."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from hivepipe.db.listings import Entry

_GAP = 0.2  # share of a bar's slot
_FEWEST = 60  # slots, so that a single bar is not as wide as the page


@dataclass(frozen=True)
class LatencyBar:
    """The latencies of one sample; `x`, `y`, `width` and `height` are in percent."""

    at: str
    jobs: int
    p50_ms: float
    p99_ms: float
    x: float
    y: float
    width: float
    height: float


def latency_bars(course: Sequence[Entry]) -> list[LatencyBar]:
    """Return a bar for each sample, oldest first; the height is the logarithm of the p99."""
    heights = [log(1 + each["p99_ms"]) for each in course]
    highest = max(heights, default=1)
    place = 100 / max(len(course), _FEWEST)
    return [
        LatencyBar(
            **each,
            x=round(number * place, 3),
            y=round(100 * (1 - height / highest), 3),
            width=round(place * (1 - _GAP), 3),
            height=round(100 * height / highest, 3),
        )
        for number, (each, height) in enumerate(zip(course, heights, strict=True))
    ]
