"""Every command says in a sentence what it does, and by an example how; every example parses."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hivepipe.cli.completion import SHELLS
from hivepipe.cli.examples import EXAMPLES
from hivepipe.cli.main import commands, main


def below(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Yield what can be called: not a group that only holds others."""
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from below(f"{path} {name}", inner)
        if not command.invoke_without_command:
            return
    yield path, command


CALLABLE = dict(pair for name, command in commands().items() for pair in below(name, command))


def test_the_walk_finds_commands_at_every_depth() -> None:
    assert {"init", "session show", "hive projects", "hive projects add"} <= set(CALLABLE)


def test_no_example_is_of_a_command_that_is_not_there() -> None:
    assert set(EXAMPLES) == set(CALLABLE)


@pytest.mark.parametrize("path", CALLABLE)
def test_every_command_has_a_sentence_and_an_example(path: str) -> None:
    result = CliRunner().invoke(main, [*path.split(), "--help"], terminal_width=200)
    assert result.exit_code == 0
    sentence = (CALLABLE[path].help or "").split("\n\n")[0]
    assert re.match(r"[A-Z].*\.$", sentence, re.DOTALL), sentence
    for example in EXAMPLES[path]:
        assert f"\n    {example}\n" in result.output


@pytest.mark.parametrize("path", CALLABLE)
def test_every_option_explains_itself(path: str) -> None:
    for option in CALLABLE[path].params:
        if isinstance(option, click.Option):
            assert option.help or isinstance(option.type, click.IntRange | click.Choice), (
                option.opts
            )


@pytest.mark.parametrize("path", [path for path in CALLABLE if path != "completion"])
def test_every_example_parses(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (click.Path, click.File):  # what an example names need not be there
        monkeypatch.setattr(kind, "convert", lambda _self, value, *_: value)
    for example in EXAMPLES[path]:
        words = shlex.split(re.split(r" [<>|] ", example)[0])
        program, *names = f"hivepipe {path}".split()
        assert words[: len(names) + 1] == [program, *names]
        CALLABLE[path].make_context(path, words[len(names) + 1 :])


# ---- completion

HIVEPIPE = Path(sys.executable).with_name("hivepipe")


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gets_a_completion(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert "_HIVEPIPE_COMPLETE" in result.output


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["hivepipe", "ses"], {"session", "sessions"}),
        (["hivepipe", "session", ""], {"show", "log"}),
        (["hivepipe", "hive", "projects", "a"], {"add"}),
        (["hivepipe", "init", "--us"], {"--user"}),
        (["hivepipe", "costs", "--by", "m"], {"model"}),
    ],
)
def test_bash_completes_what_was_typed(typed: list[str], offered: set[str]) -> None:
    script = f"""
        eval "$({shlex.quote(str(HIVEPIPE))} completion bash)"
        COMP_WORDS=({" ".join(shlex.quote(word) for word in typed)})
        COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _hivepipe_completion hivepipe
        echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={"PATH": f"{HIVEPIPE.parent}:/usr/bin:/bin", "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    assert set(done.stdout.split()) == offered
