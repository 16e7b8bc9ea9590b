"""Every command's help has a sentence and examples, and every example parses."""

import errno
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hivepipe.cli.command_table import GROUPS
from hivepipe.cli.examples import EXAMPLES, examples_of
from hivepipe.cli.main import _reason, commands, main
from hivepipe.cli.parameters import Choice
from tests.architecture.test_docs import CALLABLE
from tests.outcome import outcome_of

ROOT = Path(__file__).resolve().parents[2]


def walk_commands() -> Iterator[tuple[str, click.Command]]:
    """Yield the path and the object of every command and group."""
    waiting = list(commands().items())
    while waiting:
        path, command = waiting.pop(0)
        yield path, command
        if isinstance(command, click.Group):
            waiting += [(f"{path} {name}", inner) for name, inner in command.commands.items()]


def test_every_example_is_of_an_existing_command() -> None:
    assert {"init", "session show", "hive projects", "hive projects add"} <= set(CALLABLE)
    assert set(EXAMPLES) <= set(CALLABLE)


def test_every_command_has_a_sentence_an_example_and_explained_options() -> None:
    for path, command in CALLABLE.items():
        result = CliRunner().invoke(main, [*path.split(), "--help"], terminal_width=200)
        assert result.exit_code == 0, path
        sentence = (command.help or "").split("\n\n")[0]
        assert re.match(r"[A-Z].*\.$", sentence, re.DOTALL), f"`{path}` has no docstring"
        examples = examples_of(command, path)
        assert examples, f"hivepipe/cli/examples.py has no `{path}`"
        for example in examples:
            assert f"\n    {example}\n" in result.output
        for option in command.params:
            if isinstance(option, click.Option):
                is_self_explanatory = isinstance(option.type, click.IntRange | click.Choice)
                assert option.help or is_self_explanatory, (path, option.opts)


def test_every_help_fits_into_80_columns_and_names_the_values_of_options() -> None:
    for path in CALLABLE:
        text = CliRunner().invoke(main, [*path.split(), "--help"], terminal_width=80).output
        assert [line for line in text.splitlines() if len(line) > 80] == [], path
        assert not re.search(r"--\S+ (INTEGER|FILENAME)", text), f"`{path}` lacks a metavar"


def test_every_example_parses(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (click.Path, click.File):  # files of an example need not exist
        monkeypatch.setattr(kind, "convert", lambda _self, value, *_: value)
    examples = [
        (path, example)
        for path, command in CALLABLE.items()
        for example in examples_of(command, path)
    ]
    for path, example in examples:
        if path == "completion":
            continue
        words = shlex.split(re.split(r" [<>|] ", example)[0])
        program, *names = f"hivepipe {path}".split()
        assert words[: len(names) + 1] == [program, *names]
        parent = click.Context(main, **main.context_settings)
        try:
            CALLABLE[path].make_context(path, words[len(names) + 1 :], parent=parent)
        except click.ClickException as error:
            pytest.fail(f"`{example}` of hivepipe/cli/examples.py: {error.format_message()}")


GROUPS_OF_COMMANDS = [
    "",
    *(path for path, command in walk_commands() if isinstance(command, click.Group)),
]


def test_every_command_is_in_exactly_one_group_of_the_help() -> None:
    names = [name for group in GROUPS.values() for name in group]
    listed = re.findall(
        r"^  ([a-z][a-z-]*) {2,}[A-Z]", CliRunner().invoke(main, ["-h"]).output, re.M
    )
    assert listed == names
    assert sorted(names) == sorted(set(names)) == sorted(commands())


def test_no_command_of_a_module_is_missing_from_the_table() -> None:
    """A command that is in no group is listed in the table of `hivepipe` itself."""
    held = {id(command) for _, command in walk_commands()}
    for file in sorted((ROOT / "hivepipe" / "cli").rglob("*.py")):
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        found = vars(import_module(name)).values()
        forgotten = [each for each in found if isinstance(each, click.Command)]
        missing = [each.name for each in forgotten if id(each) not in held | {id(main)}]
        assert missing == [], "add it to hivepipe/cli/command_table.py"


@pytest.mark.parametrize("path", GROUPS_OF_COMMANDS)
def test_no_line_of_a_list_of_commands_is_cut_or_broken(path: str) -> None:
    result = CliRunner().invoke(main, [*path.split(), "-h"], terminal_width=80)
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line for line in lines[1:] if line.endswith("...")] == []
    if not path:
        assert [line for line in lines if re.match(r"  [a-z-]+ .*[^.]$", line)] == []


def test_the_list_of_commands_imports_none_of_them() -> None:
    script = (
        "import sys; from click.testing import CliRunner; from hivepipe.cli.main import main;"
        "assert CliRunner().invoke(main, ['-h']).exit_code == 0;"
        "print(*(name for name in sys.modules if name.startswith('hivepipe.cli.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = {name.removeprefix("hivepipe.cli.") for name in done.stdout.split()}
    own = {"main", "command_table", "default_home", "examples", "parameters", "terminal"}
    assert loaded == own


def test_h_is_help_everywhere() -> None:
    for path in ("", *(path for path, _ in walk_commands())):
        short, long = (CliRunner().invoke(main, [*path.split(), it]) for it in ("-h", "--help"))
        assert (short.exit_code, short.output) == (0, long.output), path
        assert short.output.startswith("Usage:")


def test_a_group_without_a_command_prints_its_help() -> None:
    for path in {*GROUPS_OF_COMMANDS} - {*CALLABLE}:
        bare, asked = (CliRunner().invoke(main, [*path.split(), *more]) for more in ((), ("-h",)))
        assert (bare.exit_code, bare.stderr) == (64, asked.stdout), path


SUGGESTIONS = {
    "sesions": "'sessions'",
    "session shw": "'show'",
    "hive projects ad": "'add'",
    "status --jsno": "'--json'",
    "costs --by modle": "'model'",
    "logs writter": "'writer'",
    "guard mode of": "'off'",
    "credentials set OPENAI_KEY": "'OPENAI_API_KEY'",
}


def test_a_mistyped_word_gets_a_suggestion() -> None:
    for typed, meant in SUGGESTIONS.items():
        result = CliRunner().invoke(main, typed.split())
        assert result.exit_code == 64, typed
        message = " ".join(result.stderr.split())
        assert re.search(rf"Did you mean( one of)?:? [^?]*{re.escape(meant)}", message), message
    unlike = CliRunner().invoke(main, ["xyzzy"])
    assert unlike.exit_code == 64
    assert "Did you mean" not in unlike.stderr


def test_a_mistyped_value_of_every_fixed_set_gets_a_suggestion() -> None:
    params = [param for _, command in walk_commands() for param in command.params]
    kinds = [param.type for param in params if isinstance(param.type, click.Choice)]
    assert len(kinds) > 8
    assert {type(kind) for kind in kinds} == {Choice}


def test_the_help_lists_all_values_of_an_argument() -> None:
    for path, command in CALLABLE.items():
        for param in command.params:
            if isinstance(param, click.Argument) and isinstance(param.type, Choice):
                output = CliRunner().invoke(main, [*path.split(), "-h"], terminal_width=80).output
                for value in param.type.choices:
                    assert re.search(rf"(^|\s){re.escape(value)}(,|$)", output, re.M), value


@pytest.mark.parametrize(("old", "name"), [("cost", "costs"), ("log", "transcript")])
def test_a_renamed_command_keeps_its_old_name_hidden(old: str, name: str) -> None:
    shown = CliRunner().invoke(main, ["hive", "-h"]).output
    assert re.search(rf"^  {name} ", shown, re.M)
    assert not re.search(rf"^  {old} ", shown, re.M)
    by_old, by_name = (CliRunner().invoke(main, ["hive", word, "-h"]) for word in (old, name))
    assert by_old.exit_code == 0
    assert by_old.output.replace(f"hive {old}", f"hive {name}", 1) == by_name.output


HIVEPIPE = Path(sys.executable).with_name("hivepipe")


COMPLETED = {
    "hivepipe ses": {"session", "sessions"},
    "hivepipe session ''": {"show", "log"},
    "hivepipe hive projects a": {"add"},
    "hivepipe init --us": {"--user"},
    "hivepipe costs --by mo": {"model"},
}


def test_bash_completes_what_was_typed() -> None:
    script = f"""
        eval "$({shlex.quote(str(HIVEPIPE))} completion bash)"
        complete_words() {{
            COMP_WORDS=("$@") COMPREPLY=()
            COMP_CWORD=$(($# - 1))
            _hivepipe_completion hivepipe
            echo "${{COMPREPLY[@]}}"
        }}
    """
    script += "".join(f"complete_words {typed}\n" for typed in COMPLETED)
    done = outcome_of(
        ["bash", "--norc", "-c", script],
        {"PATH": f"{HIVEPIPE.parent}:/usr/bin:/bin", "HOME": "/nonexistent"},
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    offered = [{*line.split()} for line in done.stdout.splitlines()]
    assert dict(zip(COMPLETED, offered, strict=True)) == COMPLETED


def test_the_commands_around_the_stack_do_not_import_tables() -> None:
    script = "import sys, hivepipe.cli.stack; sys.exit('rich' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], timeout=60, check=True)


def test_only_a_path_in_a_closed_home_asks_for_another_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = str(tmp_path / "gone")
    monkeypatch.setattr("hivepipe.cli.main.user_folder", lambda: home)
    for path, asks in ((f"{home}/.local/state", True), (home, True), (f"{home}2/a", False)):
        error = PermissionError(errno.EACCES, "Permission denied", path)
        assert ("set HOME" in _reason(error)) == asks
