"""Tokens of places where code is kept, built and discussed."""

from hivepipe.redaction.rule import BASE64, PADDING, START, WORDS, token

CODE_HOSTS = (
    token(
        "github",
        r"gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}",
        "«ghp_<A36>»",
        "«ghu_<A36>»",
        "«github_pat_11<A20>_<A59>»",
        sieve="gh[pousr]_[A-Za-z0-9]|github_pat_",
    ),
    token(
        "gitlab",
        r"(?:gl(?:pat|dt|rt|ptt|rtr|oas|ft|imt|agent|soat|ffct|wt)-[A-Za-z0-9_.-]{20,}"
        r"|glcbt-[0-9a-zA-Z]{1,5}_[A-Za-z0-9_-]{20,}|GR1348941[A-Za-z0-9_-]{20,})",
        "«glpat-<w20>»",
        "«glptt-<h40>»",
        "«glcbt-64_<w20>»",
        "«GR1348941<w20>»",
        "«gldt-<w20>»",
        "«glrt-<w20>»",
        sieve="gl(?:pat|dt|rt|ptt|rtr|oas|ft|imt|agent|soat|ffct|wt|cbt)-|GR1348941",
        unless=WORDS,
    ),
    token("bitbucket", r"ATBB[A-Za-z0-9]{32,}", "«ATBB<A32>»"),
    token(
        "sourcegraph",
        r"sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}",
        "«sgp_<h40>»",
        "«sgp_local_<h40>»",
    ),
    token("linear", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}", "«lin_api_<A40>»", sieve="lin_"),
    token("atlassian", r"AT[AC]T[A-Za-z0-9][A-Za-z0-9_=-]{60,}", "«ATATT3<w186>»", sieve="AT[AC]T"),
    token("bitbucket_data_center", rf"BBDC-{BASE64}{{32,}}{PADDING}", "«BBDC-<b44>»"),
    token("gitlab_cookie", r"_gitlab_session=[0-9a-z]{32}", "«_gitlab_session=<h32>»"),
    token(
        "buildkite",
        r"bk(?:ua|aa|aj|ar|ct|pt|pat|ps)_[A-Za-z0-9_-]{40,}",
        "«bkua_<l40>»",
        sieve="bk(?:ua|aa|aj|ar|ct|pt|pat|ps)_",
    ),
    token(
        "circleci",
        r"CCI(?:PAT|PRJ)_[A-Za-z0-9]{22}_[a-z0-9]{40}",
        "«CCIPAT_<A22>_<h40>»",
        sieve="CCI(?:PAT|PRJ)_",
    ),
    token("deno", r"dd[po]_[A-Za-z0-9]{36}", "«ddp_<A36>»", sieve=START + "dd[po]_"),
    token(
        "mergify", r"mergify_application_key_[A-Za-z0-9_-]{40,}", "«mergify_application_key_<w64>»"
    ),
    token("lichess", r"lip_[A-Za-z0-9]{20,}", "«lip_<A20>»", sieve=START + "lip_[A-Za-z0-9]"),
)
