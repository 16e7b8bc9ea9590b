"""The providers and their credentials in order of preference.

A credential comes from the process's own environment, or else from `credentials.env`, which
`hivepipe credentials set` writes and every call reads again. Processes of a stack inherit no
credentials.
"""

import json
import os
import stat
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from hivepipe.errors import NEEDS_PACKAGES, CredentialsError, os_error_as
from hivepipe.files.regular_file import read_bytes, whole
from hivepipe.home import make_folders, user_config_folder, user_folder, write_small
from hivepipe.settings import environment, of_files, variable
from hivepipe.summaries.key_command import is_key, key_printed_by
from hivepipe.text.urls import KIND, is_local, is_web_address

ReadSetting = Callable[[str], str | None]  # reads a setting from all sources or only from files
Kind = Literal["openrouter", "anthropic", "openai", "codex", "claude"]

FILE_NAME = "credentials.env"
LIMIT_BYTES = 64_000
CODEX = "Codex OAuth"
_LIBRARY = "pydantic_ai"  # `claude -p` does not need it
_NO_LIBRARY = f"this provider {NEEDS_PACKAGES}"
NO_KEY = "no key"  # a local server needs no key


class Provider(NamedTuple):
    """A provider: its credentials, default model and default address."""

    kind: Kind
    credentials: tuple[str, ...]  # names of variables; the first one found is used
    model: str
    url: str
    receiver: str  # text that says who can read what is sent


PROVIDERS = (
    Provider(
        "openrouter",
        ("OPENROUTER_API_KEY",),
        "google/gemini-3-flash-preview",
        "https://openrouter.ai/api/v1",
        "OpenRouter, and the company that runs the model",
    ),
    Provider(
        "anthropic",
        ("ANTHROPIC_API_KEY",),
        "claude-haiku-5-5",
        "https://api.anthropic.com",
        "Anthropic",
    ),
    Provider("openai", ("OPENAI_API_KEY",), "gpt-5.4-mini", "https://api.openai.com/v1", "OpenAI"),
    Provider("codex", (CODEX,), "gpt-5.4-mini", "https://chatgpt.com/backend-api/codex", "OpenAI"),
    Provider(
        "claude",
        (
            "CLAUDE_CODE_OAUTH_TOKEN",
            "HIVEPIPE_CLAUDE_OAUTH_TOKEN",
            "AGENT_SWARM_CLAUDE_OAUTH_TOKEN",
        ),
        "claude-haiku-5-5",
        "",
        "Anthropic, by `claude -p`",
    ),
)
SETTABLE = tuple(name for it in PROVIDERS for name in it.credentials if name != CODEX)
_COMMAND = "_COMMAND"  # suffix of a key's name, for a command that prints the key
EMBEDDINGS_KEY = "HIVEPIPE_EMBEDDINGS_KEY"  # the key of `embeddings_url`
MEMORY_SERVER_KEY = "HIVEPIPE_MEMORY_SERVER_KEY"  # the key of `memory_server`
TEAM = "HIVEPIPE_TEAM"  # the URL of a team's server with the secret of this machine
TEAM_READER = "HIVEPIPE_TEAM_READER"  # the URL with the reader login of this machine
TEAM_STORE = "HIVEPIPE_TEAM_STORE"  # KEY_ID:SECRET of the object store of a team's archives
TEAM_ARCHIVE_KEY = "HIVEPIPE_TEAM_ARCHIVE_KEY"  # encrypts archives before they leave the machine
TEAM_PAGE = "HIVEPIPE_TEAM_PAGE"  # the URL with the login of the team's page
TEAM_OIDC_SECRET = "HIVEPIPE_TEAM_OIDC_SECRET"  # the page's secret at the identity provider
KEPT = (
    *SETTABLE,
    EMBEDDINGS_KEY,
    MEMORY_SERVER_KEY,
    TEAM,
    TEAM_READER,
    TEAM_STORE,
    TEAM_ARCHIVE_KEY,
    TEAM_PAGE,
    TEAM_OIDC_SECRET,
)  # names allowed in the file


def kept_secret(name: str) -> str:
    """Return the secret `name` from the environment or else from `credentials.env`, or "".

    Raise CredentialsError as `read_credentials` does.
    """
    return (environment(name) or read_credentials().get(name) or "").strip()


@dataclass(frozen=True)
class Offer:
    """A provider with a credential; the secret is not in its `repr`."""

    provider: Provider
    name: str  # name of the credential
    source: str  # "environment", or the file
    model: str
    url: str
    secret: str = field(repr=False)
    account: str = field(default="", repr=False)
    trouble: str = ""  # why the offer cannot be used, or ""
    command: str = ""  # a command that prints the secret, if the secret is not known yet

    def with_secret(self) -> "Offer":
        """Return the offer with its secret; raise CredentialsError if its command prints no key."""
        return replace(self, secret=key_printed_by(self.command)) if self.command else self

    @property
    def is_local(self) -> bool:
        """Tell whether the provider is a server on this machine, which is free of charge."""
        return is_local(self.url)

    @property
    def receiver(self) -> str:
        """Return a text that names who can read the texts that are sent."""
        if self.url == self.provider.url:
            return self.provider.receiver
        return f"the server {urlsplit(self.url).netloc}"


def find_offer(*, with_environment: bool = True) -> Offer | None:
    """Return an offer with the first credential found, else one of a keyless local server, or None.

    Raise CredentialsError if `credentials.env` cannot be trusted. `with_environment=False` ignores
    this shell's variables, as processes of the stack do. The user's command that prints a key is
    not run.
    """
    kept = _read_file()
    read_setting = variable if with_environment else of_files
    for provider in PROVIDERS:
        if provider.kind == "codex":
            found = _codex(provider, read_setting)
            if found:
                return found
        for name in provider.credentials:
            secret = (environment(name) or "").strip() if with_environment else ""
            if secret:
                offer = _offer(provider, read_setting, name, "environment", secret)
                trouble = (
                    "" if is_key(secret) else f"{name} is not a key: a key is one line of ASCII"
                )
                return replace(offer, trouble=trouble or offer.trouble)
            if name in kept:
                return _offer(provider, read_setting, name, str(credentials_path()), kept[name])
            if name + _COMMAND in kept:
                source = f"a command in {credentials_path()}"
                return replace(
                    _offer(provider, read_setting, name, source), command=kept[name + _COMMAND]
                )
    return _keyless(read_setting)


def _keyless(read_setting: ReadSetting) -> Offer | None:
    """Return an offer for the local server that the user set up without a key, or None."""
    for provider in PROVIDERS:
        if _named_url(provider, read_setting) and provider.kind != "codex":
            offer = _offer(provider, read_setting, NO_KEY, "this machine")
            if offer.is_local or offer.trouble:
                return offer
    return None


def _offer(
    provider: Provider, read_setting: ReadSetting, name: str, source: str, secret: str = ""
) -> Offer:
    url = _named_url(provider, read_setting) or provider.url
    is_usable = provider.kind == "claude" or find_spec(_LIBRARY)
    trouble = "" if is_usable else _NO_LIBRARY
    if url and not is_web_address(url):
        trouble = f"{provider.kind}_url must be {KIND}"
    model = read_setting("HIVEPIPE_LLM_MODEL") or provider.model
    return Offer(provider, name, source, model, url, secret, trouble=trouble)


def _named_url(provider: Provider, read_setting: ReadSetting) -> str:
    named = {
        "openrouter": read_setting("HIVEPIPE_OPENROUTER_URL"),
        "anthropic": read_setting("HIVEPIPE_ANTHROPIC_URL"),
        "openai": read_setting("HIVEPIPE_OPENAI_URL"),
        "codex": read_setting("HIVEPIPE_CODEX_URL"),
    }
    return (named.get(provider.kind) or "").rstrip("/")


# ---- the file of credentials


def credentials_path() -> Path:
    return Path(user_config_folder(), FILE_NAME)


def read_credentials() -> dict[str, str]:
    """Return name -> secret; raise CredentialsError if others can read or write the file."""
    return {name: value for name, value in _read_file().items() if name in KEPT}


def read_commands() -> dict[str, str]:
    """Return name -> command that prints the secret; raise as `read_credentials` does."""
    kept = _read_file()
    return {name: kept[name + _COMMAND] for name in SETTABLE if name + _COMMAND in kept}


def _read_file() -> dict[str, str]:
    pairs = (line.partition("=") for line in _lines() if line[:1] not in ("", "#"))
    known = (*KEPT, *(each + _COMMAND for each in SETTABLE))
    found = {name.strip(): value.strip() for name, _, value in pairs}
    return {name: value for name, value in found.items() if name in known and value}


def _lines() -> list[str]:
    path = credentials_path()
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unreadable(path, error) from None
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise CredentialsError(f"{path} is not a regular file of this user")
        if status.st_mode & 0o077:
            raise CredentialsError(f"other users can read {path}: run `chmod 600 {path}`")
        try:
            data = whole(file, path, LIMIT_BYTES)
        except OSError as error:
            raise _unreadable(path, error) from None
        return data.decode("utf-8-sig", "surrogateescape").splitlines()


def _unreadable(path: Path, error: OSError) -> CredentialsError:
    return CredentialsError(f"{path} cannot be read: {error.strerror}")


def write_credential(name: str, secret: str | None, *, by_command: bool = False) -> None:
    """Store a credential or the command that prints it; None removes it.

    Other lines of the file, such as comments, stay. Raise CredentialsError if it cannot be stored.
    """
    if name not in (SETTABLE if by_command else KEPT):
        raise CredentialsError(
            f"{name} is not one of {', '.join(SETTABLE if by_command else KEPT)}"
        )
    if secret is not None and not is_key(secret):
        raise CredentialsError(f"this cannot be {name}: it must be one line of ASCII")
    before = _lines()
    lines = [
        line for line in before if line.partition("=")[0].strip() not in (name, name + _COMMAND)
    ]
    if secret:
        lines.append(f"{name + _COMMAND if by_command else name}={secret}")
    if lines == before:
        return
    path = str(credentials_path())
    with os_error_as(CredentialsError, f"{path} cannot be written"):
        make_folders(os.path.dirname(path))
        write_small(path, "".join(f"{line}\n" for line in lines))


# ---- Codex


def _codex(provider: Provider, read_setting: ReadSetting) -> Offer | None:
    """Return an offer with Codex's access token, or None.

    An expired token is not refreshed, because a refresh would end Codex's own login.
    """
    path = Path(environment("CODEX_HOME") or f"{user_folder()}/.codex", "auth.json")
    try:
        tokens = json.loads(read_bytes(path)[:LIMIT_BYTES])["tokens"]
        secret, account = tokens["access_token"], tokens["account_id"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    if not isinstance(secret, str) or not isinstance(account, str) or not secret:
        return None
    found = replace(_offer(provider, read_setting, CODEX, str(path), secret), account=account)
    if _expires(secret) < time.time():
        return replace(found, trouble="the access token of Codex has expired: use `codex` once")
    return found


def _expires(token: str) -> float:
    """Return when a JSON web token expires, or 0 (expired) if it has no expiry."""
    try:
        middle = token.split(".")[1]
        claims: Any = json.loads(urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
        return float(claims["exp"])
    except (ValueError, LookupError, TypeError):
        return 0.0
