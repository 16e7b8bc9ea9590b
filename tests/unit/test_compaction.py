"""The summary of a compaction without the text that Claude Code puts around it."""

import json
import time
from typing import Any

import pytest

from hivepipe.summaries.excerpt import excerpt_of
from hivepipe.transcripts.compaction import without_frame
from tests.archive_scene import totals_of

HEAD = "This session is being continued from a previous conversation that ran out of context. More."
TOOLS = "<system-reminder>\n<tools-used>Bash</tools-used>\n</system-reminder>"
DETAILS = (
    "If you need specific details from before compaction, read the full transcript at: /x.jsonl"
)
GO_ON = "Continue the conversation from where it left off without asking. Resume directly."
EARLIER = "Please continue the conversation from where we left it off."
LATER = "The messages after this summary are the most recent ones."
SUMMARY = "1. Request: mend it.\n\n2. Files:\n   If you need specific details, ask Ana."


@pytest.mark.parametrize(
    "words",
    [
        f"{HEAD}\n\nSummary:\n{SUMMARY}\n\n{DETAILS}\n{GO_ON}",  # 2.1.197
        f"{HEAD}\n\n{TOOLS}\nSummary:\n{SUMMARY}\n\n{DETAILS}\n{GO_ON}\n\n{LATER}",  # 2.1.330
        f"{HEAD}\n\nSummary:\n{SUMMARY}\n\n{DETAILS}\n\nRecent messages are preserved verbatim.",
        f"{HEAD}\n\nSummary:\n{SUMMARY}\n\n{DETAILS}\nWhatever a later version says.",
        f"{HEAD}\nAnalysis:\nThought.\n\nSummary:\n{SUMMARY}\n\n{EARLIER}",
        f"{HEAD}\n\n{SUMMARY}\n\n{GO_ON}",  # the model left its tags out
        f"{HEAD}\n\n{SUMMARY}",
        SUMMARY,
    ],
)
def test_only_the_summary_remains(words: str) -> None:
    assert without_frame(words) == SUMMARY


def test_a_summary_that_quotes_an_older_frame_is_kept_whole() -> None:
    inner = f"Before:\n{DETAILS}\nSummary:\nand so on"
    assert without_frame(f"{HEAD}\n\nSummary:\n{inner}\n\n{DETAILS}\n{GO_ON}") == inner
    assert without_frame(HEAD) == HEAD


@pytest.mark.parametrize(
    "words", [f"{HEAD}\n\nAnalysis:\n" + "\n" * 99_000, f"{HEAD}\n{' ' * 99_000}x"]
)
def test_no_text_takes_long(words: str) -> None:
    begun = time.thread_time()
    assert without_frame(words) == words.partition("\n")[2].strip()
    assert time.thread_time() - begun < 0.5


def compacted(words: str) -> bytes:
    message = {"role": "user", "content": words}
    line: dict[str, Any] = {"type": "user", "uuid": "u", "message": message}
    return json.dumps({**line, "isCompactSummary": True}).encode()


def test_a_long_summary_is_cut_after_its_frame_is_removed() -> None:
    words = f"{HEAD}\n\nSummary:\n{'x' * 50_000}\n\n{DETAILS}\n{GO_ON}"
    assert totals_of([compacted(words)]).compact_summary == "x" * 2000


def test_an_excerpt_has_the_summary_without_its_frame() -> None:
    words = f"{HEAD}\n\nSummary:\n{SUMMARY}\n\n{DETAILS}\n{GO_ON}"
    assert excerpt_of([compacted(words)]).text == f"Summary of what came before: {SUMMARY}"
