"""Decides which hook commands run a script of the predecessor, by the script's name and text.

A name alone is not enough: `stop` or `session-start.sh` may be a user's script. A script with
another name that mentions `.hive-mind`, or a command that also does something else, is doubtful.
Doubtful hooks are shown to the user and not changed.
"""

import os
import re
import shlex
from enum import Enum
from pathlib import PurePath

from hivepipe.files.regular_file import regular
from hivepipe.home import absolute

_LARGEST_BYTES = 1 << 20
_BASH_SCRIPTS = (
    *("task-agent-tracker.sh", "auto-checkpoint.sh", "session-start.sh", "session-checkpoint.sh"),
    *("agent-lifecycle-cleanup.sh", "instance-start.sh", "session-linker.sh", "queue-lib.sh"),
    *("queue-worker.sh", "queue-worker-macos.sh"),
)
_PYTHON_SCRIPTS = ("session-start", "user-prompt-submit", "post-tool-use", "subagent-stop", "stop")
SCRIPTS = (*_BASH_SCRIPTS, *_PYTHON_SCRIPTS, *(f"{name}.py" for name in _PYTHON_SCRIPTS))
_BASH_MARKS = re.compile(r"\.hive-mind\b|\bqueue-lib\.sh\b|\bqueue_db_write\b|\bHIVE_DB\b")
_PYTHON_MARKS = re.compile(
    r"\bskill_tracker\b|\bconversation_archiver\b|\bSkillTracker\b|\bConversationArchiver\b"
    r"|\.claude-state\b"
)
_WRITES_HERE = re.compile(r"\.hive-mind/(hive\.db|queue)|\bqueue_db_write\b")
# Programs that run the command that follows them, or read the script.
_SHELLS = ("bash", "sh", "zsh", "dash", "ksh")
_RUNNERS = {
    *(*_SHELLS, "env", "exec", "command", "builtin", "source", ".", "eval"),
    *("nohup", "time", "timeout", "nice", "ionice", "setsid", "stdbuf", "uv"),
}
_PYTHON = re.compile(r"python(3(\.\d+)?)?")
_KEYWORDS = {"if", "then", "elif", "else", "fi", "do", "done", "while", "until", "{", "}", "!"}
_WORDS_BEFORE = {"timeout": 1, "uv": 1}  # number of operands before the command: a duration, `run`
_OPTIONS_WITH_VALUE = {
    *(f"{shell} -{letter}" for shell in _SHELLS for letter in "oO"),
    *("nice -n", "ionice -c", "ionice -n", "timeout -k", "timeout -s", "env -u", "env -C"),
    *("stdbuf -i", "stdbuf -o", "stdbuf -e", "uv --project", "uv --with", "uv --python", "uv -p"),
}
_ONLY_NAME_IT = {"echo", "printf", "ls", "chmod", "grep", "head", "tail", "wc", "stat"}
_HARMLESS = {"cd", "true", ":", "exit", "cat", "test", "[", "export", "set"}
_OPERATORS = re.compile(r"[;&|()]+")
_PROJECT = re.compile(
    r"\$\{?CLAUDE_PROJECT_DIR\}?|\$\{?PWD\}?|\$\(pwd\)|\$\(git rev-parse --show-toplevel\)"
)
_HOME = re.compile(r"\$\{?HOME\}?")


class Verdict(Enum):
    OLD = "a script of the predecessor"
    DOUBTFUL = "it may write into .hive-mind, and may be your own"
    OTHER = "nothing of the predecessor's"


def judge(handler: object, project: str) -> Verdict:
    """Judge one hook handler of a settings file. A relative script path starts at the project."""
    if not isinstance(handler, dict) or not isinstance(handler.get("command"), str):
        return Verdict.OTHER
    command = handler["command"]
    if isinstance(arguments := handler.get("args"), list):
        command = shlex.join([command, *map(str, arguments)])
    commands = _simple_commands(command, project)
    kinds = [_kind(words, project) for words in commands]
    if Verdict.OLD in kinds and Verdict.OTHER not in kinds and Verdict.DOUBTFUL not in kinds:
        return Verdict.OLD
    if Verdict.OLD in kinds or Verdict.DOUBTFUL in kinds or _WRITES_HERE.search(command):
        return Verdict.DOUBTFUL
    return Verdict.OTHER


def _simple_commands(command: str, project: str) -> list[list[str]]:
    """Split a shell command at its operators. Return [[command]] if a quote is not closed."""
    command = _HOME.sub("~", _PROJECT.sub(lambda _: project, command))
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return [[command]]
    found: list[list[str]] = [[]]
    for word in words:
        if _OPERATORS.fullmatch(word):
            found.append([])
        else:
            found[-1].append(word)
    return [words for words in map(_without_redirections, found) if words]


def _without_redirections(words: list[str]) -> list[str]:
    """Drop `2>/dev/null` and similar redirections. Other redirections stay as words."""
    kept: list[str] = []
    at = 0
    while at < len(words):
        target = words[at + 1] if at + 1 < len(words) else ""
        if words[at] in (">", ">>", "<", ">&", "&>") and target in ("/dev/null", "1", "2"):
            if kept and kept[-1] in ("1", "2"):
                kept.pop()
            at += 2
        else:
            kept.append(words[at])
            at += 1
    return kept


def _kind(words: list[str], project: str) -> Verdict | None:
    """Judge one simple command; return None for a command without an effect, such as `cd`."""
    writes_elsewhere = any(character in "<>" for word in words for character in word)
    words = list(words)
    while words:
        if words[0] in _KEYWORDS or re.fullmatch(r"\w+=.*", words[0]):
            words.pop(0)
        elif not _is_runner(words[0]):
            break
        elif shell_text := _without_runner(words):
            return judge({"command": shell_text}, project)
    if not words or words[0] in _HARMLESS:
        return Verdict.OTHER if writes_elsewhere else None
    kind = _kind_of_script(words[0], project)
    if kind is Verdict.OTHER and words[0] not in _ONLY_NAME_IT:
        is_among = any(_kind_of_script(each, project) is Verdict.OLD for each in words[1:])
        return Verdict.DOUBTFUL if is_among else kind
    return Verdict.DOUBTFUL if writes_elsewhere and kind is Verdict.OLD else kind


def _is_runner(word: str) -> bool:
    name = PurePath(word).name
    return word in _RUNNERS or name in _RUNNERS or bool(_PYTHON.fullmatch(name))


def _without_runner(words: list[str]) -> str:
    """Remove a program that runs a command, and its options, from `words`.

    Return the shell text after the option -c, or "".
    """
    name = PurePath(words.pop(0)).name
    operands = _WORDS_BEFORE.get(name, 0)
    while words and (operands or words[0].startswith("-")):
        word = words.pop(0)
        if not word.startswith("-"):
            operands -= 1
        elif f"{name} {word}" in _OPTIONS_WITH_VALUE:
            del words[:1]
        elif re.fullmatch(r"-[a-z]*c", word) and words and name not in ("ionice", "uv"):
            return words[0]
    return ""


def _kind_of_script(word: str, project: str) -> Verdict:
    text = read_script(script_path(word, project))
    name = PurePath(word).name
    if name not in SCRIPTS:
        return Verdict.DOUBTFUL if _WRITES_HERE.search(text) else Verdict.OTHER
    marks = _BASH_MARKS if name in _BASH_SCRIPTS else _PYTHON_MARKS
    if marks.search(text):
        return Verdict.OLD
    is_distinctive = name in _BASH_SCRIPTS and name != "session-start.sh"
    return Verdict.DOUBTFUL if is_distinctive else Verdict.OTHER


def script_path(word: str, project: str) -> str:
    """Return the path of a script that a hook names; a relative path starts at the project."""
    if word.startswith("~"):
        return absolute(word)
    return word if word.startswith("/") else os.path.join(project, word)


def read_script(path: str) -> str:
    """Return up to a megabyte of a script, or "" if it cannot be read."""
    try:
        with open(path, "rb", opener=regular) as file:
            return file.read(_LARGEST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
