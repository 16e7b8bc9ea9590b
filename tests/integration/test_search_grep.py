"""The search index finds the same lines as grep, for every piece of text."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hivepipe.archive.search.index import SearchIndex
from hivepipe.archive.search.query import Filters, folded, terms_of
from tests.integration.test_search_index import archived
from tests.outcome import outcome_of

TEXTS = [
    "Added phoenix_live_view to mix.exs; Spotter.Transcripts.Message uses live_view",
    "この技術スタックを更新して、日本語のコンポーネントを追加します",
    "プロジェクトの更新: コンポーネント一覧",
    "error: expected `;`, found `}` --> src/main.rs:4:5",
    "** (MatchError) no match: {:ok, %{id: 4.5}} |> IO.inspect()",
    "claude-4-5-sonnet 4.5 45 v4.5.1 $4.50",
    "useState(null) => <UserProfileCard user={currentUser} />",
    "Größe, Straße, ÄRGER, naïve café, ΟΔΟΣ, Привет мир",
    "done \N{ROCKET} \N{PARTY POPPER}\N{PARTY POPPER} \N{FAMILY} x",
    "toolu_01AbCdEf123 toolu_01ZZZ a41c09be77d2f0e13",
    'git commit --no-verify -m \'fix(api): x\' && echo "a \\"b\\""',
    "C:\\Users\\ana\\shop *.py [a-z]+ ^$ (?:x) a*b",
    "NEAR(a b) AND text: OR NOT '; DROP TABLE words; --",
    "1 2 33 i I a of",
    "/home/ana/shop/lib/spotter/transcripts/message.ex:33",
    "\N{FULLWIDTH LATIN CAPITAL LETTER A} ｶﾀｶﾅ 한국어 검색 ไทย עברית",
]


@pytest.fixture(scope="module")
def text_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the texts into a file for grep, one a line."""
    path = tmp_path_factory.mktemp("grep") / "said.txt"
    path.write_text("".join(f"{text}\n" for text in TEXTS))
    return path


@pytest.fixture(scope="module")
def index(text_file: Path) -> Iterator[SearchIndex]:
    lines = text_file.with_name("lines.jsonl")
    with lines.open("w") as file:
        for text in TEXTS:
            file.write(json.dumps({"type": "user", "message": {"content": text}}) + "\n")
    opened = SearchIndex(text_file.with_name("search.db"))
    opened.catch_up(archived(lines))
    yield opened
    opened.close()


def grep(text_file: Path, text: str, *options: str) -> int:
    done = outcome_of(
        ["grep", "-ciF", *options, "-e", text, str(text_file)],
        {"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
    )
    return int(done.stdout)


def quoted(text: str) -> str:
    return f'"{text}"'


def pieces() -> list[str]:
    """Return words, parts between punctuation, and random pieces of the texts; none has a quote."""
    rng = random.Random(20261122)
    found = {word for text in TEXTS for word in text.split()}
    found |= {part for text in TEXTS for part in re.findall(r"\w+|[^\w\s]+", text)}
    for text in TEXTS:
        for _ in range(15):
            begin = rng.randrange(len(text))
            found.add(text[begin : begin + rng.randint(1, 9)].strip())
    return sorted(piece for piece in found if piece and '"' not in piece)


def test_every_piece_is_found_as_often_as_by_grep(text_file: Path, index: SearchIndex) -> None:
    found = pieces()
    assert len(found) > 300
    wrong = [
        (piece, number, wanted)
        for piece in found
        if (number := index.count(terms_of(quoted(piece)), Filters()))
        != (wanted := grep(text_file, piece))
    ]
    assert wrong == []


def test_whole_words_are_found_as_often_as_by_grep_w(text_file: Path, index: SearchIndex) -> None:
    words = sorted({word for text in TEXTS for word in re.findall(r"\w+", text)})
    wrong = [
        (word, number, wanted)
        for word in words
        if (number := index.count(terms_of(word, whole_words=True), Filters()))
        != (wanted := grep(text_file, word, "-w"))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("更新", 2),
        ("語", 1),
        ("profile", 1),
        ("toolu_01Ab", 1),
        ('"{:ok,"', 1),
        ("\N{ROCKET}", 1),
        ("검색", 1),
        ("live_view mix.exs", 1),
        ("live_view 更新", 0),
        ("transcr* message", 2),
        ("script* message", 0),
    ],
)
def test_typical_queries_find_their_lines(index: SearchIndex, text: str, lines: int) -> None:
    terms = terms_of(text)
    assert index.count(terms, Filters()) == lines
    hits = index.find(terms, Filters(), 9)
    assert len(hits) == lines
    for term in terms if lines == 1 else ():
        (place,) = [
            place
            for each in TEXTS
            if (place := term.place_in(folded(each)))
            and all(t.place_in(folded(each)) for t in terms)
        ]
        assert place[1] > place[0]
