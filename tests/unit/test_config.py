"""Settings of config.toml: valid values, refused values and precedence."""

import json
from pathlib import Path

import pytest

from hivepipe import settings
from hivepipe.config import trust
from hivepipe.config.asking import files_asking
from hivepipe.config.config_file import Config, compile_for_hooks, load, load_and_use
from hivepipe.config.retention import fault, limits_of
from hivepipe.config.setting_table import SETTINGS
from hivepipe.errors import SettingsError
from hivepipe.hook.compiled_settings import compiled_settings
from hivepipe.install.user_config import put_setting
from hivepipe.redact import edition
from hivepipe.redact.configured import use_rules
from hivepipe.redact.files_of_rules import files_of_rules
from hivepipe.settings import variable
from tests.unit.conftest import Environ


@pytest.fixture
def user_file(environ: Environ, tmp_path: Path) -> Path:
    path = tmp_path / ".config" / "hivepipe" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def home_file(environ: Environ, tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home" / "config.toml"


def source_of(config: Config, name: str) -> tuple[str, str]:
    (found,) = [(value, source) for each, value, source in config.values() if each == name]
    return found


def test_the_environment_wins_over_the_home_over_the_user_over_the_default(
    environ: Environ, user_file: Path, home_file: Path
) -> None:
    def found() -> tuple[str, str]:
        return source_of(Config(str(home_file.parent)), "checkpoint_interval")

    config = Config(str(home_file.parent))
    assert {source for *_, source in config.values()} == {"default"}
    assert len(list(config.values())) == len(SETTINGS)
    assert (config.for_settings(), config.problems) == ({}, [])
    assert found() == ("60", "default")
    user_file.write_text("checkpoint_interval = 10")
    assert found() == ("10", str(user_file))
    home_file.write_text("checkpoint_interval = 1.5")
    assert found() == ("1.5", str(home_file))
    environ[b"CHECKPOINT_INTERVAL"] = b"7"
    assert found() == ("7", "environment")


def test_a_value_of_a_file_is_read_like_a_variable(
    environ: Environ, user_file: Path, home_file: Path
) -> None:
    user_file.write_text('use_queue = false\ncheckpoint_interval = 0\nfsync = "always"')
    settings.use(Config(str(home_file.parent)).for_settings())
    assert settings.switched_off("HIVEPIPE_USE_QUEUE")
    assert settings.number("HIVEPIPE_CHECKPOINT_INTERVAL") == 0
    assert variable("HIVEPIPE_FSYNC") == "always"
    environ[b"HIVEPIPE_USE_QUEUE"] = b"true"
    assert not settings.switched_off("HIVEPIPE_USE_QUEUE")
    assert b"HIVEPIPE_FSYNC" not in settings.inherited(), "a file may change; a copy would not"


def test_loading_does_not_apply_settings(
    environ: Environ, user_file: Path, home_file: Path
) -> None:
    environ[b"HIVEPIPE_HOME"] = bytes(home_file.parent)
    home_file.write_text('swarm_id = "one"')
    load_and_use()
    assert variable("HIVEPIPE_SWARM_ID") == "one"
    home_file.write_text('swarm_id = "two"')
    place, config = load()
    assert place.home == str(home_file.parent)
    assert config.for_settings() == {"HIVEPIPE_SWARM_ID": "two"}
    assert variable("HIVEPIPE_SWARM_ID") == "one"


INVALID = {
    "nonsense = 1": "no setting 'nonsense'",
    'use_queue = "no"': "use_queue must be true or false",
    "checkpoint_interval = true": "must be a number",
    "checkpoint_interval = -1": "must be a number",
    "checkpoint_interval = nan": "must be a number",
    'fsync = "sometimes"': 'must be "always" or "everysec"',
    'db = "hive.db"': "must be an absolute path", 'swarm_id = "a\\nb"': "must be a name",
    'agent_id = "a/b"': "must be a name of letters",
    "guard_loop = [15, 8]": "must be two counts, the smaller first",
    "guard_alternation = [6]": "must be two counts", "[use_queue]": "must be true or false",
}  # fmt: skip


@pytest.mark.parametrize("text", INVALID)
def test_an_invalid_value_is_reported_and_ignored(home_file: Path, text: str) -> None:
    home_file.write_text(f"idle_secs = 7\n{text}")
    config = Config(str(home_file.parent))
    (message,) = config.problems
    assert message.startswith(str(home_file))
    assert INVALID[text] in message
    assert config.for_settings() == {"HIVEPIPE_IDLE_SECS": "7"}


DEEP = b"x = " + b"[" * 5000 + b"]" * 5000


@pytest.mark.parametrize(
    "data", [b"use_queue = ", b"\xff\xfe", b"x = '" + b"y" * (1 << 20) + b"'", DEEP], ids=range(4)
)
def test_a_file_that_is_not_toml_is_reported(home_file: Path, data: bytes) -> None:
    home_file.write_bytes(data)
    config = Config(str(home_file.parent))
    (message,) = config.problems
    assert "cannot be read" in message
    assert config.for_settings() == {}


def test_a_file_above_a_megabyte_is_reported_by_every_reader(home_file: Path) -> None:
    home_file.write_text('[redaction]\ndisable = ["email"]\n' + "#" * (1 << 20))
    reports = [fault(str(home_file.parent)), use_rules(str(home_file.parent))]
    reports += Config(str(home_file.parent)).problems
    assert ["larger than 1 MB" in report for report in reports] == [True] * 3


def test_long_texts_for_prompts_reach_the_hooks_or_are_reported(home_file: Path) -> None:
    compiled = home_file.parent / "hook-settings.json"

    def write(character: str, rules: int) -> None:
        text = f"\n[[context]]\nkeywords = ['x']\ntext = '{character * 9_000}'"
        home_file.write_text("use_queue = false" + text * rules)

    write("€", 25)
    compile_for_hooks(Config(str(home_file.parent)))
    values, rules = compiled_settings(str(compiled), "")
    assert (values, len(rules)) == ({"HIVEPIPE_USE_QUEUE": "false"}, 25)
    write('"', 80)  # twice as long in JSON
    with pytest.raises(SettingsError, match="more than 1 MB"):
        compile_for_hooks(Config(str(home_file.parent)))
    values, rules = compiled_settings(str(compiled), "")
    assert (values, rules) == ({"HIVEPIPE_USE_QUEUE": "false"}, []), "no former text is in force"


def test_a_trusted_request_of_a_project_whose_path_is_not_utf8_reaches_the_hooks(
    home_file: Path,
) -> None:
    project, home = "/home/u/pr\udce9", str(home_file.parent)
    text = '[[context]]\nkeywords = ["x"]\ntext = "caf\xe9"\n'
    file = trust.Trusted("", text, "2026-01-01T00:00:00.000Z")
    trust.change(home, project, add={"hivepipe.toml": file})
    compile_for_hooks(Config(home))
    _, rules = compiled_settings(f"{home}/hook-settings.json", project)
    (rule,) = rules
    assert isinstance(rule, dict)
    assert rule["text"].endswith("caf\xe9")


def test_extreme_nesting_is_reported_by_every_reader(home_file: Path) -> None:
    home_file.write_bytes(DEEP)
    assert "cannot be read" in fault(str(home_file.parent))
    assert "cannot be read" in use_rules(str(home_file.parent))
    assert edition.checksum_of([DEEP.decode()]) == edition.checksum_of([])


def test_a_file_of_windows_is_read_by_every_reader(user_file: Path, home_file: Path) -> None:
    """With a byte order mark, and line breaks of two characters."""
    lines = ('swarm_id = "one"', "[retention]", "logs = 40", "[redaction]", 'disable = ["email"]')
    text = "\r\n".join(lines)
    for path in (user_file, home_file):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    config = Config(str(home_file.parent))
    assert config.problems == []
    assert config.for_settings() == {"HIVEPIPE_SWARM_ID": "one"}
    assert limits_of(str(home_file.parent)).logs == 40
    assert edition.checksum_of(
        files_of_rules(str(home_file.parent)).values()
    ) != edition.checksum_of([])
    put_setting("hive_rights", "edits")
    assert Config(str(home_file.parent)).for_settings()["HIVEPIPE_HIVE_RIGHTS"] == "edits"
    (user_file.parent / "hivepipe.toml").write_bytes(b"\xef\xbb\xbfguard = 'all'\r\n")
    (asked,) = files_asking(str(home_file.parent), str(user_file.parent))
    assert (asked.state, asked.trouble) == ("new", "")


def test_a_home_may_not_name_a_program(user_file: Path, home_file: Path) -> None:
    home_file.write_text('redis_server = "/tmp/evil"')
    config = Config(str(home_file.parent))
    assert config.for_settings() == {}
    assert str(user_file) in config.problems[0]
    user_file.write_text('redis_server = "/usr/bin/valkey-server"')
    home_file.unlink()
    assert Config(str(home_file.parent)).for_settings() == {
        "HIVEPIPE_REDIS_SERVER": "/usr/bin/valkey-server"
    }


def test_hooks_get_one_small_file_and_none_where_nothing_is_set(
    user_file: Path, home_file: Path
) -> None:
    compiled = home_file.parent / "hook-settings.json"
    compile_for_hooks(Config(str(home_file.parent)))
    assert not compiled.exists()
    home_file.write_text("use_queue = false")
    compile_for_hooks(Config(str(home_file.parent)))
    assert json.loads(compiled.read_text())["values"] == {"HIVEPIPE_USE_QUEUE": "false"}
    assert compiled.stat().st_mode & 0o777 == 0o600
    before = compiled.stat().st_mtime_ns
    compile_for_hooks(Config(str(home_file.parent)))
    assert compiled.stat().st_mtime_ns == before
    home_file.unlink()
    compile_for_hooks(Config(str(home_file.parent)))
    assert not compiled.exists()
    user_file.write_text("use_queue = false")
    missing = home_file.parent / "none"
    compile_for_hooks(Config(str(missing)))
    assert not missing.exists()
