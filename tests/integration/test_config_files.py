"""config.toml as hooks, stack and commands read it."""

import shutil
from pathlib import Path

from tests.installed import User


def checkpoints_of_two_edits(user: User) -> int:
    """Return how many checkpoints two edits create."""
    user.fire("SessionStart", source="startup")
    for number in range(2):
        user.fire(
            "PostToolUse",
            tool_name="Edit",
            tool_use_id=f"t{number}",
            tool_input={"file_path": "/a"},
            tool_response={},
        )
    spooled = (user.recorded / "spool").glob("*.json")
    return sum(path.read_text().count('"update_checkpoint"') for path in spooled)


def forget_edits(user: User) -> None:
    for name in ("spool", "instances"):
        shutil.rmtree(user.recorded / name)


def test_hooks_read_the_file_and_the_environment_overrides_it(user: User) -> None:
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    user.hivepipe("init")
    (user.recorded / "config.toml").write_text("checkpoint_interval = 0\n")
    user.hivepipe("config")
    assert checkpoints_of_two_edits(user) == 2
    user.env["HIVEPIPE_CHECKPOINT_INTERVAL"] = "60"
    forget_edits(user)
    assert checkpoints_of_two_edits(user) == 1


def test_a_damaged_settings_file_sets_nothing_and_loses_no_event(user: User) -> None:
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    user.hivepipe("init")
    values = (b'{"values": 7}', b'{"values": {"HIVEPIPE_DB": 7}}', b'{"\xff": "\xfe"}')
    for data in (b"", b"{", b"[]", *values):
        (user.recorded / "hook-settings.json").write_bytes(data)
        assert checkpoints_of_two_edits(user) == 1, data
        forget_edits(user)


def test_an_invalid_file_is_reported_and_stops_no_command(user: User) -> None:
    user.hivepipe("init")
    file = user.recorded / "config.toml"
    file.write_text("use_qeue = false\n")
    assert "use_qeue" in user.hivepipe("config", expect=1)
    assert "use_qeue" in user.hivepipe("url")
    assert not Path(user.project, ".hive-mind", "hook-settings.json").exists()
    file.write_text("use_queue = ")
    for command, expect in (("config", 1), ("url", 0)):
        assert user.hivepipe(command, expect=expect).count("cannot be read") == 1
    user.hivepipe("uninstall", "--purge", "--yes")
