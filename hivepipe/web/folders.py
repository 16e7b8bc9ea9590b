"""The folders of the page's templates, styles and scripts."""

from pathlib import Path

_FOLDER = Path(__file__).parent
PAGES, TEAM_PAGES, STATIC = _FOLDER / "pages", _FOLDER / "pages" / "team", _FOLDER / "static"
