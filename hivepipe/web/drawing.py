"""The geometry of the time line's SVG: x in percent of the width, y in pixels."""

from dataclasses import dataclass
from datetime import timedelta

from markupsafe import Markup

from hivepipe.reading.session_work import Call, Lane, Mark, Work
from hivepipe.times import ns_of, stored_time

ROW = 34  # pixels of a lane
AXIS = 22
STEP, DEEPEST = 12, 8
QUARTERS = 4
MOST_LANES = 60
MOST_BARS = 3000
LONGEST_TITLE = 200
_THINNEST = 0.1  # percent: an SVG does not draw a bar without a width
_DAY_NS = 86_400 * 10**9
_SHORTEST_NS = QUARTERS * 10**9  # shortest drawn range: labels of quarters show whole seconds


@dataclass(frozen=True)
class Bar:
    """A tool call, or the mark of a prompt or error; x and width in percent, y in pixels."""

    x: float
    width: float
    y: int
    look: str
    title: str
    piece: int

    @property
    def is_mark(self) -> bool:
        return "mark" in self.look

    @property
    def place(self) -> Markup:
        """Return the attributes of the bar's rectangle, which are numbers only."""
        height = 18 if self.is_mark else 14
        return Markup(f'x="{self.x}%" y="{self.y}" width="{self.width}%" height="{height}"')


@dataclass(frozen=True)
class Label:
    text: str
    y: int
    indent: int  # pixels: one step for each ancestor


@dataclass(frozen=True)
class Quarter:
    """A quarter of the axis: position in percent, begin and end as times of the store."""

    x: float
    began: str
    ended: str


@dataclass(frozen=True)
class Drawing:
    """A time line; `left_out` counts lanes and bars that are not drawn."""

    began: str
    ended: str
    height: int
    labels: list[Label]
    bars: list[Bar]
    quarters: list[Quarter]
    left_out: int

    @property
    def has_days(self) -> bool:
        """Tell whether the drawing covers a day or more; its times are then shown with the day."""
        return ns_of(self.ended) - ns_of(self.began) >= _DAY_NS


def drawing_of(work: Work, since: str = "", until: str = "") -> Drawing | None:
    """Return the drawing of a range of times (default: all), or None if the work has no times."""
    if not work.began:
        return None
    began = ns_of(since or work.began)
    ended = max(ns_of(until or work.ended), began + _SHORTEST_NS)
    axis = _Axis(began, ended)
    lanes = [lane for lane in work.lanes if axis.shows(lane) or not lane.agent]
    drawn = lanes[:MOST_LANES]
    # The first bar of each lane, then the second ones: only the lanes with the most bars are cut.
    bars = sorted(
        (number, row, bar)
        for row, lane in enumerate(drawn)
        for number, bar in enumerate(axis.bars(lane, AXIS + row * ROW))
    )
    kept = sorted(bars[:MOST_BARS], key=lambda each: (each[1], each[2].is_mark))
    return Drawing(
        began=stored_time(began),
        ended=stored_time(ended),
        height=AXIS + len(drawn) * ROW,
        labels=[
            Label(lane.title, AXIS + row * ROW + 12, min(lane.depth, DEEPEST) * STEP)
            for row, lane in enumerate(drawn)
        ],
        bars=[bar for _, _, bar in kept],  # sorted so that marks are drawn over calls
        quarters=axis.quarters(),
        left_out=len(lanes) - len(drawn) + len(bars) - len(kept),
    )


@dataclass(frozen=True)
class _Axis:
    began: int  # ns
    ended: int

    def shows(self, lane: Lane) -> bool:
        times = [(call.began, call.ended or call.began) for call in lane.calls]
        times += [(mark.at, mark.at) for mark in lane.marks]
        return any(ns_of(end) >= self.began and ns_of(at) <= self.ended for at, end in times)

    def bars(self, lane: Lane, top: int) -> list[Bar]:
        """Return the bars of a lane at height `top`: those of marks, then those of calls."""
        found = [self._mark(mark, top) for mark in lane.marks]
        found += [self._call(call, top) for call in lane.calls]
        return [bar for bar in found if bar]

    def quarters(self) -> list[Quarter]:
        step = (self.ended - self.began) // QUARTERS
        times = [stored_time(self.began + step * number) for number in range(QUARTERS + 1)]
        return [
            Quarter(100 / QUARTERS * number, times[number], times[number + 1])
            for number in range(QUARTERS)
        ]

    def _call(self, call: Call, top: int) -> Bar | None:
        end = call.ended or call.began
        look = "failure" if call.failed else "call" if call.ended else "open"
        title = f"{call.text[:LONGEST_TITLE]}: {_span(call)}"
        return self._bar(call.began, end, top + 16, look, title, call.piece)

    def _mark(self, mark: Mark, top: int) -> Bar | None:
        title = f"{mark.kind}: {mark.text[:LONGEST_TITLE]}"
        return self._bar(mark.at, mark.at, top + 14, f"{mark.kind} mark", title, mark.piece)

    def _bar(self, at: str, end: str, y: int, look: str, title: str, piece: int) -> Bar | None:
        began, ended = max(ns_of(at), self.began), min(ns_of(end), self.ended)
        if ended < self.began or began > self.ended:
            return None
        x, width = self._percent(began - self.began), self._percent(max(ended - began, 0))
        return Bar(min(x, 100 - _THINNEST), max(width, _THINNEST), y, look, title, piece)

    def _percent(self, time_ns: int) -> float:
        return round(100 * time_ns / (self.ended - self.began), 3)


def _span(call: Call) -> str:
    """Return the outcome and duration of a call as text."""
    if not call.ended:
        return "no result"
    took = timedelta(microseconds=(ns_of(call.ended) - ns_of(call.began)) // 1000)
    return f"{'failed after ' if call.failed else ''}{took.total_seconds():,.1f} s"
