"""rq-dashboard's templates, changed to escape data and to run only scripts with a nonce.

The originals insert descriptions and tracebacks as HTML, and contain inline scripts and styles
that a strict content security policy blocks. The source of a template is changed when it is loaded.
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
_HIDDEN = "[id$=-btn],[data-role$=-job-btn]{display:none!important}"  # the buttons that change jobs
_SCRIPT = re.compile(r"<script(?=[\s>])")


class Strict(BaseLoader):
    """A loader of templates that changes their source by `strict`."""

    def __init__(self, inner: BaseLoader, styles: str) -> None:
        """Set the CSS rules `styles`, which replace the style attributes of the templates."""
        self._inner = inner
        self._styles = styles

    def get_source(
        self, environment: Environment, template: str
    ) -> tuple[str, str | None, Callable[[], bool] | None]:
        """Return a template's source, its path, and a function that tells whether it is current."""
        text, path, is_fresh = self._inner.get_source(environment, template)
        return strict(template, text, self._styles), path, is_fresh

    def list_templates(self) -> list[str]:
        return self._inner.list_templates()


def strict(name: str, text: str, styles: str) -> str:
    """Return the source of a template with escaped data and with nonces on scripts and styles."""
    if name.endswith(".js"):
        return _QUOTED_BY_HAND.sub(r"{{ \1|tojson }}", text)
    text = _TEXT_AS_HTML.sub(r"<%= \1 %>", text).replace("<%=", "<%-")
    text = _STYLE.sub(r' data-style="\1"', text)
    text = _SCRIPT.sub('<script nonce="{{ nonce() }}"', text)
    return text.replace("</head>", f'<style nonce="{{{{ nonce() }}}}">{styles}</style></head>')


def use_strict_templates(app: Flask) -> None:
    """Install the loader of changed templates in an application."""
    inner = app.jinja_env.loader
    assert inner is not None
    texts = [inner.get_source(app.jinja_env, name)[0] for name in inner.list_templates()]
    found = sorted({style for text in texts for style in _STYLE.findall(text)})
    rules = "".join(f'[data-style="{style}"]{{{style}}}' for style in found)
    app.jinja_env.loader = Strict(inner, rules + _HIDDEN)
    app.jinja_env.globals["nonce"] = lambda: Markup(nonce())


def nonce() -> str:
    """Return the nonce of this response, created at first use."""
    if "nonce" not in g:
        g.nonce = secrets.token_urlsafe(16)
    return str(g.nonce)


def policy() -> str:
    """Return the content security policy of this response."""
    return (
        "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        "connect-src 'self'; font-src 'self'; img-src 'self' data:; "
        # underscore needs eval to compile its templates, which contain no data
        f"script-src 'nonce-{nonce()}' 'unsafe-eval'; style-src 'self' 'nonce-{nonce()}'"
    )
