"""rq-dashboard's templates as we serve them: what they show is text, what they run has a nonce.

They put descriptions and tracebacks into the page as HTML, and hold scripts and styles that no
strict policy lets run. The change is made in the template, before it meets any data.
"""

import re
import secrets
from collections.abc import Callable

from flask import Flask, g
from jinja2 import BaseLoader, Environment
from markupsafe import Markup

_TEXT_AS_HTML = re.compile(r"<%=\s*\$\('<div/>'\)\.text\((.*?)\)\.html\(\)\s*%>")
_QUOTED_BY_HAND = re.compile(r"'\{\{\s*([\w.]+)\s*\}\}'")
_STYLE = re.compile(r'\sstyle="([^"{}]*)"')
_SCRIPT = re.compile(r"<script(?=[\s>])")


class Strict(BaseLoader):
    """Gives out the templates of another loader, changed."""

    def __init__(self, inner: BaseLoader, styles: str) -> None:
        """`styles`: the rules that stand for the templates' own attributes."""
        self._inner = inner
        self._styles = styles

    def get_source(
        self, environment: Environment, template: str
    ) -> tuple[str, str | None, Callable[[], bool] | None]:
        """Return a template's text, where it lies, and whether it is as it was."""
        text, path, is_fresh = self._inner.get_source(environment, template)
        return strict(template, text, self._styles), path, is_fresh

    def list_templates(self) -> list[str]:
        """Return the names."""
        return self._inner.list_templates()


def strict(name: str, text: str, styles: str) -> str:
    """Return a template in which data are text, and scripts and styles have the nonce."""
    if name.endswith(".js"):
        return _QUOTED_BY_HAND.sub(r"{{ \1|tojson }}", text)
    text = _TEXT_AS_HTML.sub(r"<%= \1 %>", text).replace("<%=", "<%-")
    text = _STYLE.sub(r' data-style="\1"', text)
    text = _SCRIPT.sub('<script nonce="{{ nonce() }}"', text)
    return text.replace("</head>", f'<style nonce="{{{{ nonce() }}}}">{styles}</style></head>')


def use_strict_templates(app: Flask) -> None:
    """Serve them so from now on."""
    inner = app.jinja_env.loader
    assert inner is not None
    texts = [inner.get_source(app.jinja_env, name)[0] for name in inner.list_templates()]
    found = sorted({style for text in texts for style in _STYLE.findall(text)})
    rules = "".join(f'[data-style="{style}"]{{{style}}}' for style in found)
    app.jinja_env.loader = Strict(inner, rules)
    app.jinja_env.globals["nonce"] = lambda: Markup(nonce())


def nonce() -> str:
    """Return the word that lets the scripts of this one answer run."""
    if "nonce" not in g:
        g.nonce = secrets.token_urlsafe(16)
    return str(g.nonce)


def policy() -> str:
    """Return what a browser may do with this answer."""
    return (
        "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        "connect-src 'self'; font-src 'self'; img-src 'self' data:; "
        # underscore compiles the templates, which no data reach, and needs eval for it
        f"script-src 'nonce-{nonce()}' 'unsafe-eval'; style-src 'self' 'nonce-{nonce()}'"
    )
