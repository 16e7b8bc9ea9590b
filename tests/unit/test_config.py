"""What config.toml sets, what it may not, and who wins."""

import json
import posix
from collections.abc import Iterator
from pathlib import Path

import pytest

from hivepipe import settings
from hivepipe.config.config_file import Config, compile_for_hooks, load, load_and_use
from hivepipe.config.retention import fault
from hivepipe.config.setting_table import SETTINGS
from hivepipe.redact.configured import use_rules
from hivepipe.settings import variable

Environ = dict[bytes, bytes]


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Environ]:
    seen = {b"HOME": bytes(tmp_path)}
    monkeypatch.setattr(posix, "environ", seen)
    yield seen
    settings.use({})


@pytest.fixture
def users(environ: Environ, tmp_path: Path) -> Path:
    path = tmp_path / ".config" / "hivepipe" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def homes(environ: Environ, tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home" / "config.toml"


def source_of(config: Config, name: str) -> tuple[str, str]:
    (found,) = [value for value in config.values() if value.setting.name == name]
    return found.value, found.source


def test_without_a_file_everything_is_default(homes: Path) -> None:
    config = Config(str(homes.parent))
    assert {value.source for value in config.values()} == {"default"}
    assert len(list(config.values())) == len(SETTINGS)
    assert (config.for_settings(), config.problems) == ({}, [])


def test_the_environment_wins_over_the_home_over_the_user_over_the_default(
    environ: Environ, users: Path, homes: Path
) -> None:
    def found() -> tuple[str, str]:
        return source_of(Config(str(homes.parent)), "checkpoint_interval")

    assert found() == ("60", "default")
    users.write_text("checkpoint_interval = 10")
    assert found() == ("10", str(users))
    homes.write_text("checkpoint_interval = 1.5")
    assert found() == ("1.5", str(homes))
    environ[b"CHECKPOINT_INTERVAL"] = b"7"
    assert found() == ("7", "environment")


def test_what_a_file_says_is_a_variable_like_any_other(
    environ: Environ, users: Path, homes: Path
) -> None:
    users.write_text('use_queue = false\ncheckpoint_interval = 0\nfsync = "always"')
    settings.use(Config(str(homes.parent)).for_settings())
    assert settings.switched_off("HIVEPIPE_USE_QUEUE")
    assert settings.checkpoint_interval_ns() == 0
    assert variable("HIVEPIPE_FSYNC") == "always"
    environ[b"HIVEPIPE_USE_QUEUE"] = b"true"
    assert not settings.switched_off("HIVEPIPE_USE_QUEUE")
    assert b"HIVEPIPE_FSYNC" not in settings.inherited(), "a file may change; a copy would not"


def test_loading_puts_nothing_into_force(environ: Environ, users: Path, homes: Path) -> None:
    environ[b"HIVEPIPE_HOME"] = bytes(homes.parent)
    homes.write_text('swarm_id = "one"')
    load_and_use()
    assert variable("HIVEPIPE_SWARM_ID") == "one"
    homes.write_text('swarm_id = "two"')
    place, config = load()
    assert place.home == str(homes.parent)
    assert config.for_settings() == {"HIVEPIPE_SWARM_ID": "two"}
    assert variable("HIVEPIPE_SWARM_ID") == "one"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nonsense = 1", "no setting 'nonsense'"),
        ('use_queue = "no"', "use_queue must be true or false"),
        ("checkpoint_interval = true", "must be a number"),
        ("checkpoint_interval = -1", "must be a number"),
        ("checkpoint_interval = nan", "must be a number"),
        ('fsync = "sometimes"', 'must be "always" or "everysec"'),
        ('db = "hive.db"', "must be an absolute path"),
        ('swarm_id = "a\\nb"', "must be a name"),
        ('agent_id = "a/b"', "must be a name of letters"),
        ("guard_loop = [15, 8]", "must be two counts, the smaller first"),
        ("guard_alternation = [6]", "must be two counts"),
        ("[use_queue]", "must be true or false"),
        ("use_queue = ", "cannot be read"),
    ],
)
def test_what_cannot_be_used_is_named_and_left_out(homes: Path, text: str, problem: str) -> None:
    homes.write_text(f'swarm_id = "kept"\n{text}')
    if "swarm_id" in text:
        homes.write_text(text)
    config = Config(str(homes.parent))
    (said,) = config.problems
    assert said.startswith(str(homes))
    assert problem in said
    broken = "cannot be read" in problem or "swarm_id" in text
    assert config.for_settings() == ({} if broken else {"HIVEPIPE_SWARM_ID": "kept"})


DEEP = b"x = " + b"[" * 5000 + b"]" * 5000


@pytest.mark.parametrize("data", [b"\xff\xfe", b"x = '" + b"y" * (1 << 20) + b"'", DEEP])
def test_a_file_that_is_no_toml_is_named(homes: Path, data: bytes) -> None:
    homes.write_bytes(data)
    (said,) = Config(str(homes.parent)).problems
    assert "cannot be read" in said


def test_what_is_nested_without_end_is_named_by_every_reader(homes: Path) -> None:
    homes.write_bytes(DEEP)
    assert "cannot be read" in fault(str(homes.parent))
    assert "cannot be read" in use_rules(str(homes.parent))


def test_a_home_may_not_name_a_program(users: Path, homes: Path) -> None:
    homes.write_text('redis_server = "/tmp/evil"')
    config = Config(str(homes.parent))
    assert config.for_settings() == {}
    assert str(users) in config.problems[0]
    users.write_text('redis_server = "/usr/bin/valkey-server"')
    homes.unlink()
    assert Config(str(homes.parent)).for_settings() == {
        "HIVEPIPE_REDIS_SERVER": "/usr/bin/valkey-server"
    }


def test_hooks_get_one_small_file_and_none_where_nothing_is_set(homes: Path) -> None:
    compiled = homes.parent / "hook-settings.json"
    compile_for_hooks(Config(str(homes.parent)))
    assert not compiled.exists()
    homes.write_text("use_queue = false")
    compile_for_hooks(Config(str(homes.parent)))
    assert json.loads(compiled.read_text())["values"] == {"HIVEPIPE_USE_QUEUE": "false"}
    assert compiled.stat().st_mode & 0o777 == 0o600
    before = compiled.stat().st_mtime_ns
    compile_for_hooks(Config(str(homes.parent)))
    assert compiled.stat().st_mtime_ns == before
    homes.unlink()
    compile_for_hooks(Config(str(homes.parent)))
    assert not compiled.exists()


def test_nothing_is_compiled_for_a_home_that_is_not_there(users: Path, tmp_path: Path) -> None:
    users.write_text("use_queue = false")
    compile_for_hooks(Config(str(tmp_path / "none")))
    assert not (tmp_path / "none").exists()
