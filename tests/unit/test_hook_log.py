"""hook-errors.log has one line per problem, and a log that cannot be written raises nothing."""

import multiprocessing
import posix
import re
from pathlib import Path

import pytest

from hivepipe.files.hook_log import log_line

LINE = re.compile(
    r"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\] \[([a-z-]+)\] \[(ERROR|WARNING|INFO)\] (.*)"
)


def lines(folder: Path) -> list[str]:
    return (folder / "hook-errors.log").read_bytes().decode("utf-8", "replace").splitlines()


@pytest.mark.parametrize(
    ("event", "kebab", "level"),
    [
        ("PostToolUse", "post-tool-use", "ERROR"),
        ("Stop", "stop", "WARNING"),
        ("UserPromptExpansion", "user-prompt-expansion", "INFO"),
    ],
)
def test_a_line_names_time_event_level_and_message(
    tmp_path: Path, event: str, kebab: str, level: str
) -> None:
    log_line(str(tmp_path), event, level, "No space left on device")
    (line,) = lines(tmp_path)
    match = LINE.fullmatch(line)
    assert match
    assert match.groups() == (kebab, level, "No space left on device")


def test_lines_are_appended_to_a_file_that_only_the_user_can_read(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "logs"
    before = posix.umask(0)
    try:
        for n in range(3):
            log_line(str(folder), "Stop", "ERROR", f"trouble {n}")
    finally:
        posix.umask(before)
    assert [line[-1] for line in lines(folder)] == ["0", "1", "2"]
    assert (folder / "hook-errors.log").stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "message",
    ["x" * 5000, "é" * 5000, "a\nb\nc", "a\rb", "a\u2028b\x85c", "\udcff\ud83d", "\0", ""],
)
def test_a_message_is_one_line_of_at_most_500_bytes(tmp_path: Path, message: str) -> None:
    log_line(str(tmp_path), "Stop", "ERROR", message)
    log_line(str(tmp_path), "Stop", "ERROR", "next")
    first, second, end = (tmp_path / "hook-errors.log").read_bytes().split(b"\n")
    assert len(first) < 500
    assert second.endswith(b"next")
    assert end == b""


def test_a_link_in_the_logs_place_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "hook-errors.log").symlink_to(victim)
    log_line(str(tmp_path), "Stop", "ERROR", "x")
    assert victim.read_text() == "precious"


def test_a_pipe_in_the_logs_place_does_not_hang_the_hook(tmp_path: Path) -> None:
    posix.mkfifo(str(tmp_path / "hook-errors.log"))
    log_line(str(tmp_path), "Stop", "ERROR", "x")


@pytest.mark.parametrize("folder", ["file", "file/logs", "\0", "loop/logs"])
def test_where_no_log_can_be_written_nothing_is_raised(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    log_line(f"{tmp_path}/{folder}", "Stop", "ERROR", "x")
    assert (tmp_path / "file").read_text() == ""


def test_lines_of_parallel_hooks_never_mix(tmp_path: Path) -> None:
    def write_many(number: int) -> None:
        for n in range(50):
            log_line(str(tmp_path), "Stop", "ERROR", f"{number} {n} " + "x" * 400)

    forking = multiprocessing.get_context("fork")
    writers = [forking.Process(target=write_many, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    written = lines(tmp_path)
    assert all(LINE.fullmatch(line) for line in written)
    found = {tuple(line.split("] ")[3].split()[:2]) for line in written}
    assert found == {(str(number), str(n)) for number in range(4) for n in range(50)}
    assert len(written) == 200
