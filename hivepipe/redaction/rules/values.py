# ruff: noqa: E501, RUF001 - patterns, and punctuation of other scripts
"""Values beside a name in all the ways in which programs, files and people write them."""

from hivepipe.redaction.rule import BREAK, GAP, Rule
from hivepipe.redaction.rules.assignments import END, LABEL, NO_LITERAL


def _bytewise(text: str) -> str:
    return text.encode().decode("latin-1")


def _in_json_too(text: str) -> str:
    """Return a pattern for sieves, which see a letter as JSON may escape it."""
    escaped = "".join(rf"\\+u{ord(c):04x}" if ord(c) > 0x7F else c for c in text)
    return f"(?:{_bytewise(text)}|{escaped})"


_KEY_NAME = (
    r"(?:api[_. -]?key|(?:access|secret|private|auth|encryption|signing|master|account|subscription"
    r"|license|service|deploy|client|consumer|session|shared[_-]?access|app|application|webhook)"
    r"[_.-]?key(?:[_-]base)?|secret|token|credentials?|_auth)"
)
_ENV_NAME = r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|PAT|AUTH|SALT|CREDS)"
_NO_SECRET_NAME = (
    r"(?:csrf|xsrf|page|next|sync|continuation|cancell?(?:ation)?|pad|eos|bos|unk|mask|sep|cls|stop"
    r"|end|start|special|image|begin|cursor|delta|change|resume|skip)[_-]?token"
    r"|(?:PUBLIC|CACHE|PRIMARY|FOREIGN|SORT|PARTITION|HOST|ROW|HASH|OBJECT|S3|TEST|REGISTRY|HKEY)_KEY"
)
_PASSWORD = r"(?:passw(?:or)?d|passphrase|passcode|pwd|[_-]pass|[_-]pw)[0-9]?"
_VALUE = r"[^\s\"'`<>\\]"
_QUOTED = rf"\\*[\"'`]({_VALUE}{{8,256}}?)(?:\\*[\"'`]|$)"
_CLOSE = r"(?:\\*[\"'`])?\]?"
_TYPE = (
    r"(?:[ \t]*:[ \t]*(?:&(?:'static )?)?[A-Za-z][\w.\[\] |]{0,30}"
    r"|[ \t]+(?:string|\[\]byte|String|\[\])|\[[0-9]*\])?"
)
_TYPE_SAID = _TYPE.removesuffix("?")
_IS = rf"{_CLOSE}{_TYPE}{GAP}(?:=>|:=|\?\?=|\?=|\|\|=|::=|\.=|!?={{1,3}}|:|value=){GAP}"
_COMMA = r"\\*[\"'`][ \t]*,[ \t\r\n]*(?:\\+[nrt])*[ \t]*"
_K8S = rf"\\*[\"']?,?[ \t]*{BREAK}[ \t]*\\*[\"']?value\\*[\"']?:[ \t]*"
# For sieves: short and without loops, or the automaton of all sieves grows beyond its memory.
_BEFORE_VALUE = (
    r"(?:[\\\"'`\]]{0,3}[ \t]{0,2}(?:[?:.|]{0,2}=|:)|\\*[\"'`][ \t]?,|[ \t](?:string|String|\[\])"
    r"|\[[0-9]{0,3}\])"
)
_K8S_VALUE = r"[n\n][ \t-]{1,20}[\"'\\]{0,2}value[\"'\\]{0,2}:[ \t]"
_COMMANDS = r"(?:\bENV[ \t]|\bARG[ \t]|#[ \t]?define[ \t]|\bsetx[ \t]|\bset[ \t]-|setenv[ \t]|secret[ \t]put)"
_BLANK_COMMANDS = (
    r"(?:\bENV|\bARG|#[ \t]*define|\bset(?:env|x)?(?:[ \t]+-[a-zA-Z]+)*|\bexport|\bsecret[ \t]+put)"
)
_BARE = r"[^\s\"'`,;<>(){}\[\]\\|&]"
_BARE_LAST = r"[^\s\"'`,;<>(){}\[\]\\|&.:!?]"
_NO_VALUE = NO_LITERAL.replace(r"|\$.*|", r"|\$[A-Za-z_{(].*|").replace(
    r"|[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)+", ""
).replace(r"|:.*", "").replace(r"|@.*|#.*|\[.*", r"|@[a-z]+|\[.*") + (
    r"|.*://.*|(?:sha|md)[0-9]+[:-].*|.*\(.*\).*\(.*|[a-z_.]+\(.*|[0-9.,:_-]+"
)
_PASSWORD_BARE = r"[^\s\"'`<>\\|,;{}\[\]]*[0-9!@#%^*+~?$&][^\s\"'`<>\\|,;{}\[\]]*"
_PEOPLE_TEXT = (
    r"(?:\bpass(?:word|phrase|code|wd)?|\bpw|\bpwd|passwort|kennwort|mot de passe|\bmdp"
    r"|contraseña|contrasena|\bclave|\bsenha|wachtwoord|密码|密碼|口令|パスワード|暗証番号|пароль)"
)
_PEOPLE = _bytewise(_PEOPLE_TEXT)
_SAY = _bytewise(
    r"(?:[ \t]*(?::|：)|[ \t]+(?:is|was|ist|lautet|est|es|é|will be|set to|changed to)(?:[ \t]+(?:now|set to"
    r"|jetzt|maintenant|ahora|agora))?(?:[ \t]*:)?|[ \t]*(?:是|为|為|は|が))"
)
_SAID = _in_json_too(
    r"(?:[ \t]?(?::|：)|[ \t](?:is|was|ist|lau|est|es|é|will|set|cha)|[ \t]?(?:是|为|為|は|が))"
)
_MARKS = r"[*_]{0,3}"
_OF_KEYS_TEXT = (
    r"(?:\b(?:api|access|secret|auth|bearer)[ -]?(?:key|token|secret)|\bapi[- ]schlüssel|clé (?:d'|d’)?api|clave (?:de )?(?:la )?api"
    r"|chave (?:de |da )?api|api ?密钥|api ?密鑰|密钥|令牌|apiキー|トークン|\btoken|zugangsschlüssel|jeton)"
)
_OF_KEYS = _bytewise(_OF_KEYS_TEXT)
_SENTENCE_END = _bytewise(r"(?:[\s.,;:!?()|*\"'`”»。、，！]|\\|$|で|です|、)")
_COMMAND = r"[^\n|;&]{0,200}?[ \t]"
_ARGUMENT = r"(?:\\*[\"'])?([^\s\"'\\$<{|;&-][^\s\"'\\|;&]{2,})"

VALUES = (
    Rule(
        name="secret_value",
        kind="API key",
        pattern=rf"(?i:{_NO_SECRET_NAME})"
        rf"|(?:(?i:{_KEY_NAME})|{_ENV_NAME})(?:{_IS}|{_COMMA}|{_K8S})[bru]?{_QUOTED}"
        rf"|(?:(?i:{_KEY_NAME})|{_ENV_NAME})(?:{_CLOSE}(?:\?=|:?=|:[ \t]+|[ \t]+[?:]?=[ \t]+)|{_K8S})({_BARE}{{7,255}}{_BARE_LAST})[.:!?]?{END}"
        rf"|{_BLANK_COMMANDS}[ \t]+[\w.]*(?:(?i:{_KEY_NAME})|{_ENV_NAME})[ \t]+(?:\\*[\"'])?({_BARE}{{8,256}})"
        rf"|(?i:--?[\w.-]*(?:{_KEY_NAME}|key))(?:[ \t]+|=|{_COMMA}\\*[\"'])(?:\\*[\"'])?({_BARE}{{8,256}})",
        sieve=rf"(?:(?i:{_KEY_NAME})|_(?:KEY|PAT|AUTH|SALT|CREDS)){_BEFORE_VALUE}|{_K8S_VALUE}|{_COMMANDS}|(?i:-(?:{_KEY_NAME}|key))[ \t=,\\\"']",
        unless=_NO_VALUE,
        must_look_random=True,
        examples=(
            "STEAM_API_KEY=«B1C2D3E4F5A6B7C8D9E0F1A2B3C4D5E6»",
            "define('AUTH_KEY', '«<A20>$(&%:<A20>»');",
            'os.environ.setdefault("API_KEY", "«<A32>»")',
            'req.Header.Set("X-Api-Key", "«<h32>»")',
            'var apiKey string = "«<A32>»"',
            'const API_KEY: &str = "«<A32>»";',
            '#define API_KEY "«<h32>»"',
            "ENV SHOP_API_KEY «<A32>»",
            "set -gx SHOP_TOKEN «<A32>»",
            "- name: SHOP_API_KEY\n  value: «<A32>»\n",
            '"args": ["--api-key", "«<A32>»"]',
            "shop-cli --token «<A32>» list",
            "APP_KEY=«base64:<b43>=»",
            "ETSY_API_KEY=«<l24>:<l10>»",
            "MAPS_KEY=«<A32>»",
            "GITHUB_PAT=«<h40>»",
            "shop.api.key=«<A32>»",
            "secret_key_base: «<h128>»",
            "VAULT_TOKEN=«s.<A24>»",
        ),
        counterexamples=(
            "token=oauth2_token_value",
            "client_secret=x509_client_secret_str",
            "PrivateKey: testEd25519PrivateKey",
            'CACHE_KEY = "<h32>"',
            'PUBLIC_KEY = "<A32>"',
            '"csrf_token", "<A32>"',
            "--key ~/.ssh/id_ed25519",
        ),
    ),
    Rule(
        name="password_value",
        kind="password",
        # Two strings; a value over which `password` stumbles; my.cnf; an environment variable.
        pattern=rf"\b(?i:define|setdefault|getenv|setitem|set|header|add|put|get|env)\w*\([ \t]*\\*[\"'`](?i:[\w.-]*{_PASSWORD})"
        rf"{_COMMA}\\*[\"'`]({_VALUE}{{4,256}}?)\\*[\"'`]"
        rf"|(?i:{_PASSWORD}){_COMMA}\\*[\"'`]({_PASSWORD_BARE})\\*[\"'`]"
        rf"|(?i:{_PASSWORD})(?:{_TYPE_SAID}{GAP}=|{GAP}(?:\?\?=|\?=|::=|\.=)){GAP}\\*[\"'`]({_VALUE}{{4,256}}?)\\*[\"'`]"
        rf"|(?i:{_PASSWORD})[ \t]+=[ \t]+({_PASSWORD_BARE})(?:[ \t]*(?:\r?\n|\\+n|$)|[ \t]+[#;])"
        rf"|[A-Z0-9_]*(?:PASSWORD|PASSWD|PASSPHRASE|PWD|_PASS|_PW)[ \t]?[?:]?=[ \t]?([^\s\"'`<>\\;$({{]{_PASSWORD_BARE}){END}"
        rf"|(?i:[\w.-]*{_PASSWORD})\\*[\"']?,?[ \t]*{BREAK}[ \t]*\\*[\"']?value\\*[\"']?:[ \t]*(?:\\*[\"'])?({_BARE}{{4,256}})"
        rf"|{_BLANK_COMMANDS}[ \t]+[\w.]*(?i:{_PASSWORD})[ \t]+(?:\\*[\"'])?({_BARE}{{4,256}})"
        rf"|(?i:--?[\w-]*{_PASSWORD})(?:=|{_COMMA})(?:\\*[\"'])({_VALUE}{{4,256}}?)\\*[\"']",
        sieve=rf"(?i){_PASSWORD}{_BEFORE_VALUE}|{_K8S_VALUE}|(?-i:{_COMMANDS})",
        unless=f"{_NO_VALUE}|{LABEL}|.{{1,3}}|[0-9]{{1,5}}|0x[0-9a-f]+|.*[(){{}}].*|[a-z_]+\\.[a-z_.0-9]+",
        examples=(
            "define('DB_PASSWORD', '«correct-horse»');",
            'os.environ.setdefault("DB_PASSWORD", "«hunter2»")',
            'getenv("DB_PASSWORD", "«hunter2»")',
            '"--password", "«hunter2»"',
            'var password string = "«hunter2»"',
            "password = «hunter2secret»\nuser = ana",
            "DB_PASSWORD=«Tr0ub4dor&3»\n",
            "DB_PASSWORD=«aB3$kd9x»\n",
            "- name: DB_PASSWORD\n  value: «hunter2»\n",
            "ENV DB_PASSWORD «hunter2»",
        ),
        counterexamples=(
            '"password", "username"',
            'input("password", "Your password")',
            "password = get_password2()",
            "password = config.password2",
            "DB_PASSWORD=$(cat /run/secrets/db2)",
        ),
    ),
    Rule(
        name="password_told",
        kind="password",
        pattern=rf"(?i:{_PEOPLE}){_MARKS}(?i:{_SAY}){_MARKS}[ \t]*{_MARKS}(?:\\*[\"'`]|{_bytewise('(?:“|„|«|「)')})"
        rf"([^\s\"'`\\<>]{{4,80}}?)(?:\\*[\"'`]|{_bytewise('(?:”|“|»|」)')})"
        rf"|(?i:{_PEOPLE}){_MARKS}(?i:{_SAY}){_MARKS}[ \t]*{_MARKS}({_PASSWORD_BARE}?){_MARKS}{_SENTENCE_END}"
        rf"|(?i:{_PEOPLE}){_MARKS}[ \t]*\|[ \t]*`?({_PASSWORD_BARE}?)`?[ \t]*\|"
        rf"|(?i:{_PEOPLE})[ \t]+`({_PASSWORD_BARE})`",
        sieve=rf"(?i)(?:{_in_json_too(_PEOPLE_TEXT)}){_MARKS}(?:{_SAID}|[ \t]?[|`])",
        unless=_NO_VALUE
        + r"|.{1,4}|[0-9]{1,5}|[0-9]+[.,-][0-9.,-]*|[A-Za-z]+[?!]+|[0-9]+[a-z]{1,2}|.*[(){}=].*"
        r"|[A-Za-z]+[$&!?%*]*|(?-i:[A-Z][a-z]+)|[\x80-\xff]+.*|[a-z_]+[0-9]?(?:[./][a-z_0-9]+)+|(?-i:[A-Z_]+[0-9]?)|[a-z]+(?:-[a-z]+)+|[0-9]+(?:/[0-9]+)+",
        examples=(
            "the password is «hunter2» and the user is ana",
            'password is "«hunter2»"',
            "the password is `«hunter2»`.",
            "Password: «hunter2» (change it)",
            "pw: «hunter2», user: ana",
            "pass: «hunter2»",
            "- **Password:** «hunter2»",
            "| Password | «hunter2» |",
            "Das Passwort lautet «hunter2».",
            "le mot de passe est «hunter2», merci",
            "la contraseña es «hunter2»",
            "a senha é «hunter2»",
            "密码是«hunter2»。",
            "パスワードは「«hunter2»」です",
        ),
        counterexamples=(
            "password: 8 characters at least",
            "the password is required",
            "pass: 12, fail: 3",
            "tests pass: 100%",
        ),
    ),
    Rule(
        name="secret_told",
        kind="API key",
        pattern=rf"(?i:{_OF_KEYS}){_MARKS}(?i:{_SAY}){_MARKS}[ \t]*{_MARKS}(?:\\*[\"'`]|{_bytewise('(?:“|„|«|「)')})?"
        rf"([A-Za-z0-9+/=_.~%^*-]{{10,256}}?){_MARKS}{_SENTENCE_END}"
        rf"|(?i:{_OF_KEYS}){_MARKS}[ \t]*(?:\|[ \t]*)?`?([A-Za-z0-9+/=_.~-]{{16,256}})`?[ \t]*\|?",
        sieve=rf"(?i)(?:{_in_json_too(_OF_KEYS_TEXT)}){_MARKS}(?:{_SAID}|[ \t|`])",
        unless=_NO_VALUE,
        must_look_random=True,
        examples=(
            "my api key is «<A32>», use it",
            "token: «<A32>» (new)",
            "mein API-Schlüssel lautet «<A32>»",
            "API 密钥是«<A32>»",
            "APIキーは「«<A32>»」",
            "| API key | `«<A32>»` |",
            "the token «<h40>» expires",
        ),
        counterexamples=("the token is invalid", "token: identifier_of_kind2"),
    ),
    Rule(
        name="password_argument",
        kind="password",
        pattern=rf"\b(?:mongo(?:sh|dump|restore|export|import)?|mysqlimport)\b{_COMMAND}-p[= \t]*{_ARGUMENT}"
        rf"|\bldap(?:search|modify|add|delete|passwd|whoami)\b{_COMMAND}-w[ \t]*{_ARGUMENT}"
        rf"|\b(?:zip|unzip)\b{_COMMAND}-P[ \t]*{_ARGUMENT}"
        rf"|\b7z[azr]?\b{_COMMAND}-p{_ARGUMENT}"
        rf"|-pass(?:in|out)?[ \t]+(?:\\*[\"'])?pass:{_ARGUMENT}"
        rf"|\b(?:sqlcmd|bcp|isql)\b{_COMMAND}-P[ \t]*{_ARGUMENT}"
        rf"|(?:echo|printf)[ \t]+(?:-[a-z]+[ \t]+)?(?:\\*[\"'])?[\w.-]+:([^\s\"'\\$|]{{3,}})(?:\\*[\"'])?[ \t]*\|[ \t]*(?:sudo[ \t]+)?chpasswd"
        rf"|(?:echo|printf)[ \t]+(?:-[a-z]+[ \t]+)?{_ARGUMENT}(?:\\*[\"'])?[ \t]*\|[ \t]*(?:sudo[ \t][^\n]{{0,40}}?(?:-S|--stdin)|\S*[ \t]*(?:docker|podman|helm)[^\n]{{0,80}}--password-stdin)"
        rf"|\b(?i:ConvertTo-SecureString)[ \t]+(?:-String[ \t]+)?(?:\\*[\"'])({_VALUE}{{3,}}?)\\*[\"']"
        rf"|[ \t](?i:-Password)[ \t]+(?:\\*[\"'])({_VALUE}{{3,}}?)\\*[\"']"
        rf"|\bcurl\b[^\n|;]{{0,200}}?[ \t](?:-u|--user)[= \t]*(?:\\*[\"'])?([A-Za-z0-9_-]{{16,}}):",
        sieve=r"mongo|mysqlimport|ldap[smadpw]|zip[ \t][^\n]{0,30}-P|7z|-pass(?:in|out)?[ \t]|sqlcmd|\bbcp|\bisql"
        r"|chpasswd|sudo[ \t][^\n]{0,20}(?:-S|--stdin)|-password-stdin|SecureString|-[Pp]assword[ \t]|curl[ \t]",
        unless=r"[A-Z_]+|.*passw(?:or)?d|(?:your|my).*|\*+.*|\[.*|[a-z]{1,4}|[0-9]+:[0-9]+",
        examples=(
            "mongosh -u ana -p «hunter2» shop",
            "ldapsearch -x -D cn=ana -w «hunter2» -b dc=shop",
            "zip -P «hunter2» a.zip b",
            "7z a -p«hunter2» a.7z b",
            "openssl rsa -in k -passin pass:«hunter2»",
            "sqlcmd -S db -U sa -P «hunter2»",
            "echo 'ana:«hunter2»' | chpasswd",
            "echo «hunter2» | sudo -S make install",
            'ConvertTo-SecureString "«hunter2»" -AsPlainText',
            "New-User -Password '«hunter2»'",
            "curl -u «<A32>»: https://api.shop.io",
        ),
        counterexamples=("mongosh -p", "zip -r -P a", "echo $PW | sudo -S make"),
    ),
)
