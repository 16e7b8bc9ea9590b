"""Credentials in headers, on curl's command line, in URLs."""

from hivepipe.redaction.rule import START, Rule

_VALUE = r"[A-Za-z0-9._~+/%=-]"

_ARGUMENT = r"[^\s\"'\\$<{-][^\s\"'\\]{2,}"

HEADERS = (
    Rule(
        name="authorization",
        kind="bearer token",
        pattern=r"(?i)authorization(?:\\*[\"'])?\]?[ \t]*(?:[:=,]|=>)[ \t]*(?:\\*[\"'])?"
        rf"(?:(?:bearer|basic|token|bot|apikey|negotiate)[ \t]+({_VALUE}+)|({_VALUE}{{16,}}))",
        sieve=r"(?i)authorization(?:\\*[\"'])?\]?[ \t]*[:=,]",
        unless=r"%.*|[=.]+|[A-Za-z_-]{2,}|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+",
        examples=(
            "Authorization: Bearer «abc.def-123»",
            "Authorization: Bearer «x»",
            '-H "Authorization: Basic «<A24>=»"',
            '{"Authorization": "token «<h40>»"}',
        ),
        counterexamples=(
            "Authorization: Bearer $TOKEN",
            "an 'authorization: basic ...' header",
            '["Cookie", "Authorization", "Proxy-Authorization"]',
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
        name="docker_auth",
        kind="password",
        pattern=r"\\*\"auth\\*\"\s*:\s*\\*\"([A-Za-z0-9+/]{12,}={0,2})\\*\"",
        sieve=r"\"auth\\*\"\s*:",
        unless="[A-Za-z]+",
        examples=('{"auths": {"registry.shop.io": {"auth": "«<A20>==»"}}}',),
        counterexamples=('{"auth": "required"}', '{"auth": "BearerTokenProvider"}'),
    ),
    Rule(
        name="signed_url",
        kind="API key",
        pattern=r"[?&;](?:sig|[Xx]-[Aa]mz-(?:Signature|Security-Token)|[Xx]-[Gg]oog-Signature)="
        r"([A-Za-z0-9%+/_-]{40,}={0,2})",
        sieve="sig=|[xX]-(?:[aA]mz|[gG]oog)-S",
        examples=(
            "https://shop.blob.core.windows.net/a?sv=2026&sig=«<A43>%3D»",
            "https://shop.s3.amazonaws.com/a?X-Amz-Expires=60&X-Amz-Signature=«<h64>»",
        ),
    ),
    Rule(
        name="command_line",
        kind="password",
        # curl -u ana:..., mysql -p..., sshpass -p ..., docker login -p ..., redis-cli -a ...
        pattern=r"\bcurl\b[^\n|;]*?[ \t](?:-u|--user|--proxy-user|-U)[= \t]*(?:\\*[\"'])?"
        rf"[^\s:\"'\\$]+:({_ARGUMENT})"
        rf"|\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n|;]*?[ \t]-p(?:\\*[\"'])?({_ARGUMENT})"
        r"|\b(?:sshpass|(?:docker|podman|registry|az|oc)[ \t]+login)\b[^\n|;]*?[ \t]-p[= \t]*"
        rf"(?:\\*[\"'])?({_ARGUMENT})"
        rf"|\bredis-cli\b[^\n|;]*?[ \t]-a[ \t]+(?:\\*[\"'])?({_ARGUMENT})",
        sieve="curl[^\n]*(?:-u|-U|--user|--proxy-user)|(?:mysql|mysqldump|mysqladmin|mariadb)[^\n]*-p"
        "|(?:sshpass|login)[^\n]*-p|redis-cli[^\n]*-a",
        unless=r"[A-Z_]+|.*passw(?:or)?d.*",
        examples=(
            "curl -s -u ana:«hunter2» https://shop.example",
            "curl --user 'ana:«s3cr3t!»' x",
            "mysql -u ana -p«hunter2» shop",
            "sshpass -p '«hunter2»' ssh ana@shop",
            "docker login -u ana -p «hunter2» registry.shop.io",
            "redis-cli -h cache -a «hunter2» ping",
        ),
        counterexamples=(
            "curl -u $USER:$PASS https://shop.example",
            "mysql -u root -p shop",
            "mysqldump -p $DB",
            "docker login -u ana --password-stdin",
            "mkdir -p login/pages",
        ),
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
