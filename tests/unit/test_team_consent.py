"""`team join` names everything that a level of sharing sends."""

import pytest

from hivepipe.cli.team.member import _SHARES
from hivepipe.team.shared_rows import SHARED

WORDS = {
    ("sessions", "objective"): "titles",
    ("agents", "name"): "names and errors of agents",
    ("agents", "role"): "names and errors of agents",
    ("agents", "error"): "names and errors of agents",
    ("summaries", "summary"): "summaries",
    ("summaries", "key_learnings"): "summaries",
    ("summaries", "files"): "summaries",
    ("summaries", "open_ends"): "summaries",
    ("prompts", "prompt"): "prompts",
    ("skill_uses", "arguments"): "arguments of skills and commands",
    ("session_logs", "message"): "log lines",
    ("session_logs", "data"): "log lines",
}
HIDDEN = [(table, name) for table, shared in SHARED.items() for name in shared.hidden]


@pytest.mark.parametrize(("table", "column"), HIDDEN)
def test_each_text_is_named_at_its_level(table: str, column: str) -> None:
    assert WORDS[table, column] in _SHARES[SHARED[table].hidden_at]


def test_names_in_metadata_and_keys_of_deleted_rows_are_named() -> None:
    assert all(word in _SHARES["metadata"] for word in ("types of agents", "skills", "commands"))
    assert "keys of deleted rows: ids" in _SHARES["nothing"]
