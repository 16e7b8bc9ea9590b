"""Encryption of segments before they are sent: AES-SIV (RFC 5297); the server never gets the key.

The encryption is deterministic: the same segment of the same home encrypts to the same bytes and
hash. The associated data is the position of the segment: home, archive and first byte.
"""

import hashlib
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode

from hivepipe.errors import TeamError
from hivepipe.summaries.providers import TEAM_ARCHIVE_KEY, read_credentials, write_credential
from hivepipe.team.connection import EXTRA

KEY_BYTES = 64  # AES-256-SIV takes two keys of 256 bits


class Cipher:
    """A key; the server's list of segments stores `name`, by which the key is recognised."""

    def __init__(self, text: str) -> None:
        """Parse a key of `archive-key`. Raise TeamError for an invalid key or a missing extra."""
        try:
            from cryptography.hazmat.primitives.ciphers.aead import (  # noqa: PLC0415  an extra
                AESSIV,
            )
        except ImportError:
            raise TeamError(EXTRA) from None
        try:
            key = urlsafe_b64decode(text)
        except ValueError:
            key = b""
        if len(key) != KEY_BYTES:
            raise TeamError(
                "this is not an archive key: `hivepipe team archive-key --new` makes one"
            )
        self._cipher = AESSIV(key)
        self.name = f"aes-siv:{hashlib.sha256(b'hivepipe archive key' + key).hexdigest()[:12]}"

    def encrypt(self, content: bytes, place: str) -> bytes:
        """Encrypt a segment's bytes. To decrypt them, the same `place` is needed."""
        return self._cipher.encrypt(content, [place.encode()])

    def decrypt(self, content: bytes, place: str) -> bytes:
        """Decrypt a segment's bytes. Raise TeamError if bytes, place or key are wrong."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415  an extra

        try:
            return self._cipher.decrypt(content, [place.encode()])
        except InvalidTag:
            raise TeamError("a segment was changed: it does not decrypt") from None


def new_key() -> str:
    return urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def kept_key() -> str | None:
    """Return the user's key, or None if archives are not encrypted. May raise CredentialsError."""
    return read_credentials().get(TEAM_ARCHIVE_KEY)


def kept_cipher() -> Cipher | None:
    """Return the cipher of the user's key, or None. May raise CredentialsError or TeamError."""
    key = kept_key()
    return Cipher(key) if key else None


def keep_key(text: str) -> Cipher:
    """Store a user's key; return its cipher. Raise TeamError if invalid, or CredentialsError."""
    made = Cipher(text)
    write_credential(TEAM_ARCHIVE_KEY, text)
    return made
