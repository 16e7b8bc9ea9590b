"""Where templates, styles and scripts of the page are."""

from pathlib import Path

_FOLDER = Path(__file__).parent
PAGES, TEAM_PAGES, STATIC = _FOLDER / "pages", _FOLDER / "pages" / "team", _FOLDER / "static"
