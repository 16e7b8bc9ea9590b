"""Credentials and their order, addresses and models from settings, and consent to summaries."""

import base64
import json
import os
import time
from pathlib import Path

import pytest

from hivepipe import settings
from hivepipe.config.config_file import Config
from hivepipe.doctor.checks import CHECKS
from hivepipe.doctor.facts import Facts, Finding
from hivepipe.errors import CredentialsError
from hivepipe.home import Place
from hivepipe.stack.runtime_folder import Stack
from hivepipe.summaries import key_command, providers, terms
from hivepipe.summaries.consent import (
    OFF,
    consent_path,
    give_consent,
    is_enabled,
    objection,
    withdraw_consent,
)
from hivepipe.summaries.providers import (
    CODEX,
    KEPT,
    NO_KEY,
    SETTABLE,
    Offer,
    credentials_path,
    find_offer,
    read_commands,
    read_credentials,
    write_credential,
)
from tests.unit.conftest import Environ

ENDLESS = r"sh -c 'exec tr \\0 k < /dev/zero'"
ORDER = ("OPENROUTER_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", CODEX, *SETTABLE[3:])


def write_codex_login(folder: Path, expires: float) -> None:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": expires}).encode()).rstrip(b"=").decode()
    tokens = {"access_token": f"head.{claims}.tail", "account_id": "acc", "refresh_token": "r"}
    (folder / ".codex").mkdir(exist_ok=True)
    (folder / ".codex" / "auth.json").write_text(json.dumps({"tokens": tokens}))


def found_offer() -> Offer:
    offer = find_offer()
    assert offer is not None
    return offer


def test_credentials_are_used_in_their_order(environ: Environ, tmp_path: Path) -> None:
    """Credentials are added from the last to the first. Each new one takes precedence."""
    assert find_offer() is None
    for name in reversed(ORDER):
        if name == CODEX:
            write_codex_login(tmp_path, time.time() + 3600)
        else:
            write_credential(name, f"secret-of-{name}")
        assert found_offer().name == name
    kinds = []
    for name in ORDER:
        kinds.append(found_offer().provider.kind)
        if name == CODEX:
            (tmp_path / ".codex" / "auth.json").unlink()
        else:
            write_credential(name, None)
    assert kinds == ["openrouter", "anthropic", "openai", "codex", *["claude"] * 3]
    assert find_offer() is None
    for name in KEPT:
        write_credential(name, f"secret-of-{name}")
    assert set(read_credentials()) == set(KEPT)


@pytest.mark.parametrize("name", SETTABLE)
def test_the_environment_comes_before_the_file_of_the_same_name(
    environ: Environ, name: str
) -> None:
    write_credential(name, "of-the-file")
    environ[name.encode()] = b"of-the-environment"
    assert (found_offer().secret, found_offer().source) == ("of-the-environment", "environment")
    assert "of-the-environment" not in repr(found_offer())
    offer = find_offer(with_environment=False)
    assert offer is not None
    assert (offer.secret, offer.source) == ("of-the-file", str(credentials_path()))


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("printf %s secret-1", "secret-1"),
        ("sh -c 'echo secret-1; exit 3'", "exit code 3"),
        ("printf 'secret-1\\nsecret-2'", "not a line of ASCII"),
        ("true", "not a line of ASCII"),
        ("/nowhere/a-program", "does not start"),
        ("secret-1", "does not start: No such file"),
        ("printf 'unclosed", "does not start"),
        ("sleep 60", "took longer"),
        ("yes", "not a line of ASCII"),
        (ENDLESS, "not a line of ASCII"),
    ],
)
def test_a_command_prints_the_key(
    environ: Environ, monkeypatch: pytest.MonkeyPatch, command: str, expected: str
) -> None:
    if command == "sleep 60":
        monkeypatch.setattr(key_command, "LIMIT_SECS", 0.2)
    environ[b"PATH"] = os.environb[b"PATH"]
    write_credential("OPENAI_API_KEY", "kept-before")
    write_credential("OPENAI_API_KEY", command, by_command=True)
    assert (read_credentials(), read_commands()) == ({}, {"OPENAI_API_KEY": command})
    assert found_offer().secret == ""
    if expected == "secret-1":
        assert found_offer().with_secret().secret == expected
    else:
        with pytest.raises(CredentialsError, match=expected) as raised:
            found_offer().with_secret()
        assert "secret-" not in str(raised.value)
    write_credential("OPENAI_API_KEY", "kept-after")
    assert (found_offer().secret, read_commands()) == ("kept-after", {})


def test_only_the_user_can_read_the_credentials(environ: Environ) -> None:
    write_credential("OPENAI_API_KEY", "a")
    path = credentials_path()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    path.chmod(0o640)
    with pytest.raises(CredentialsError, match="chmod 600"):
        find_offer()
    path.unlink()
    path.symlink_to(path.with_name("elsewhere"))
    with pytest.raises(CredentialsError, match="cannot be read"):
        find_offer()


def test_lines_of_the_user_in_the_file_are_kept(environ: Environ) -> None:
    write_credential("OPENAI_API_KEY", None)
    assert not credentials_path().parent.exists(), "the file has nothing to remove"
    write_credential("OPENAI_API_KEY", "a")
    path = credentials_path()
    path.write_bytes(b"# rotated in May, K\xe4te\n" + path.read_bytes() + b"OTHER=x\n")
    write_credential("ANTHROPIC_API_KEY", "b")
    write_credential("OPENAI_API_KEY", None)
    kept = b"# rotated in May, K\xe4te\nOTHER=x\nANTHROPIC_API_KEY=b\n"
    assert path.read_bytes() == kept
    large = kept + b"# a comment\n" * 6000
    path.write_bytes(large)
    with pytest.raises(CredentialsError, match="cannot be read: larger than"):
        write_credential("OPENAI_API_KEY", "c")
    assert path.read_bytes() == large


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_file_of_another_user_is_not_trusted(environ: Environ) -> None:
    write_credential("OPENAI_API_KEY", "a")
    os.chown(credentials_path(), 65534, 65534)
    with pytest.raises(CredentialsError, match="not a regular file of this user"):
        find_offer()


def test_an_invalid_key_is_refused_and_not_sent(environ: Environ) -> None:
    """The error of a request that cannot be sent would contain it in escaped form."""
    for secret in ("", "two\nlines", "\x1b[0m", "käse"):
        with pytest.raises(CredentialsError):
            pytest.fail(f"accepted {secret!r}: {write_credential('OPENAI_API_KEY', secret)}")
    assert read_credentials() == {}
    environ[b"OPENAI_API_KEY"] = b" of-the-environment\n"
    assert (found_offer().secret, found_offer().trouble) == ("of-the-environment", "")
    environ[b"OPENAI_API_KEY"] = b"two\nlines"
    assert found_offer().trouble == "OPENAI_API_KEY is not a key: a key is one line of ASCII"


@pytest.mark.parametrize(
    ("name", "trouble"),
    [("OPENAI_API_KEY", "with its requirements.lock"), ("CLAUDE_CODE_OAUTH_TOKEN", "")],
)
def test_a_provider_over_http_needs_the_extra(
    environ: Environ, monkeypatch: pytest.MonkeyPatch, name: str, trouble: str
) -> None:
    monkeypatch.setattr(providers, "_LIBRARY", "a_library_that_is_not_installed")
    environ[name.encode()] = b"sk-of-the-environment"
    assert found_offer().trouble.endswith(trouble)
    assert bool(found_offer().trouble) is bool(trouble)


def test_an_expired_or_invalid_codex_login_is_not_used(environ: Environ, tmp_path: Path) -> None:
    write_codex_login(tmp_path, time.time() - 1)
    assert "expired" in found_offer().trouble
    write_codex_login(tmp_path, time.time() + 60)
    assert (found_offer().trouble, found_offer().account) == ("", "acc")
    for text in ("", "[]", '{"tokens": null}', '{"tokens": {"access_token": 1}}'):
        (tmp_path / ".codex" / "auth.json").write_text(text)
        assert find_offer() is None


def test_the_user_can_set_the_model_and_the_address(environ: Environ, tmp_path: Path) -> None:
    write_credential("OPENAI_API_KEY", "a")
    assert (found_offer().model, found_offer().url) == ("gpt-5.4-mini", "https://api.openai.com/v1")
    assert not found_offer().is_local
    (credentials_path().parent / "config.toml").write_text(
        'openai_url = "http://localhost:11434/v1/"\nllm_model = "qwen3"\nsummaries = true\n'
    )
    home = tmp_path / "home"
    home.mkdir()
    settings.use(Config(str(home)).for_settings())
    assert (found_offer().model, found_offer().url) == ("qwen3", "http://localhost:11434/v1")
    assert found_offer().is_local
    assert found_offer().receiver == "the server localhost:11434"
    environ[b"MEMORY_RATER_LLM_MODEL"] = b"llama"
    assert found_offer().model == "llama"


@pytest.mark.parametrize(
    ("url", "is_offered"),
    [
        ("http://localhost:11434/v1", True),
        ("http://127.0.0.1:8000", True),
        ("http://gpu.example:8000", False),
    ],
)
def test_a_local_server_needs_no_key(environ: Environ, url: str, is_offered: bool) -> None:
    environ[b"HIVEPIPE_ANTHROPIC_URL"] = b"https://proxy.example"
    environ[b"HIVEPIPE_OPENAI_URL"] = url.encode()
    offer = find_offer()
    assert (offer is not None) == is_offered
    if offer:
        assert (offer.name, offer.url, offer.secret) == (NO_KEY, url, "")
    environ[b"HIVEPIPE_ANTHROPIC_URL"] = b"http://127.0.0.1:4000"
    write_credential("OPENAI_API_KEY", "a")  # any credential takes precedence
    assert found_offer().name == "OPENAI_API_KEY"


@pytest.mark.parametrize(
    "line",
    [
        "summaries = true",
        'openai_url = "http://evil.example/v1"',
        'llm_model = "dear"',
        "llm_daily_usd = 1000",
    ],
)
def test_a_home_cannot_set_the_terms_of_summaries(
    environ: Environ, tmp_path: Path, line: str
) -> None:
    """A home may be part of a shared repository."""
    (tmp_path / "config.toml").write_text(line)
    config = Config(str(tmp_path))
    assert config.for_settings() == {}
    assert "belongs in" in config.problems[0]


# ---- consent
def test_summaries_need_consent(environ: Environ, tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    write_credential("OPENAI_API_KEY", "a")
    assert objection(home, found_offer()) == OFF
    give_consent(home, found_offer(), "2026-11-21T10:00:00.000Z")
    assert (is_enabled(home), objection(home, found_offer())) == (True, "")
    assert consent_path(home).stat().st_mode & 0o777 == 0o600
    assert not is_enabled(str(tmp_path / "another"))
    for word in (b"off", b"perhaps"):
        environ[b"HIVEPIPE_SUMMARIES"] = word
        assert objection(home, found_offer()) == OFF, "the setting takes precedence"
    del environ[b"HIVEPIPE_SUMMARIES"]
    withdraw_consent(home)
    withdraw_consent(home)
    assert objection(home, found_offer()) == OFF
    environ[b"HIVEPIPE_SUMMARIES"] = b"on"
    assert objection(home, found_offer()) == ""


def test_consent_covers_no_other_model_provider_or_address(
    environ: Environ, tmp_path: Path
) -> None:
    home = str(tmp_path / "home")
    write_credential("OPENAI_API_KEY", "a")
    give_consent(home, found_offer(), "2026-11-21T10:00:00.000Z")
    environ[b"HIVEPIPE_LLM_MODEL"] = b"gpt-dear"
    assert "you agreed to openai with gpt-5.4-mini" in objection(home, found_offer())
    del environ[b"HIVEPIPE_LLM_MODEL"]
    environ[b"HIVEPIPE_OPENAI_URL"] = b"https://proxy.example/v1"
    text = objection(home, found_offer())
    assert "at https://api.openai.com/v1, but now it would be" in text
    assert "at https://proxy.example/v1: " in text
    write_credential("ANTHROPIC_API_KEY", "a")
    assert "it would be anthropic" in objection(home, found_offer())


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('summaries = "off"', OFF),
        ('summaries = "maybe"', OFF),
        ("llm_daily_usd =", OFF),
        ("llm_daily_calls = -3", "llm_daily_calls is not a number"),
        ("llm_daily_tokens = 1e9", "llm_daily_tokens is not a number"),
        ('llm_daily_usd = "0.10 USD"', "llm_daily_usd is not a number"),
        ("summaries = true\nllm_daily_usd = nan", "llm_daily_usd is not a number"),
        ('openai_url = "localhost:11434"', "openai_url must be an http"),
        ('openai_url = "https://ana:secret@proxy.example"', "without a password"),
    ],
)
def test_nothing_is_sent_while_a_term_is_invalid(
    environ: Environ, tmp_path: Path, line: str, named: str
) -> None:
    """An invalid value was meant to differ from the default: a lower limit, another address."""
    home = tmp_path / "home"
    home.mkdir()
    write_credential("OPENAI_API_KEY", "a")
    give_consent(str(home), found_offer(), "2026-11-21T10:00:00.000Z")
    (credentials_path().parent / "config.toml").write_text(line)
    config = Config(str(home))
    settings.use(config.for_settings())
    assert len(config.problems) == 1
    assert named in objection(str(home), found_offer())
    assert "secret" not in objection(str(home), found_offer()) + str(list(config.values()))
    if "llm_daily" in line:
        assert 0 in terms.caps()


def test_a_stack_inherits_no_credential_and_no_setting_of_summaries(environ: Environ) -> None:
    for name in (*SETTABLE, "HIVEPIPE_SUMMARIES", "HIVEPIPE_OPENAI_URL", "HIVEPIPE_LLM_MODEL"):
        environ[name.encode()] = b"canary"
    assert b"canary" not in b"".join(settings.inherited().values())


# ---- doctor
def findings(name: str, home: Path) -> list[Finding]:
    place = Place(str(home.parent), str(home), {})
    return list(CHECKS[name](Facts(place, Stack(str(home), str(home / "run")))))


def test_settings_of_this_shell_do_not_reach_the_stack(environ: Environ, tmp_path: Path) -> None:
    home = tmp_path / "home"
    write_credential("OPENAI_API_KEY", "a")
    environ[b"HIVEPIPE_SUMMARIES"] = b"on"
    environ[b"HIVEPIPE_OPENAI_URL"] = b"http://127.0.0.1:1"
    *notes, could = findings("summaries", home)
    assert [note.text.partition(" ")[0] for note in notes] == [
        "HIVEPIPE_SUMMARIES",
        "HIVEPIPE_OPENAI_URL",
    ]
    assert all(note.is_note for note in notes)
    assert "nothing is sent until you agree" in could.text
    offer = find_offer(with_environment=False)
    assert offer is not None
    assert offer.url == "https://api.openai.com/v1"
    give_consent(str(home), offer, "2026-11-21T10:00:00.000Z")
    assert "summaries are written by" in findings("summaries", home)[-1].text
    environ[b"HIVEPIPE_SUMMARIES"] = b"off"
    assert "summaries are written by" in findings("summaries", home)[-1].text


def test_doctor_names_the_credential_and_never_the_key(environ: Environ, tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert findings("summaries", home) == findings("credentials", home) == []
    write_credential("OPENAI_API_KEY", "sk-very-secret")
    (finding,) = findings("summaries", home)
    assert finding.is_note
    assert "OPENAI_API_KEY" in finding.text
    give_consent(str(home), found_offer(), "2026-11-21T10:00:00.000Z")
    (finding,) = findings("summaries", home)
    assert (finding.is_note, "gpt-5.4-mini, with OPENAI_API_KEY" in finding.text) == (True, True)
    assert "sk-very-secret" not in finding.text
    write_credential("OPENAI_API_KEY", None)
    (finding,) = findings("summaries", home)
    assert finding.mend == "hivepipe credentials set OPENROUTER_API_KEY"
    write_credential("OPENAI_API_KEY", "sk-very-secret")
    write_credential("ANTHROPIC_API_KEY", "b")
    (finding,) = findings("summaries", home)
    assert (finding.is_note, finding.mend) == (False, "hivepipe summaries enable")
    credentials_path().chmod(0o644)
    (finding,) = findings("credentials", home)
    assert finding.mend == f"chmod 600 {credentials_path()}"
