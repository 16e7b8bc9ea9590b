"""E-mail addresses, and what only looks like one."""

from hivepipe.redaction.rule import EMAIL, Rule

_LETTER = r"(?:[A-Za-z0-9_+-]|[\xc3-\xca][\x80-\xbf])"
_FILE_TYPES = (
    "png|jpe?g|gif|svg|webp|ico|pdf|[mc]?[jt]sx?|json|s?css|html?|map|lock|tgz|gz|zip|mdx?|ya?ml|txt"
    "|service|socket|timer|target|mount|slice|scope|path|swap|device|conf|local|whl|deb|rpm"
    "|go|rb|php|java|cpp|kt|lua|toml|cfg|ini|log"
)
# Message-IDs: a UUID, a hash, a time, groups of digits.
_MESSAGE_ID = (
    r"(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32,}"
    r"|[0-9]{14}\..*|[0-9]+(?:\.[0-9]+){2,})"
)

EMAILS = (
    Rule(
        name="email",
        kind="e-mail address",
        replacement=EMAIL,
        # First what it passes over: a path or a URL, up to its query.
        # ... and where a machine is named: ssh deploy@host, deploy@host:/srv
        pattern=r"\b(?:ssh|scp|sftp|mosh|rsync|autossh|ssh-copy-id)"
        r"(?:[ \t]+[^\s@|;&\"'`]+){0,12}[ \t]+"
        r"[\w.-]+@[\w.-]+|[\w.-]+@[\w.-]+:(?:[~/]|[\w.-]+/)"
        r"|(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?:\\*/)[^\s\"'<>?#]*"
        rf"|(?:\\[nrtbf]|%[0-9A-Fa-f]{{2}})?({_LETTER}(?:\.?{_LETTER}){{0,63}}(?:@|%40)"
        rf"(?:{_LETTER}{{1,63}}\.){{1,8}}[A-Za-z]{{2,24}})(?:[^\w(\[.-]|\.(?:\W|$)|$)",
        sieve=r"[\w+-](?:@|%40)[\w\\\x80-\xff.-]+\.[A-Za-z]",
        unless=r"(?i)(?:git|(?:do-?not-?|no-?)reply)(?:@|%40).*"
        r"|.*(?:@|%40)(?:.*\.)?example\.(?:com|org|net)"
        rf"|.*(?:@|%40)(?:users\.noreply\.github\.com|(?:self|www)\..*|[\w-]+\.py|.*\.(?:{_FILE_TYPES}))"
        r"|.*(?:@|%40)(?:openssh\.com|libssh\.org|.*\.gserviceaccount\.com)"
        rf"|{_MESSAGE_ID}@.*",
        examples=(
            "write to «ana.lopez+shop@mail.shop.io».",
            "Author: Ana <«ana@shop.io»>",
            "mailto:«ana@shop.io»",
            "?user=«ana%40shop.io»&x",
            "\\n«ana@shop.io»\\n",
        ),
        counterexamples=(
            "git@github.com:org/repo",
            "ssh -p 2222 deploy@web1.shop.io uptime",
            "scp a.txt deploy@web1.shop.io:/srv",
            "rsync -a . deploy@web1.shop.io:shop/",
            "Ciphers aes256-gcm@openssh.com,hmac-sha2-256-etm@openssh.com",
            "ci@shop.iam.gserviceaccount.com",
            "user@host",
            "@scope/pkg@1.2.3",
            "name@.service",
            "noreply@shop.io",
            "ana@example.com",
            "https://shop.io/users/ana@shop.io/cart",
            "icon@2x.png",
            "y = x@self.weight + b",
            "@app.route('/')",
        ),
    ),
)
