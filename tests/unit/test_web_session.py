"""The view Session of `hivepipe web`: time line, conversation, cost by agent, files."""

import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from hivepipe.db.database import Database
from hivepipe.files.state_cache import StateCache
from hivepipe.home import short_hash
from hivepipe.reading.pieces import AGENT, CALL, FAILURE, RESULT, USER, Piece
from hivepipe.reading.session_work import work_of
from hivepipe.web.drawing import MOST_BARS, MOST_LANES, drawing_of
from hivepipe.web.folders import PAGES
from hivepipe.web.templates import templates, time_of_day
from tests.web_scene import AGENT as EXPLORER
from tests.web_scene import SESSION, insert


def at(second: int) -> str:
    return f"2026-01-10T10:00:{second:02d}.000Z"


PIECES = [
    Piece(USER, "Mend it", at(0)),
    Piece(CALL, "Edit /a.py", at(1), id="t1", diff=("- one", "+ two")),
    Piece(RESULT, "done", at(3), id="t1"),
    Piece(CALL, "Agent Explore", at(4), id="t2"),
    Piece(AGENT, "Explore", at(10), depth=1, id="a1"),
    Piece(CALL, "Bash ls", at(5), depth=1, id="t3"),
    Piece(FAILURE, "no", at(6), depth=1, id="t3"),
    Piece(RESULT, "looked", at(10), id="t2"),
    Piece(FAILURE, "API error", at(12)),
    Piece(CALL, "Read /b.py", at(20), id="t4"),
]


def test_calls_are_on_the_lane_of_their_agent() -> None:
    work = work_of(PIECES)
    assert [lane.title for lane in work.lanes] == ["claude", "Explore a1"]
    own, agent = work.lanes
    assert [(call.text, call.began, call.ended, call.failed) for call in own.calls] == [
        ("Edit /a.py", at(1), at(3), False),
        ("Agent Explore", at(4), at(10), False),
        ("Read /b.py", at(20), "", False),
    ]
    assert [(call.piece, call.failed) for call in agent.calls] == [(6, True)]
    assert [(mark.kind, mark.piece) for mark in own.marks] == [(USER, 1), (FAILURE, 9)]
    assert [change.diff for change in work.files["/a.py"]] == [("- one", "+ two")]
    assert (work.began, work.ended) == (at(0), at(20))


def test_the_lane_of_an_agent_is_below_that_of_its_parent() -> None:
    nested = [
        Piece(AGENT, "Plan", at(1), depth=1, id="a1"),
        Piece(AGENT, "Explore", at(2), depth=2, id="a2"),
        Piece(CALL, "Bash", at(3), depth=2, id="t1"),
        Piece(CALL, "Read", at(4), depth=1, id="t2"),
    ]
    work = work_of(nested)
    assert [(lane.agent, lane.parent, len(lane.calls)) for lane in work.lanes] == [
        ("", "", 0),
        ("a1", "", 1),
        ("a2", "a1", 1),
    ]
    drawing = drawing_of(work)
    assert drawing
    assert [label.indent for label in drawing.labels] == [0, 12, 24]


def test_bars_are_drawn_to_scale() -> None:
    drawing = drawing_of(work_of(PIECES))
    assert drawing
    looks = {bar.piece: (bar.look, bar.x, bar.width) for bar in drawing.bars}
    assert looks[2] == ("call", 5.0, 10.0)
    assert looks[4] == ("call", 20.0, 30.0)
    assert looks[6] == ("failure", 25.0, 5.0)
    assert looks[10][0] == "open"
    assert all(bar.x >= 0 and bar.x + bar.width <= 100 for bar in drawing.bars)
    assert drawing.left_out == 0
    zoomed = drawing_of(work_of(PIECES), at(4), at(8))
    assert zoomed
    assert {bar.piece for bar in zoomed.bars} == {4, 6}
    assert (zoomed.began, zoomed.ended) == (at(4), at(8))
    assert max(bar.x + bar.width for bar in zoomed.bars) == 100


def test_a_drawing_is_bounded() -> None:
    many = [Piece(CALL, "Bash", at(1), id=f"t{number}") for number in range(MOST_BARS + 10)]
    for number in range(MOST_LANES + 5):
        many.append(Piece(AGENT, "Explore", at(1), depth=1, id=f"a{number}"))
        many.append(Piece(CALL, "Bash", at(2), depth=1, id=f"u{number}"))
    drawing = drawing_of(work_of(many))
    assert drawing
    assert len(drawing.bars) == MOST_BARS
    assert len(drawing.labels) == MOST_LANES
    assert len({bar.y for bar in drawing.bars}) == MOST_LANES
    assert drawing.left_out == 75  # bars of the first lane, and lanes with one bar each


def test_prompts_are_drawn_even_if_calls_are_not() -> None:
    many = [Piece(CALL, "Bash", at(1), id=f"t{number}") for number in range(MOST_BARS)]
    drawing = drawing_of(work_of([*many, Piece(USER, "Stop", at(30))]))
    assert drawing
    assert drawing.left_out == 1
    assert [bar.look for bar in drawing.bars if bar.is_mark] == ["user mark"]
    assert drawing.bars[-1].is_mark


def test_the_axis_names_days_if_a_time_of_day_occurs_twice() -> None:
    for last, is_long in (("10T23:59:59", False), ("11T09:59:59", False), ("11T10:00:00", True)):
        pieces = [Piece(USER, "Mend it", at(0)), Piece(USER, "more", f"2026-01-{last}.000Z")]
        drawing = drawing_of(work_of(pieces))
        assert drawing
        assert drawing.has_days == is_long, last
        module: Any = templates(PAGES).get_template("drawing.html").module
        shown = module.drawn(drawing, {}, [])
        on_axis = re.findall(r'dx="4">([^<]+)</text>', shown)
        form = r"01-\d\d \d\d:\d\d" if is_long else r"\d\d:\d\d:\d\d"
        assert [bool(re.fullmatch(form, time)) for time in on_axis] == [True] * 4


def test_no_two_labels_of_the_axis_are_equal() -> None:
    short = work_of([Piece(USER, "Mend it", at(0)), Piece(USER, "Stop", at(2))])
    for drawing in (drawing_of(short), drawing_of(work_of(PIECES), at(4), at(5))):
        assert drawing
        labels = [time_of_day(quarter.began) for quarter in drawing.quarters]
        assert len(set(labels)) == len(labels)


@pytest.mark.parametrize("time", ["", "0099-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"])
def test_strange_times_draw_no_error(time: str) -> None:
    work = work_of([Piece(CALL, "Bash", time, id="t1"), Piece(RESULT, "", "", id="t1")])
    assert (drawing_of(work) is None) == (not time)


@pytest.fixture
def path(home: Any) -> str:
    return f"/session/{short_hash(str(home))}/{SESSION}"


def test_every_bar_links_to_its_piece(client_with_archive: TestClient, path: str) -> None:
    page = client_with_archive.get(path).text
    anchors = re.findall(r'<a href="#(p\d+)" aria-label', page)
    assert len(anchors) >= 6
    for anchor in anchors:
        assert page.count(f'id="{anchor}"') == 1
    assert 'class="failure"' in page
    assert "Explore " + EXPLORER[:8] in page
    assert "/home/ana/shop/cart.py" in page
    assert '<span class="removed">- one' in page
    for hostile in ("<img", "<script>", " style=", "\x1b", "\x00", "\u202e"):
        assert hostile not in page
    assert len(page) < 500_000  # with a line of a megabyte


def test_the_query_selects_a_range_of_pieces(client_with_archive: TestClient, path: str) -> None:
    def pieces(**query: str) -> list[int]:
        found = client_with_archive.get(f"{path}.json", params=query).json()["pieces"]
        return [piece["number"] for piece in found]

    whole = pieces()
    assert pieces(**{"from": "2026-01-10T23:00:00Z"}) == whole[-2:]
    assert pieces(to="2026-01-10T00:01:00Z") == whole[:1]
    assert pieces(piece="3") == whole[2:]
    assert "Nothing was said" in client_with_archive.get(f"{path}?from=2030-01-01").text
    assert client_with_archive.get(f"{path}?from=soon").status_code == 400
    assert client_with_archive.get(f"{path}?piece=0").status_code == 400


def test_a_long_conversation_has_pages(
    client_with_archive: TestClient, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = client_with_archive.get(f"{path}.json").json()["pieces"]
    monkeypatch.setattr("hivepipe.web.session_view.MOST_PIECES", 5)
    monkeypatch.setattr("hivepipe.web.session_view.LAST_PIECES", 3)
    monkeypatch.setattr("hivepipe.web.session_view._LAST", StateCache(1))
    numbers, first = [], 1
    while first:
        page = client_with_archive.get(f"{path}.json?piece={first}").json()
        numbers += [piece["number"] for piece in page["pieces"]]
        first = page["next"]
    assert numbers == [piece["number"] for piece in whole]
    text = client_with_archive.get(path).text
    assert "Go on reading" in text
    assert f"?piece={numbers[-1] - 3}#conversation" in text
    assert "?piece=7#p7" in text  # a bar whose turn is on another page


def test_the_costs_of_agents_add_up_to_those_of_the_session(
    client_with_archive: TestClient, path: str
) -> None:
    document = client_with_archive.get(f"{path}.json").json()
    assert len(document["agent_costs"]) >= 2
    total = sum(each["cost_usd"] for each in document["agent_costs"])
    assert total == pytest.approx(document["cost"]["dollars"], abs=1e-5)
    messages = sum(each["messages"] for each in document["agent_costs"])
    assert messages == document["cost"]["messages"]


def test_a_session_that_is_only_in_the_archive_is_shown(
    client_with_archive: TestClient, home: Path
) -> None:
    (home / "hive.db").unlink()
    Database(home / "hive.db").close()
    answer = client_with_archive.get(f"/session/{short_hash(str(home))}/{SESSION}")
    assert answer.status_code == 200
    assert '<span class="archived">archived</span>' in answer.text
    assert "<h1>Mend the cart, please</h1>" in answer.text


def test_an_ended_session_without_a_transcript_promises_no_archive(
    client: TestClient, home: Path, tmp_path: Path
) -> None:
    path = tmp_path / "transcript.jsonl"
    with closing(Database(home / "hive.db")) as db:
        row = {"id": "s-without", "status": "ended", "created_at": at(0), "updated_at": at(1)}
        insert(db, "sessions", **row, transcript_path=str(path))
    url = f"/session/{short_hash(str(home))}/s-without"
    shown = client.get(url).text
    assert "This session has no transcript" in shown
    assert "Nothing is archived yet" not in shown
    path.write_text("{}\n")
    assert client.get(f"{url}.json").json()["has_transcript"]
