"""Private keys: whole blocks, cut-off ones, and PuTTY's."""

from hivepipe.redaction.rule import BREAK, GAP, SSH_KEY, Rule

_HEAD = r"-----BEGIN[^-]{0,60}PRIVATE[^-]{1,8}KEY[^-]{0,20}-----"
_END = r"-----END[^-]{0,80}-----"
_NO_FIVE_DASHES = r"(?:[^-]|-[^-]|--[^-]|---[^-]|----[^-])*"
# Between lines of base64: blanks, line breaks and numbers, quotes and signs of source code and
# diffs, and the head of an encrypted key.
_BETWEEN = (
    rf"(?:{BREAK}|\s|\\+[rt]|\\*[\"'`,;+>|#*]|[0-9]{{1,6}}[:|-]"
    r"|(?:Proc-Type|DEK-Info|Version|Comment|Hash): ?[^\r\n\\]{0,80})"
)
_ABBREVIATED = rf"(?:{BREAK}|\s|\\+[rt]|[A-Za-z0-9+/=.])*"
_WHOLE = rf"{_NO_FIVE_DASHES}[A-Za-z0-9+/]{{16,}}{_NO_FIVE_DASHES}"
_CUT_OFF = (
    rf"(?:{_BETWEEN}+[A-Za-z0-9+/]{{20,}}={{0,2}})+"
    rf"(?:{BREAK}[A-Za-z0-9+/]{{1,76}}={{0,2}})?"
)

_SIGNS = r"(?:[ \t]|\\*[\"'`,;+>|#*]|[0-9]{1,6}[:|-])*"
_NEXT = rf"{_SIGNS}{BREAK}{_SIGNS}"
_BODY = rf"[A-Za-z0-9+/]{{20,}}={{0,2}}{_NEXT}"
_PRIVATE_END = r"-----END[^-]{0,60}PRIVATE[^-]{1,8}KEY[^-]{0,20}-----"

PRIVATE_KEYS = (
    Rule(
        name="private_key",
        kind="private key",
        replacement=SSH_KEY,
        pattern=rf"({_HEAD}(?:{_ABBREVIATED}{_END}|{_WHOLE}{_END}|{_CUT_OFF}))",
        sieve=r"-----BEGIN[^-]*PRIVATE",
        examples=(
            "x «-----BEGIN RSA PRIVATE KEY-----\n<b64>\n<b9>==\n-----END RSA PRIVATE KEY-----» y",
            "«-----BEGIN PRIVATE KEY-----\\n<b64>\\n<b20>=\\n-----END PRIVATE KEY-----»\\n",
            "«-----BEGIN OPENSSH PRIVATE KEY-----\n     2\t<b70>\n     3\t<b70>\n     4\t<b12>»",
            "«-----BEGIN PRIVATE KEY-----\nMIIEvQ...\n-----END PRIVATE KEY-----»",
            "«-----BEGIN EC PRIVATE KEY-----\nDEK-Info: AES-256-CBC,<h32>\n\n<b64>\n<b64>»",
            '«-----BEGIN RSA PRIVATE KEY-----\\n" +\n    "<b64>\\n" +\n    "<b64>»',
            "«-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n<b64>\n-----END PGP PRIVATE KEY BLOCK-----»",
        ),
        counterexamples=(
            "a file that starts with -----BEGIN RSA PRIVATE KEY----- is a private key",
            'START = "-----BEGIN PRIVATE KEY-----"\nEND = "-----END PRIVATE KEY-----"',
            "-----BEGIN CERTIFICATE-----\n<b64>\n-----END CERTIFICATE-----",
            "-----BEGIN PUBLIC KEY-----\n<b64>\n-----END PUBLIC KEY-----",
        ),
    ),
    Rule(
        name="private_key_end",  # as of `tail -5 key.pem`
        kind="private key",
        replacement=SSH_KEY,
        pattern=rf"(?:^|[^0-9A-Za-z+/\\]|\\[nrt])((?:[A-Za-z0-9+/]{{4,}}{_NEXT})?(?:{_BODY})+"
        rf"(?:[A-Za-z0-9+/]{{1,76}}={{0,2}}{_NEXT})?{_PRIVATE_END})"
        rf"|{BREAK}([A-Za-z0-9+/]{{4,76}}={{0,2}}{BREAK}{_PRIVATE_END})",
        sieve=r"-----END[^-]*PRIVATE",
        examples=(
            "$ tail -3 key.pem\n«<b64>\n<b64>\n<b30>==\n-----END PRIVATE KEY-----»\n",
            "«<b40>\n<b70>\n<b70>\n<b8>\n-----END OPENSSH PRIVATE KEY-----»",
            "     8\t«<b64>\n     9\t<b12>=\n    10\t-----END RSA PRIVATE KEY-----»",
            "$ tail -2 key.pem\n«<b12>=\n-----END EC PRIVATE KEY-----»",
        ),
        counterexamples=(
            "text up to -----END RSA PRIVATE KEY----- is a private key",
            'END = "-----END PRIVATE KEY-----"',
            "<b64>\n<b64>\n-----END CERTIFICATE-----",
        ),
    ),
    Rule(
        name="private_key_in_base64",  # as in a kubeconfig
        kind="private key",
        replacement=SSH_KEY,
        pattern=r"(LS0tLS1CRUdJTi(?:BQUklWQ|BSU0EgU|BFQyBQU|BPUEVOU|BFTkNSW|BEU0EgU)"
        rf"[A-Za-z0-9+/]{{40,}}={{0,2}}(?:{GAP}{BREAK}{GAP}[A-Za-z0-9+/]{{40,}}={{0,2}})*"
        rf"(?:{GAP}{BREAK}{GAP}[A-Za-z0-9+/]{{1,76}}={{0,2}})?)",
        sieve="LS0tLS1CRUdJTi",
        examples=(
            "client-key-data: «LS0tLS1CRUdJTiBSU0EgU<b200>==»",
            "$ base64 key\n«LS0tLS1CRUdJTiBPUEVOU<b55>\n<b76>\n<b76>\n<b30>=»\n$ ",
            "  key: |\n    «LS0tLS1CRUdJTiBPUEVOU<b55>\n    <b76>\n    <b8>»\n",
        ),
        counterexamples=("certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0t<b200>",),
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
