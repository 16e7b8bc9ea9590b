"""Shorten what was pasted into a prompt, so that the person's own words around the paste are kept.

    <pasted_content id="3e35">...</pasted_content id="3e35">    in prompts of Claude Code 2.1.332

Claude Code escapes these tags in a pasted text. Hooks import this module for long prompts only.
"""

LEAST_CHARS = 200  # kept of each paste, in whole words
CUT = " […]\n"
LONGEST_WORD = 100
# Characters of tokens, URLs and passwords: ASCII, but no blank and no quote around a JSON string
_IN_TOKENS = "".join(map(chr, range(0x21, 0x7F))).replace('"', "")
_OPENING, _CLOSING = "<pasted_content id=", "</pasted_content id="


def with_short_pastes(prompt: str, most: int) -> str:
    """Return a prompt. If it is longer than `most` characters, its pastes are shortened.

    The person's own words stay, even if they exceed `most`. The pastes get equal shares of the
    remaining characters.
    """
    if len(prompt) <= most:
        return prompt
    before, *others = prompt.split(_OPENING)
    # A text without a closing tag is no paste: a person wrote the opening one.
    parts = [text.partition(_CLOSING) for text in others]
    pastes = [paste for paste, closing, _ in parts if closing]
    left = most - len(prompt) + sum(map(len, pastes))
    share = max(LEAST_CHARS, left // len(pastes) - len(CUT)) if pastes else 0
    return before + "".join(
        f"{_OPENING}{_start(paste, share) if closing else paste}{closing}{after}"
        for paste, closing, after in parts
    )


def _start(paste: str, most: int) -> str:
    if len(paste) <= most + len(CUT):
        return paste
    start = paste[:most]
    words = start.rsplit(None, 1)[0]  # redaction would miss half a token, so it is cut off
    if len(start) - len(words) > LONGEST_WORD:  # a text without blanks: Japanese, minified JSON
        words = max(words, start.rstrip(_IN_TOKENS), key=len)
    return words + CUT
