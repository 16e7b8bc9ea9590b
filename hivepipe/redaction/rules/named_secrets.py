"""Keys and tokens of no form of their own, beside a name that says what they are."""

from hivepipe.redaction.rule import Rule
from hivepipe.redaction.rules.assignments import CLOSE, END, IS, LINE_END, NO_LITERAL

_NAME = (
    r"(?:api[_-]?key|(?:access|secret|private|auth|encryption|signing|master|account|subscription"
    r"|license|service|deploy|client|consumer|session|shared[_-]?access|app|application|webhook)"
    r"[_-]?key|secret|token|credential|access[_-]?id|_auth)"
)
_PUBLIC_NAME = (
    r"(?:csrf|xsrf|page|next|sync|continuation|cancell?(?:ation)?|pad|eos|bos|unk|mask|sep|cls|stop"
    r"|end|start|special|image|begin|cursor|delta|change|resume|skip)[_-]?token"
)
_RANDOM = r"(?:[A-Za-z0-9+/=_.~!@#%^*-]*[0-9][A-Za-z0-9+/=_.~!@#%^*-]*|[A-Za-z_-]{24,})"
_NO_RANDOM = NO_LITERAL + (
    r"|.{1,7}|[0-9.,:_-]+|v?[0-9]+(?:\.[0-9]+)+.*|(?:sha|md)[0-9]+[:-].*"
    # names: CONSTANT_2, some-words-2, camelCase, word12
    r"|(?-i:[A-Z][A-Z0-9_]*|(?:[a-z]+|[0-9]{1,4})(?:[-_./ ](?:[a-z]+|[0-9]{1,4}))*"
    r"|[A-Z]?[a-z]+(?:[_.-]?[A-Z]?[a-z]{2,})*[0-9]{0,4}"
    r"|(?:[a-z]+[0-9]{0,4}|[0-9]{1,4})(?:_(?:[a-z]+[0-9]{0,4}|[0-9]{1,4}))+"
    r"|[a-z]+(?:[A-Z][a-z]+[0-9]{0,5})+"
    r"|_*(?:(?:[A-Z]?[a-z]+)+|[A-Z]+)(?:_+(?:(?:[A-Z]?[a-z]+)+|[A-Z]+|[0-9]{1,4}))*)"
)

NAMED_SECRETS = (
    Rule(
        name="secret",
        kind="API key",
        pattern=rf"(?i:{_PUBLIC_NAME})|(?i:{_NAME}{IS})\\*[\"'`]({_RANDOM})(?:\\*[\"'`]|$)",
        sieve=rf"(?i){_NAME}{CLOSE}(?:[ \t:A-Za-z\[\]]|\\+[nrt])*[=:]",
        unless=_NO_RANDOM,
        least_entropy=2.8,
        examples=(
            'api_key = "«<A32>»"',
            'api_key = "«Gq7wertzuiopasdfghjklyx»"',
            '{"client_secret": "«<A24>»"}',
            '{\\"apiKey\\": \\"«<h32>»\\"}',
            "const token = '«<A40>»'",
            "HEROKU_API_KEY: '«<h8>-<h4>-<h4>-<h4>-<h12>»'",
        ),
        counterexamples=(
            'api_key = os.environ["API_KEY_2"]',
            'token = "TOKEN_TYPE_2"',
            'next_page_token = "<A32>"',
            'secret = "my-secret-name-1"',
            '"token": "utf-8"',
            '"input_tokens": 3, "output_tokens": 5',
        ),
    ),
    Rule(
        name="secret_bare",
        kind="API key",
        pattern=rf"(?i:{_PUBLIC_NAME})"
        rf"|(?i:{_NAME}{CLOSE})(?:=|:[ \t]+|[ \t]+=[ \t]+)({_RANDOM})(?:{END}|{LINE_END})",
        sieve=rf"(?i){_NAME}{CLOSE}(?:[ \t]|\\+[nrt])*[=:]",
        unless=_NO_RANDOM + r"|.{1,11}",
        least_entropy=3.2,
        examples=(
            "export SHOP_API_KEY=«<A32>»",
            "token: «gq7wertzuiopasdfghjklyx»",
            "client_secret=«<A24>»&grant_type=x",
            "shop:\n  token: «<A40>»\n",
            "X-Api-Key: «<h32>»",
            "AccountKey=«<b86>==»;EndpointSuffix=core.windows.net",
        ),
        counterexamples=(
            "token=parser.next_token2()",
            "csrf_token=<A32>",
            "_M_token = _S_token_subexpr_no_group_begin;",
            "private_key: _ALLOWED_PRIVATE_KEY_TYPES, x",
            "secret=config.secrets.shop_key_2",
            "token=oauth2_token_value",
            "client_secret=x509_client_secret_str",
            "PrivateKey: testEd25519PrivateKey",
        ),
    ),
)
