"""Private keys: whole blocks, cut-off ones, and PuTTY's."""

from hivepipe.redaction.rule import BREAK, GAP, SSH_KEY, Rule

_HEAD = r"-----BEGIN[^-]{0,60}PRIVATE[^-]{1,8}KEY[^-]{0,20}-----"
_NO_FIVE_DASHES = r"(?:[^-]|-[^-]|--[^-]|---[^-]|----[^-])*"
# Of a block that was cut off: lines of base64, whatever line numbers or quotes stand between them.
_BODY = (
    r"(?:(?s:.){0,80}?[A-Za-z0-9+/]{20,}={0,2})+"
    rf"(?:{BREAK}[A-Za-z0-9+/]{{1,76}}={{0,2}})?"
)

PRIVATE_KEYS = (
    Rule(
        name="private_key",
        kind="private key",
        replacement=SSH_KEY,
        pattern=rf"({_HEAD}{_NO_FIVE_DASHES}-----END[^-]{{0,80}}-----|{_HEAD}{_BODY})",
        sieve=r"-----BEGIN[^-]*PRIVATE",
        examples=(
            "x «-----BEGIN RSA PRIVATE KEY-----\n<b64>\n<b9>==\n-----END RSA PRIVATE KEY-----» y",
            "«-----BEGIN PRIVATE KEY-----\\n<b64>\\n<b20>=\\n-----END PRIVATE KEY-----»\\n",
            "«-----BEGIN OPENSSH PRIVATE KEY-----\n     2\t<b70>\n     3\t<b70>\n     4\t<b12>»",
            "«-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n<b64>\n-----END PGP PRIVATE KEY BLOCK-----»",
        ),
        counterexamples=(
            "a file that starts with -----BEGIN RSA PRIVATE KEY----- is a private key",
            "-----BEGIN CERTIFICATE-----\n<b64>\n-----END CERTIFICATE-----",
            "-----BEGIN PUBLIC KEY-----\n<b64>\n-----END PUBLIC KEY-----",
        ),
    ),
    Rule(
        name="putty_key",
        kind="private key",
        replacement=SSH_KEY,
        pattern=rf"Private-Lines: [0-9]+{GAP}((?:[A-Za-z0-9+/=]{{16,}}{GAP})+)",
        sieve="Private-Lines:",
        examples=("Private-Lines: 2\n«<b64>\n<b64>\n»Private-MAC: <h40>",),
    ),
)
