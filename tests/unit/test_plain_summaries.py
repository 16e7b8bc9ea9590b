"""The summary that is made without a model."""

from hivepipe.summaries.plain import plain_summary, plain_text_summary


def test_a_text_is_summarised_by_its_size_and_its_end() -> None:
    text = "".join(f"line {number} of the talk\n" for number in range(100))
    summary = plain_text_summary(text, "codex").summary
    assert summary.startswith("A text of codex, 100 lines. Its last words: ... ")
    assert summary.endswith("line 99 of the talk")
    assert "0 messages" not in summary
    first = summary.partition("... ")[2].split()[0]
    assert first in text.split()  # no half of a word


def test_a_short_text_is_quoted_whole() -> None:
    assert plain_text_summary("Done.\n", "other").summary == (
        "A text, 1 line. Its last words: Done."
    )
    assert plain_text_summary("", "other").summary == "A text, 0 lines."


def test_a_quoted_text_begins_in_its_own_line() -> None:
    """Claude's answers often begin with empty lines."""
    meta = {"deliverables": {"message": "\n\n\n\nDone.\n"}, "compact_summary": "\nIt works.\n"}
    assert plain_summary(meta).summary.splitlines()[1:] == [
        "Claude Code's own summary: It works.",
        "Outcome: unknown. Claude's last words: Done.",
    ]
