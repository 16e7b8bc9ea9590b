"""The prompts of workers: templates that users can edit, and their substitution."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from string import Template

from hivepipe.errors import HiveError
from hivepipe.files.regular_file import read_text

_FOLDER = Path(__file__).with_name("templates")
# Read at import, because an upgrade may replace the files of a running process.
DEFAULTS = {name: read_text(_FOLDER / f"{name}.md") for name in ("worker", "park")}

_MAY_EDIT = """\
You may read files, and change those of the project, of your folder and of $learnings_folder."""
_EDITS = {
    "rights": f"{_MAY_EDIT} You may not run git.",
    "commit": "Leave your changes uncommitted, and name every changed file in `files_changed`.",
    "committed": "false",
}
_COMMITS = {
    "rights": f"{_MAY_EDIT}\nYou may run `git add` and `git commit`, each as a command of its own.",
    "commit": "Commit your changes, with a message that says why.",
    "committed": "true",
}
_ALL = {**_COMMITS, "rights": "You may do without asking what the user may."}
_OF_RIGHTS = {"edits": _EDITS, "commits": _COMMITS, "all": _ALL}

ASK = "Are you still working? Go on with your task, and write status.json as you were told."
ANSWER = "Orchestrator response: {text}"

# SHA-256 of templates that earlier versions wrote. A file with one of these texts was not edited,
# and the current default is used instead.
_FORMER = ("d6e49152bafabf6acfb8a9e5e22ba1a030a0c67af19f04339b4a76fcf21b4018",)


def of_rights(rights: str, words: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the template variables that describe a worker's rights."""
    return {name: Template(text).substitute(words) for name, text in _OF_RIGHTS[rights].items()}


def prompt(folder: Path, name: str, words: Mapping[str, str]) -> str:
    """Return a template from the folder, or the default template, with its variables replaced.

    Raise HiveError if the file cannot be read, or a `$` is not followed by a known variable.
    """
    path = folder / f"{name}.md"
    try:
        text = read_text(path)
        if sha256(text.encode()).hexdigest() in _FORMER:
            text = DEFAULTS[name]
    except FileNotFoundError:
        text = DEFAULTS[name]
    except (OSError, UnicodeDecodeError) as error:
        raise HiveError(f"{path} cannot be read: {error}") from None
    try:
        return Template(text).substitute(words)
    except (KeyError, ValueError) as error:
        known = ", ".join(f"${word}" for word in words)
        raise HiveError(
            f"{path}: {error} is not one of {known} (a plain dollar sign is $$)"
        ) from None
