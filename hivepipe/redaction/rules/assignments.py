"""How texts and programs give a name its value, and which values are no secrets."""

from hivepipe.redaction.rule import GAP

CLOSE = r"(?:\\*[\"'`])?\]?"  # of a quoted name, of an index
_TYPE = r"(?::[ \t]*[A-Za-z][\w.\[\] |]{0,30})?"  # password: str = "..."
IS = rf"{CLOSE}{_TYPE}{GAP}(?:=>|:=|!?={{1,3}}|:|value=){GAP}[bru]{{0,2}}"

# A text without blanks: as it stands, and as it stands in JSON that is itself a text. Its end may
# be missing: a hook cuts what it hands over.
QUOTED = (
    r'(?:"((?:[^"\s\\]|\\[^\s]){4,256})(?:"|$)|'
    r"'((?:[^'\s\\]|\\[^\s]){4,256})(?:'|$)|`([^`\s\\]{4,256})(?:`|$)|"
    r'\\+"([^"\s\\]{4,256})(?:\\+"|$)|'
    r"\\+'([^'\s\\]{4,256})(?:\\+'|$))"
)
BARE = r"[^\s\"'`,;&<>(){}\[\]$|\\]"
NO_NAME = rf"{BARE}*[0-9!@#%^*+~?]{BARE}*"  # no program would call a variable that
END = r"(?:[\s\"'`&;,)\]}|<\\]|$)"
LINE_END = r"[ \t]*(?:\r?\n|\\+[nr]|[ \t]#|\\*[\"'](?:[\s,}\]\\]|$)|$)"

# What stands in a secret's place and is none: masks, templates, references, names, types, labels.
NO_LITERAL = (
    r"(?i)x{3,}.*|\*.*|.*\*\*\*(?-i:[A-Z_]{3,})\*\*\*.*|\.{2,}.*|<.*|\$.*|.*\$\{.*|\{.*|%[({sd].*|%[A-Z_]+%|@.*|#.*|\[.*|:.*"
    r"|--?[A-Za-z-]*|[-.]+|(?:https?|file|env|vault|op|ssm|arn|data):.*|(?:~|\.{1,2})?/.*"
    r"|(?:your|my|some|enter|the|new|old|user|test|fake|dummy|any)[ _-].*"
    r"|.*example.*|.*placeholder.*|[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)+"
    r"|str|string|text|type|none|null|nil|true|false|undefined|required|optional|hidden|redacted"
    r"|bytes|number|object|any|self|input|field|value|empty|missing|invalid|unknown|default|basic"
    r"|.*(?:passw(?:or)?d|passphrase)[^0-9]*|pass|pwd|passw|secrets?|tokens?|keys?|auth|bearer"
)
FOREIGN_LABEL = r"(?:[\x80-\xff]|[ :.!?*()])+"  # without a Latin letter or a digit
LABEL = r"(?-i:[A-Z][a-z\x80-\xff]+[:.!?]?)"
