"""The files that calls of tools write."""

from os.path import expanduser, join, normpath

from hivepipe.transcripts.lines import CAP_PATH, Fields, part, text

_ARGUMENTS = {
    "Write": "file_path",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
}


def path_in_call(tool: str, arguments: Fields) -> str:
    """Return the path that a call asks to write, or "" if its tool writes no file."""
    return text(arguments, _ARGUMENTS[tool], CAP_PATH) if tool in _ARGUMENTS else ""


def path_written(result_line: Fields, asked: str) -> str:
    """Return the absolute path that was written.

    `asked` is the path in the call. A hook of another program may have replaced this path.
    """
    response = part(result_line, "toolUseResult")
    written = text(response, "filePath", CAP_PATH) or text(response, "notebook_path", CAP_PATH)
    path = written or asked
    if path.startswith("~/"):  # Claude Code expands no other `~`
        path = expanduser(path)
    return normpath(join(text(result_line, "cwd", CAP_PATH), path))
