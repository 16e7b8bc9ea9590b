"""The summary in a compaction's message, without the frame that Claude Code puts around it.

The frame is an instruction to the session that continues. Other readers must not follow this
instruction. Its parts:

    This session is being continued from a previous conversation ...
                                                            <- <system-reminder>, since 2.1.330
    Summary:                                                <- not if the model left its tags out
    ...
    If you need specific details from before compaction ... read the full transcript at: ...
    Continue the conversation from where it left off ...
    The messages after this summary ...                     <- since 2.1.330
"""

import re

CAP_SUMMARY = 100_000  # most characters, including the frame
_BEGINS = "This session is being continued from a previous conversation"
_REMINDER = re.compile(r"\A\s*<system-reminder>.*?</system-reminder>", re.DOTALL)
_HEADING = re.compile(r"\A\s*+(?:Analysis:\n.*?\n)?[ \t]*Summary:[ \t]*\n", re.DOTALL)
_TRANSCRIPT = "If you need specific details from before compaction"
_ENDS = (
    _TRANSCRIPT,
    "Recent messages are preserved verbatim",
    "Continue the conversation from where it left off",
    "Please continue the conversation from where we left",
    "The messages after this summary",
)


def without_frame(words: str) -> str:
    """Return the summary inside Claude Code's frame; a text without the frame stays unchanged."""
    if not words.lstrip().startswith(_BEGINS):
        return words
    _, _, summary = words.lstrip().partition("\n")
    if not summary:
        return words
    while reminder := _REMINDER.match(summary):
        summary = summary[reminder.end() :]
    if heading := _HEADING.match(summary):
        summary = summary[heading.end() :]
    return "\n".join(_without_end(summary.split("\n"))).strip()


def _without_end(lines: list[str]) -> list[str]:
    """Cut the text at the last line that names the transcript; then remove known end lines."""
    for number in range(len(lines) - 1, -1, -1):
        if lines[number].startswith(_TRANSCRIPT):
            lines = lines[:number]
            break
    while lines and (not lines[-1].strip() or lines[-1].startswith(_ENDS)):
        lines.pop()
    return lines
