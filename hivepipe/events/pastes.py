"""Shorten what was pasted into a prompt, so that the person's own words around it are kept.

    <pasted_content id="3e35">...</pasted_content id="3e35">    in prompts of Claude Code 2.1.332

Claude Code escapes these tags in a pasted text. On the hook path, for long prompts only.
"""

MOST_CHARS = 200  # kept of each paste, in whole words
CUT = " […]\n"
_OPENING, _CLOSING = "<pasted_content id=", "</pasted_content id="


def with_short_pastes(prompt: str, most: int) -> str:
    """Return the prompt, with only the start of each paste if it is longer than `most`."""
    if len(prompt) <= most:
        return prompt
    before, *others = prompt.split(_OPENING)
    return before + "".join(_OPENING + _with_short_start(text) for text in others)


def _with_short_start(text: str) -> str:
    """Return a text that starts in a paste; shorten it up to the closing tag, if there is one."""
    paste, closing, after = text.partition(_CLOSING)
    if closing and len(paste) > MOST_CHARS + len(CUT):
        paste = paste[:MOST_CHARS].rsplit(None, 1)[0] + CUT  # redaction misses half a token
    return f"{paste}{closing}{after}"
