"""A conversation as one HTML file: no script, no external resource, every text escaped."""

import hashlib
from base64 import b64encode
from html import escape

from hivepipe.cli.tables import shown_time
from hivepipe.cli.terminal import printable_lines, say
from hivepipe.cli.transcript_words import (
    MESSAGES,
    MOST_FOLDED,
    failure,
    folded_line,
    head,
    turn_of,
    turn_title,
    turns,
)
from hivepipe.reading.conversation_reader import Conversation
from hivepipe.reading.pieces import AGENT, CALL, FAILURE, Piece

STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:0 1em}dd{margin:0}"
    "dt,time,.folded,summary{color:#777}"
    "section{margin:1.2em 0 0;border-left:3px solid #8885;padding-left:.8em}"
    ".user{border-color:#1795c4}.agent{border-color:#a349c9}"
    "h2{font-size:1em;margin:0}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.3em 0;font:inherit}"
    ".call,.diff,.failure,details pre{font-family:ui-monospace,monospace;font-size:13px}"
    ".call{font-weight:600}.failure{color:#c62828}"
    ".diff div{white-space:pre-wrap;overflow-wrap:anywhere;min-height:1.5em}"
    ".put{background:#2ea04333}.out{background:#f8514933}"
    ".hit{outline:2px solid #e0a800;outline-offset:2px}"
    ".d1{margin-left:2em}.d2{margin-left:4em}.d3{margin-left:6em}"
)
_DEEPEST = 3  # levels of agents that are indented


def show_html(found: Conversation) -> None:
    """Print a conversation as an HTML page, piece by piece as its archive is read."""
    title = str(found.meta.get("title") or "") or f"session {found.session[:8]}"
    for line in _opening(title):
        say(line)
    say(f"<h1>{_text(title)}</h1>")
    say("<dl>")
    for name, text in head(found):
        say(f"<dt>{_text(name)}</dt><dd>{_text(text)}</dd>")
    say("</dl>")
    is_open = False
    for piece, begins in turns(found.pieces):
        if begins:
            say("</section>" if is_open else "")
            say(f'<section class="{turn_of(piece)} d{min(piece.depth, _DEEPEST)}">')
            at = _text(shown_time(piece.at))
            say(f"<h2>{_text(turn_title(piece))} <time>{at}</time></h2>")
            is_open = True
        say('<div class="hit" id="hit">' if piece.is_hit else "<div>")
        _show(piece)
        say("</div>")
    say("</section>" if is_open else "")
    say("</body></html>")


def _opening(title: str) -> tuple[str, ...]:
    digest = b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'"
    return (
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{_text(title)}</title>",
        f"<style>{STYLE}</style></head><body>",
    )


def _show(piece: Piece) -> None:
    if piece.kind == AGENT:
        return
    if piece.kind in MESSAGES:
        _block("", piece.text)
    elif piece.kind == CALL:
        _block("call", piece.text)
        _diff(piece.diff)
    elif piece.kind == FAILURE:
        _block("failure", "\n".join(failure(piece)))
    elif len(piece.text.splitlines()) > 1 or len(piece.text) > MOST_FOLDED:
        say(f"<details><summary>{_text(folded_line(piece))}</summary>")
        _block("", piece.text)
        say("</details>")
    else:
        say(f'<div class="folded">{_text(folded_line(piece))}</div>')


def _diff(lines: tuple[str, ...]) -> None:
    if not lines:
        return
    say('<div class="diff">')
    for line in lines:
        kind = {"+": "put", "-": "out"}.get(line[:1], "same")
        say(f'<div class="{kind}">{_text(line)}</div>')
    say("</div>")


def _block(kind: str, text: str) -> None:
    """Print a text in a `<pre>` element. Browsers ignore the newline after `<pre>`."""
    say(f'<pre class="{kind}">')
    for line in printable_lines(text):
        say(escape(line))
    say("</pre>")


def _text(text: str) -> str:
    return escape(" ".join(printable_lines(text)))
