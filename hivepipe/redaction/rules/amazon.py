"""Keys of Amazon Web Services."""

from hivepipe.redaction.rule import AWS_KEY, BASE64, Rule

_GIVEN = r".{0,4}?[=:>, \t\"'\\]{1,8}"
_AWS_SECRET = BASE64 + "{40}"

AMAZON = (
    Rule(
        name="aws_access_key",
        kind="AWS key",
        replacement=AWS_KEY,
        pattern=r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
        is_token=True,
        may_be_glued=True,
        sieve="A3T[A-Z0-9]|A(?:KI|SI|BI|CC)A[A-Z0-9]",
        examples=("«AKIA<u16>»", "id=«ASIA<u16>»;"),
        counterexamples=("AKIAsmall0123456789a", "ASIA-PACIFIC-REGION-0001"),
    ),
    Rule(
        name="aws_secret_key",
        kind="AWS key",
        replacement=AWS_KEY,
        pattern=rf"(?i:aws.{{0,20}}?(?:secret|sk)|secret_?access_?key|SecretAccessKey).{{0,20}}?"
        rf"[=:>, \t\"'\\]{{1,8}}(?:\\+[nrt])*({_AWS_SECRET})(?:[^A-Za-z0-9/+]|$)",
        sieve="(?i)aws.{0,20}(?:secret|sk)|secret_?access_?key",
        examples=(
            "aws_secret_access_key = «<b40>»",
            'AWS_SECRET_ACCESS_KEY="«<b40>»"',
            '{"SecretAccessKey": "«<b40>»"}',
        ),
        counterexamples=(
            "aws_secret_access_key = os.environ['AWS_SECRET_ACCESS_KEY_OF_THIS_HOST_HERE']",
        ),
    ),
    Rule(
        name="aws_session_token",
        kind="AWS key",
        replacement=AWS_KEY,
        pattern=rf"(?i:aws[_-]?(?:session|security)[_-]?token){_GIVEN}([A-Za-z0-9/+%._-]{{16,}}={{0,2}})"
        rf"|(?i:(?:session|security)_?token){_GIVEN}([A-Za-z0-9/+%]{{100,}}={{0,2}})",
        sieve="(?i)(?:session|security)[_-]?token",
        examples=("aws_session_token = «IQoJb3JpZ2luX2Vj<b300>»", '"SessionToken":"«<b200>»"'),
    ),
    Rule(
        name="aws_bedrock_key",
        kind="AWS key",
        replacement=AWS_KEY,
        pattern=r"(?:ABSK|bedrock-api-key-)[A-Za-z0-9+/]{60,}={0,2}",
        is_token=True,
        may_be_glued=True,
        sieve="ABSK|bedrock-api-key-",
        examples=("«ABSK<b130>=»",),
    ),
)
