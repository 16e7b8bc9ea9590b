"""Who may be asked: the credentials in their order, and where each of them leads.

A credential comes from the process's own environment, else from `credentials.env`, which
`hivepipe credentials set` writes and every call reads anew. No process of a stack inherits one.
"""

import json
import os
import stat
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from hivepipe.errors import CredentialsError
from hivepipe.home import make_folders, user_config_folder, user_folder, write_small
from hivepipe.regular_file import read_bytes
from hivepipe.settings import environment, of_files, variable
from hivepipe.summaries.key_command import is_key, key_printed_by
from hivepipe.web_address import KIND, is_local, is_web_address

Said = Callable[[str], str | None]  # what is set: everywhere, or in files alone
Kind = Literal["openrouter", "anthropic", "openai", "codex", "claude"]

FILE_NAME = "credentials.env"
LIMIT_BYTES = 64_000
CODEX = "Codex OAuth"
NO_KEY = "no key"  # what a server on this machine asks for


class Provider(NamedTuple):
    """One way to ask: its credential, the model unless another is named, and its address."""

    kind: Kind
    credentials: tuple[str, ...]  # names, the first one found wins
    model: str
    url: str
    receiver: str  # who gets to read what is sent


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
_COMMAND = "_COMMAND"  # behind the name of a key: not the key stands there but what prints it
EMBEDDINGS_KEY = "HIVEPIPE_EMBEDDINGS_KEY"  # of `embeddings_url`
MEMORY_SERVER_KEY = "HIVEPIPE_MEMORY_SERVER_KEY"  # of `memory_server`
KEPT = (*SETTABLE, EMBEDDINGS_KEY, MEMORY_SERVER_KEY)  # what may stand in the file


@dataclass(frozen=True)
class Offer:
    """A provider that can be asked: its secret is in no `repr`, and leaves in one pipe only."""

    provider: Provider
    name: str  # of the credential
    source: str  # "environment", or the file it is in
    model: str
    url: str
    secret: str = field(repr=False)
    account: str = field(default="", repr=False)
    trouble: str = ""  # why it cannot be used after all
    command: str = ""  # prints the secret, which is then not known yet

    def with_secret(self) -> "Offer":
        """Return it ready to be used; CredentialsError: its command prints no key."""
        return replace(self, secret=key_printed_by(self.command)) if self.command else self

    @property
    def is_local(self) -> bool:
        """Is it a server on this machine, which costs nothing?"""
        return is_local(self.url)

    @property
    def receiver(self) -> str:
        """Say who gets to read what is sent."""
        if self.url == self.provider.url:
            return self.provider.receiver
        return f"the server {urlsplit(self.url).netloc}"


def find_offer(*, with_environment: bool = True) -> Offer | None:
    """Return what the first credential in the order offers, or a server that needs none; or None.

    CredentialsError: `credentials.env` cannot be believed. Without the environment it answers as a
    process of the stack would, that has none of this shell's. No command for a key is run.
    """
    kept = _read_file()
    said = variable if with_environment else of_files
    for provider in PROVIDERS:
        if provider.kind == "codex":
            found = _codex(provider, said)
            if found:
                return found
        for name in provider.credentials:
            secret = (environment(name) or "").strip() if with_environment else ""
            if secret:
                offer = _offer(provider, said, name, "environment", secret)
                trouble = "" if is_key(secret) else f"{name} is no key: one line of ASCII, please"
                return replace(offer, trouble=trouble or offer.trouble)
            if name in kept:
                return _offer(provider, said, name, str(credentials_path()), kept[name])
            if name + _COMMAND in kept:
                source = f"a command in {credentials_path()}"
                return replace(_offer(provider, said, name, source), command=kept[name + _COMMAND])
    return _keyless(said)


def _keyless(said: Said) -> Offer | None:
    """Return a server on this machine that the user named; such a one may ask for no key."""
    for provider in PROVIDERS:
        if _named_url(provider, said) and provider.kind != "codex":
            offer = _offer(provider, said, NO_KEY, "this machine")
            if offer.is_local or offer.trouble:
                return offer
    return None


def _offer(provider: Provider, said: Said, name: str, source: str, secret: str = "") -> Offer:
    url = _named_url(provider, said) or provider.url
    trouble = "" if not url or is_web_address(url) else f"{provider.kind}_url must be {KIND}"
    model = said("HIVEPIPE_LLM_MODEL") or provider.model
    return Offer(provider, name, source, model, url, secret, trouble=trouble)


def _named_url(provider: Provider, said: Said) -> str:
    named = {
        "openrouter": said("HIVEPIPE_OPENROUTER_URL"),
        "anthropic": said("HIVEPIPE_ANTHROPIC_URL"),
        "openai": said("HIVEPIPE_OPENAI_URL"),
        "codex": said("HIVEPIPE_CODEX_URL"),
    }
    return (named.get(provider.kind) or "").rstrip("/")


# ---- the file


def credentials_path() -> Path:
    """Return where `hivepipe credentials set` puts them."""
    return Path(user_config_folder(), FILE_NAME)


def read_credentials() -> dict[str, str]:
    """Return name -> secret; CredentialsError if others could have read or written the file."""
    return {name: value for name, value in _read_file().items() if name in KEPT}


def read_commands() -> dict[str, str]:
    """Return name -> the command that prints the secret; CredentialsError as above."""
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
        raise CredentialsError(f"{path} cannot be read: {error.strerror}") from None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise CredentialsError(f"{path} is not a file of yours")
        if status.st_mode & 0o077:
            raise CredentialsError(f"others may read {path}: chmod 600 {path}")
        return file.read(LIMIT_BYTES).decode("utf-8", "surrogateescape").splitlines()


def write_credential(name: str, secret: str | None, *, by_command: bool = False) -> None:
    """Keep a credential, or the command that prints it, or with None forget it.

    What else is in the file, the user's own comments say, stays. CredentialsError says why not.
    """
    if name not in (SETTABLE if by_command else KEPT):
        raise CredentialsError(f"{name} is none of {', '.join(SETTABLE if by_command else KEPT)}")
    if secret is not None and not is_key(secret):
        raise CredentialsError(f"what was given cannot be {name}: one line of ASCII, please")
    before = _lines()
    lines = [
        line for line in before if line.partition("=")[0].strip() not in (name, name + _COMMAND)
    ]
    if secret:
        lines.append(f"{name + _COMMAND if by_command else name}={secret}")
    if lines == before:
        return
    path = str(credentials_path())
    try:
        make_folders(os.path.dirname(path))
        write_small(path, "".join(f"{line}\n" for line in lines))
    except OSError as error:
        raise CredentialsError(f"{path} cannot be written: {error.strerror}") from None


# ---- Codex


def _codex(provider: Provider, said: Said) -> Offer | None:
    """Read Codex's access token; it is never refreshed, for that would log the user out there."""
    path = Path(environment("CODEX_HOME") or f"{user_folder()}/.codex", "auth.json")
    try:
        tokens = json.loads(read_bytes(path)[:LIMIT_BYTES])["tokens"]
        secret, account = tokens["access_token"], tokens["account_id"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    if not isinstance(secret, str) or not isinstance(account, str) or not secret:
        return None
    found = replace(_offer(provider, said, CODEX, str(path), secret), account=account)
    if _expires(secret) < time.time():
        return replace(found, trouble="the access token of Codex has expired: use `codex` once")
    return found


def _expires(token: str) -> float:
    """Return when a JSON web token expires; one that does not say is taken as expired."""
    try:
        middle = token.split(".")[1]
        claims: Any = json.loads(urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
        return float(claims["exp"])
    except (ValueError, LookupError, TypeError):
        return 0.0
