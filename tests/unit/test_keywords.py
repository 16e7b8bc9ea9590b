"""Texts by keyword: whole words in any case, each text once, up to Claude Code's limit."""

import json
from pathlib import Path

import pytest

from hivepipe.config.config_file import Config, compile_for_hooks
from hivepipe.hook.keywords import MOST_CHARS, has_word, keyword_texts


@pytest.mark.parametrize(
    ("text", "word", "found"),
    [
        ("please deploy it", "deploy", True),
        ("deploy", "deploy", True),
        ("redeploy it", "deploy", False),
        ("deployed, then deploy!", "deploy", True),
        ("the release notes of may", "release notes", True),
        ("c++ or c#", "c++", True),
        ("größe", "größ", False),
    ],
)
def test_a_keyword_matches_whole_words_only(text: str, word: str, found: bool) -> None:
    assert has_word(text, word) is found


def test_each_text_is_quoted_once_and_cut() -> None:
    rules = [
        {"keywords": ["deploy", "release"], "text": "first"},
        {"keywords": ["release"], "text": "first"},
        {"keywords": ["deploy"], "text": "x" * MOST_CHARS},
        {"keywords": ["other"], "text": "never"},
    ]
    texts = keyword_texts(rules, "DEPLOY the Release")
    assert texts.startswith("first\n\nxxx")
    assert texts.count("first") == 1
    assert len(texts) == MOST_CHARS
    assert keyword_texts(None, "deploy") == ""


def test_a_keyword_may_span_two_lines(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        '[[context]]\nkeywords = ["release  notes"]\ntext = "Tuesdays."\n'
    )
    rules = Config(str(tmp_path)).keyword_rules
    assert keyword_texts(rules, "write the Release\n  notes, please") == "Tuesdays."
    assert keyword_texts(rules, "release some notes") == ""


def test_rules_are_compiled_and_an_invalid_one_is_reported(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        '[[context]]\nkeywords = ["Deploy "]\ntext = "Staging first."\n'
        '[[context]]\nkeywords = []\ntext = "a"\n'
        '[[context]]\nkeywords = ["a"]\ntext = 7\n'
        '[[context]]\nkeywords = ["a"]\ntext = "a"\nmore = 1\n'
    )
    config = Config(str(tmp_path))
    assert [problem.split("number ")[1][0] for problem in config.problems] == ["2", "3", "4"]
    compile_for_hooks(config)
    compiled = json.loads((tmp_path / "hook-settings.json").read_text())
    assert compiled["context"] == [{"keywords": ["deploy"], "text": "Staging first."}]
    (tmp_path / "config.toml").write_text("context = [1]\n")
    assert "number 1 must have keywords" in Config(str(tmp_path)).problems[0]
    (tmp_path / "config.toml").write_text("context = 1\n")
    config = Config(str(tmp_path))
    assert "[[context]]" in config.problems[0]
    compile_for_hooks(config)
    assert not (tmp_path / "hook-settings.json").exists()
