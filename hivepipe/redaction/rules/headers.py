"""Credentials in headers, on curl's command line, in URLs."""

from hivepipe.redaction.rule import START, Rule

_VALUE = r"[A-Za-z0-9._~+/%=-]"

HEADERS = (
    Rule(
        name="authorization",
        kind="bearer token",
        pattern=r"(?i)authorization(?:\\*[\"'])?\]?[ \t]*(?:[:=,]|=>)[ \t]*(?:\\*[\"'])?"
        rf"(?:(?:bearer|basic|token|bot|apikey|negotiate)[ \t]+({_VALUE}+)|({_VALUE}{{16,}}))",
        sieve=r"(?i)authorization(?:\\*[\"'])?\]?[ \t]*[:=,]",
        unless=r"%.*|=+|[a-z]{3,}|[A-Z_]{3,}|(?i:your|my)[_-].*|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+",
        examples=(
            "Authorization: Bearer «abc.def-123»",
            "Authorization: Bearer «x»",
            '-H "Authorization: Basic «<A24>=»"',
            '{"Authorization": "token «<h40>»"}',
        ),
        counterexamples=(
            "Authorization: Bearer $TOKEN",
            "Authorization: Bearer <token>",
            "Authorization: Basic authentication of this server",
            "authorization = self.headers.get('x')",
            'headers["Authorization"] = "Basic %s" % auth',
            'headers["Authorization"] = f"Bearer {token}"',
        ),
    ),
    Rule(
        name="bearer",
        kind="bearer token",
        pattern=rf"{START}[Bb](?:earer|EARER)[ :=]{{1,3}}({_VALUE}{{16,}})",
        sieve="[Bb](?:earer|EARER)[ :=]",
        unless=r"[A-Za-z._/-]+",
        examples=("a bearer «<A32>» token", "Bearer «<h40>»"),
        counterexamples=("the bearer of this letter", "bearer authentication/authorization"),
    ),
    Rule(
        name="curl_user",
        kind="password",
        pattern=r"\bcurl\b[^\n|;]*?[ \t](?:-u|--user|--proxy-user|-U)[= \t]*(?:\\*[\"'])?"
        r"[^\s:\"'\\$]+:([^\s\"'\\$]{3,})",
        sieve="curl[^\n]*(?:-u|-U|--user|--proxy-user)",
        examples=("curl -s -u ana:«hunter2» https://shop.example", "curl --user 'ana:«s3cr3t!»' x"),
        counterexamples=("curl -u $USER:$PASS https://shop.example",),
    ),
    Rule(
        name="url_password",
        kind="password",
        pattern=r"[A-Za-z][A-Za-z0-9+.-]{0,24}:(?:\\*/){2}[^\s:/@\"'<>\\]{0,80}:"
        r"([^\s/@\"'<>\\{}()$]{3,})@[A-Za-z0-9\[$]",
        sieve=r":(?:\\*/){2}[^\s:/@\"'<>\\]*:[^\s/@\"'<>\\]+@",
        unless=r"(?i)x+|\*+|\.+|pass|passw(?:or)?d|passwd|pw|pwd|secret|token|your.*|\[.*\]|%s|port",
        examples=(
            "postgres://shop:«hunter2»@db.internal:5432/shop",
            "https://x-access-token:«<A40>»@github.com/ana/shop",
            "redis://:«s3cr3tpw»@localhost:6379/0",
        ),
        counterexamples=(
            "http://user:password@host/",
            "http://localhost:8080/@scope/pkg",
            "https://${USER}:${PASS}@host/",
        ),
    ),
)
