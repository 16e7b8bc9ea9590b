"""The view Search of `hivepipe web`: what it finds, opens and refuses."""

import json
import shutil
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from hivepipe.cli.main import main
from hivepipe.reading.homes import KnownHome
from hivepipe.reading.search import Found
from hivepipe.web import search_view
from hivepipe.web.view_query import ViewQuery
from tests.web_scene import HOSTILE, LONG, SESSION

CART = {"q": "cart"}


def json_of(client: TestClient, **query: str) -> dict[str, Any]:
    answer = client.get("/search.json", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


QUERIES = [
    {**CART, "since": "2026-01-11"},
    {**CART, "until": "2026-01-10"},
    {**CART, "session": SESSION[:6], "project": "/home/ana"},
    {**CART, "session": f"{SESSION[:6]}0"},
    {**CART, "project": "/home/an"},
    {**CART, "word": "1", "limit": "1"},
]


def test_the_json_equals_that_of_the_command(client_with_archive: TestClient) -> None:
    for query in QUERIES:
        options = [f"--{name}={it}" for name, it in query.items() if name not in ("q", "word")]
        options += ["--word"] if "word" in query else []
        words = ["search", query["q"], *options, "--json"]
        expected = json.loads(CliRunner().invoke(main, words).stdout)
        page = json_of(client_with_archive, **query)
        assert page["total"] == expected["total"], query
        assert page["not_indexed_bytes"] == expected["not_indexed_bytes"] == 0
        mine = [{name: hit[name] for name in hit.keys() - {"parts", "home", "ref"}}
                for hit in page["hits"]]  # fmt: skip
        assert mine == expected["hits"], query


def test_facets_count_what_narrowing_finds(client_with_archive: TestClient) -> None:
    page = json_of(client_with_archive, **CART)
    shown = client_with_archive.get("/search", params=CART).text
    assert page["total"] > 2
    # A call and its result are of one tool.
    assert dict(page["facets"]["tool"]) == {"Edit": 2, "Grep": 2, "Bash": 1, "Agent": 1, "Read": 1}
    for name, values in page["facets"].items():
        for value, number in values:
            narrowed = json_of(client_with_archive, **{**CART, name: value})
            assert narrowed["total"] == number, (name, value)
            assert f'&amp;{urlencode({name: value})}">' in shown


def test_a_hit_opens_in_place(client_with_archive: TestClient) -> None:
    hits = json_of(client_with_archive, **CART)["hits"]
    for hit in hits:
        opened = json_of(client_with_archive, **CART, open=hit["ref"])["opened"]
        assert opened["error"] == ""
        (piece, *_) = [piece for piece in opened["pieces"] if piece["is_hit"]]
        assert piece["offset"] == hit["offset"]
        page = client_with_archive.get("/search", params={**CART, "open": hit["ref"]})
        assert page.text.count('id="open"') == 1
    elsewhere = client_with_archive.get("/search", params={"q": "nowhere", "open": hits[0]["ref"]})
    assert 'id="open"' in elsewhere.text


REFS = (
    "x",
    "x@1@y",
    "{0}@a@{1}",
    "{0}@9999999@{1}",
    "{0}@5@nothing",
    "{0}@99999999999999999999@{1}",
    "{0}@999999999999999999@{1}",
)


def test_an_invalid_reference_is_no_error(client_with_archive: TestClient) -> None:
    home = json_of(client_with_archive, **CART)["hits"][0]["home"]
    for ref in REFS:
        query = {**CART, "open": ref.format(home, SESSION)}
        assert client_with_archive.get("/search", params=query).status_code == 200, ref


INVALID = [
    ({"q": '""'}, "give at least one word"),
    ({**CART, "since": "soon"}, "since is not a day"),
    ({**CART, "day": "9999-12-31"}, "day is not a day"),
    ({**CART, "limit": "0"}, "limit is not a number"),
    ({**CART, "limit": "٣"}, "limit is not a number"),
    ({**CART, "limit": "0" * 8 + "9" * 5000}, "limit is not a number"),
    ({**CART, "limit": "000000001" + "0" * 9}, "limit is not a number"),
]


def test_an_invalid_query_is_reported(client: TestClient) -> None:
    for query, expected in INVALID:
        page = client.get("/search", params=query)
        assert page.status_code == 400, query
        assert expected in page.text
        assert '<input class="query"' in page.text, query
        assert expected in client.get("/search.json", params=query).json()["error"]


def test_hostile_words_stay_words(client_with_archive: TestClient) -> None:
    for words in (HOSTILE, "\x00", "\u202e", '"', "a" * 10_000, "NEAR(", "cart*"):
        query = {"q": words, "role": HOSTILE, "agent": HOSTILE}
        page = client_with_archive.get("/search", params=query)
        assert page.status_code in (200, 400), words[:20]
        assert "<script>" not in page.text
        assert "<img" not in page.text


def test_hostile_hits_stay_texts(client_with_archive: TestClient) -> None:
    (hit, *_) = json_of(client_with_archive, q="onerror")["hits"]
    page = client_with_archive.get("/search", params={"q": "onerror", "open": hit["ref"]}).text
    assert "&lt;" in page
    assert "<script>" not in page
    assert "<img" not in page
    assert not {"\x1b", "\x00", "\u202e"} & {*page}
    assert r"\x1b[31m red \u202e back" in page
    (hit,) = json_of(client_with_archive, q=LONG[:30])["hits"]
    page = client_with_archive.get("/search", params={"q": LONG[:30], "open": hit["ref"]}).text
    assert len(page) < 200_000, "of a line of a megabyte"


def test_without_words_the_page_says_what_to_type(client: TestClient) -> None:
    page = client.get("/search")
    assert page.status_code == 200
    assert "Type words" in page.text
    assert "No line has all of these words" in client.get("/search?q=x").text


def test_an_incomplete_result_without_hits_speaks_of_indexed_lines_only(
    client_with_archive: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_view, "find", lambda *_, **__: Found([], 0, 1, {}))
    page = client_with_archive.get("/search", params=CART).text
    assert "No indexed line has all of these words" in page
    monkeypatch.setattr(search_view, "find", lambda *_, **__: Found([], 0, 0, {}))
    page = client_with_archive.get("/search", params={"q": "wagon"}).text
    assert "No line has all of these words" in page


def test_a_home_whose_index_is_broken_is_named_and_a_deleted_one_is_ignored(
    client_with_archive: TestClient, home: Path
) -> None:
    (home / "search.db").write_bytes(b"no database" * 1000)
    page = client_with_archive.get("/search", params=CART)
    assert page.status_code == 200
    assert f"cannot use {home / 'search.db'}" in page.text
    shutil.rmtree(home)
    assert json_of(client_with_archive, q="cart again")["total"] == 0
    assert not home.exists()


def test_all_homes_share_the_time_for_indexing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []

    def find(*_: object, indexing_secs: float, **__: object) -> Found:
        given.append(indexing_secs)
        time.sleep(0.02)
        return Found([], 0, 1, {})

    monkeypatch.setattr(search_view, "find", find)
    homes = [KnownHome(f"{number}", str(tmp_path), "") for number in range(3)]
    assert search_view.search(ViewQuery(homes, CART))["not_indexed_bytes"] == 3
    assert search_view.INDEXING_SECS >= given[0] >= given[1] + 0.02 >= given[2] + 0.04
