"""Claude Code processes without a session, such as `claude plugin`, fire only SessionEnd."""

from pathlib import Path

import pytest

from tests import payloads
from tests.conftest import Home, fire
from tests.faults.injections.disks import mounted, run
from tests.payloads import changed

END = changed(payloads.SESSION_END, reason="other")


def test_sessionend_without_a_session_is_ignored(private_home: Home) -> None:
    fire("SessionEnd", changed(END, transcript_path="/no/such/transcript.jsonl"), private_home.env)
    assert not private_home.spool
    assert not list((private_home.path / "instances").glob("*")), "no file that nothing removes"


def test_sessionend_of_a_session_older_than_the_hooks_is_recorded(
    private_home: Home, tmp_path: Path
) -> None:
    transcript = tmp_path / "transcript.jsonl"
    transcript.write_text("{}\n")
    fire("SessionEnd", changed(END, transcript_path=str(transcript)), private_home.env)
    assert len(private_home.spool) == 1


@pytest.mark.parametrize("reason", ["other", "prompt_input_exit"])
def test_sessionend_of_a_session_without_a_prompt_is_recorded(
    private_home: Home, reason: str
) -> None:
    """Claude Code writes no transcript for such a session."""
    for event in (payloads.SESSION_START, changed(END, reason=reason)):
        changed_event = changed(event, transcript_path="/no/such/transcript.jsonl")
        fire(event["hook_event_name"], changed_event, private_home.env)
    assert len(private_home.spool) == 2


@pytest.mark.parametrize("is_full", [False, True], ids=["read-only", "full"])
def test_sessionend_is_recorded_if_the_home_takes_no_marker(
    private_home: Home, is_full: bool
) -> None:
    home = private_home.path
    with mounted(home, "-t", "tmpfs", "-o", "size=4k", "tmpfs"):
        (home / "filler").write_bytes(bytes(4096))
        assert is_full or run("mount", "-o", "remount,ro", str(home))
        fire("SessionEnd", changed(END, transcript_path="/no/transcript.jsonl"), private_home.env)
    spare = Path(private_home.env["XDG_RUNTIME_DIR"], "hivepipe")
    assert len([*spare.glob("*/spool/*")]) == 1
