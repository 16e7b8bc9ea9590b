r"""Passwords: what stands beside a name that says so.

`KEY = expression` is a password only if the right side is a literal: a quoted text without blanks,
or, where nothing but literals can stand (shell, YAML, URLs), a word that no program would take for
a name.
"""

from hivepipe.redaction.rule import BREAK, GAP, Rule
from hivepipe.redaction.rules.assignments import (
    BARE,
    CLOSE,
    END,
    FOREIGN_LABEL,
    IS,
    LABEL,
    LINE_END,
    NO_LITERAL,
    NO_NAME,
    QUOTED,
)

_NAME = r"(?:passw(?:or)?d|passphrase|pwd|[_-]pass)[0-9]?"
_BLANKS = r"(?:\s|\\+[nrt])+"
_SIEVE = rf"(?i){_NAME}[^A-Za-z0-9_]"

PASSWORDS = (
    Rule(
        name="password",
        kind="password",
        pattern=rf"(?i:{_NAME}){IS}{QUOTED}"
        rf"|(?i:(?:set_?|with_?|\.)(?:passw(?:or)?d|passphrase))\({GAP}{QUOTED}(?:{GAP}\)|$)",
        sieve=_SIEVE,
        unless=f"{NO_LITERAL}|{LABEL}|{FOREIGN_LABEL}",
        examples=(
            'password = "«hunter2»"',
            "os.environ['DB_PASSWORD'] = '«hunter2»'",
            '{"password": "«hunters2secret»"}',
            '{\\"password\\": \\"«hunter2»\\"}',
            'password: str = "«hunter2»"',
            "if pwd == '«letmein»':",
            'connection.setPassword("«hunter2»");',
            '<add key="ClearTextPassword" value="«hunter2»" />',
            "     3\tpassword:\n     4\t  '«hunter2»'",
        ),
        counterexamples=(
            "password = get_password()",
            'password = os.environ["DB_PASSWORD"]',
            'password: "Password"',
            '"login.password": "비밀번호"',
            '"login.password": "Пароль:"',
            "{'password': 'required'}",
            'password = f"{user}-{salt}"',
            'password_hash = "5f4dcc3b5aa765d61d8327deb882cf99"',
            "type: 'password', name: 'login'",
            '"password": "/run/secrets/db_password"',
        ),
    ),
    Rule(
        name="password_bare",
        kind="password",
        # --password hunter2, password=hunter2, "password: hunter2", "the password is hunter2"
        pattern=rf"--[A-Za-z-]*(?i:{_NAME})[ \t]+({NO_NAME}){END}"
        rf"|(?i:{_NAME}){CLOSE}=({NO_NAME}){END}"
        rf"|(?i:{_NAME}){CLOSE}(?:[ \t]+is|:)[ \t]+({NO_NAME}){LINE_END}"
        # a block of YAML
        rf"|(?i:{_NAME}){CLOSE}:[ \t]*[|>]?[+-]?{BREAK}[ \t]+({NO_NAME}){LINE_END}",
        sieve=_SIEVE,
        unless=NO_LITERAL
        + r"|.{1,3}|[0-9]{1,5}|[0-9]+[.,-][0-9.,-]*|[A-Za-z]+[?!]+|[0-9]+[a-z]{1,2}",
        examples=(
            "password=«hunters2secret»",
            "https://shop.internal/login?user=ana&password=«hunter2»&x=1",
            "db:\n  password: «hunter2»\n  port: 5432",
            "db:\n  password:\n    «hunter2x»\n  port: 5432",
            "db:\n  password: |-\n    «hunter2x»\n",
            "mysql --password «hunter2» shop",
            "the password is «hunter2»",
            "?password=«12345678»&x",
            "Server=db;User Id=ana;Password=«pa55word»;",
        ),
        counterexamples=(
            "connect(password=self.password2, user=user)",
            "password: 8 characters at least",
            "def f(password: str, n=3)",
            "password=$DB_PASSWORD",
            "password=getpass.getpass()",
            "pwd: 3.0-3.12",
        ),
    ),
    Rule(
        name="password_environment",
        kind="password",
        pattern=rf"[A-Z0-9_]*(?:PASSWORD|PASSWD|PASSPHRASE|PWD|_PASS|_PW)=({BARE}{{4,}}){END}",
        sieve=r"(?:PASSWORD|PASSWD|PASSPHRASE|PWD|_PASS|_PW)=",
        unless=NO_LITERAL,
        examples=("export PGPASSWORD=«correcthorse»", "-e MYSQL_ROOT_PASSWORD=«letmein» mysql:8"),
        counterexamples=("PGPASSWORD=$PW psql", "PWD=/home/ana/shop make"),
    ),
    Rule(
        name="password_tag",
        kind="password",
        pattern=r"(?i:<[\w:.-]*(?:password|passwd|passphrase|pwd|secret|token|apikey|api-key)>)"
        r"([^<\s\\]{4,})<",
        sieve=r"(?i)<[\w:.-]*(?:password|passwd|passphrase|pwd|secret|token|apikey|api-key)>",
        unless=f"{NO_LITERAL}|{LABEL}",
        examples=("<server><password>«hunter2»</password></server>",),
        counterexamples=(
            "<password>${env.PASSWORD}</password>",
            "<token>Token</token>",
            "<a_token>-...-<z_token>",
        ),
    ),
    Rule(
        name="password_sql",
        kind="password",
        pattern=r"(?i:\b(?:identified\s+by|with\s+password|encrypted\s+password|set\s+password))"
        r"(?:\s*=)?\s+(?:\\*')([^'\s\\]{4,})\\*'",
        sieve=r"(?i)(?:identified\s+by|password)(?:\s*=)?\s+\\*'",
        unless=NO_LITERAL,
        examples=(
            "CREATE USER ana IDENTIFIED BY '«hunter2»';",
            "ALTER ROLE ana WITH PASSWORD '«hunter2»'",
        ),
        counterexamples=("CREATE USER ana IDENTIFIED BY '%s'",),
    ),
    Rule(
        name="netrc",
        kind="password",
        pattern=rf"\blogin{_BLANKS}[\w.@+-]+{_BLANKS}password{_BLANKS}([^\s\"'\\=(){{}},|/]{{4,}})",
        sieve=r"login(?:\s|\\+[nrt])+[^\s\\]+(?:\s|\\+[nrt])+password",
        unless=NO_LITERAL,
        examples=("machine shop.internal login ana password «correcthorse»",),
        counterexamples=(
            "the login page and password field",
            "with login / password\n  login_i = 0",
        ),
    ),
)
