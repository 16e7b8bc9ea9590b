"""`hivepipe logs` reads the end of each log, whatever its size, then only what is new."""

from pathlib import Path

from hivepipe.cli.log_tail import Tail


def test_the_last_lines_of_a_huge_log_are_its_newest(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "writer.log"
    log.parent.mkdir()
    log.write_text("old\n" * (5 << 20) + "newest\n")
    tail = Tail(str(tmp_path), ["writer"])
    assert tail.last_lines(1) == [("writer", "newest")]
    with log.open("a") as stream:
        stream.write("added\n")
    assert tail.new_lines() == [("writer", "added")]


def test_a_rotated_log_is_read_to_its_end(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "writer.log"
    log.parent.mkdir()
    log.write_text("one\n")
    tail = Tail(str(tmp_path), ["writer"])
    assert tail.last_lines(5) == [("writer", "one")]
    log.write_text("one\ntwo\n")
    log.rename(f"{log}.1")
    log.write_text("three\n")
    assert tail.new_lines() == [("writer", "two"), ("writer", "three")]
    assert tail.last_lines(5) == [("writer", line) for line in ("one", "two", "three")]
    log.write_text("4\n")  # emptied by a user
    assert tail.new_lines() == [("writer", "4")]
