"""Tokens of payment and shop systems, and of password managers."""

from hivepipe.redaction.rule import BASE64, PADDING, WORDS, token

PAYMENTS = (
    token(
        "stripe",
        r"[rs]k_(?:live|test|prod)_[A-Za-z0-9]{10,}|whsec_(?:[A-Za-z0-9+/]|%2[BbFf]){16,}=*",
        "«rk_live_<A24>»",
        "«sk_test_<A10>»",
        "«whsec_<A32>»",
        sieve="[rs]k_(?:live|test|prod)_|whsec_",
    ),
    token(
        "square",
        r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,}|EAAA[A-Za-z0-9_-]{60}\b",
        "«sq0atp-<w22>»",
        "«sq0csp-<w43>»",
        "«EAAA<w60>»",
        sieve="sq0|EAAA",
    ),
    token(
        "shopify",
        r"shp(?:at|ca|pa|ss|tka)_[a-fA-F0-9]{32}",
        "«shpat_<h32>»",
        "«shpss_<h32>»",
        sieve="shp(?:at|ca|pa|ss|tka)_",
    ),
    token(
        "paypal_braintree",
        r"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}",
        "«access_token$production$<l16>$<h32>»",
        sieve=r"access_token\$",
    ),
    token(
        "plaid",
        r"access-(?:sandbox|development|production)-[0-9a-f-]{36}",
        "«access-production-<h8>-<h4>-<h4>-<h4>-<h12>»",
        sieve="access-(?:sandbox|development|production)-",
    ),
    token(
        "flutterwave",
        r"FLW(?:SECK|PUBK)(?:_TEST)?-[A-Za-z0-9]{12,}(?:-X)?",
        "«FLWSECK_TEST-<h32>-X»",
        sieve="FLW(?:SECK|PUBK)",
    ),
    token("duffel", r"duffel_(?:test|live)_[A-Za-z0-9_=-]{43}", "«duffel_live_<w43>»"),
    token("easypost", r"EZ[AT]K[A-Za-z0-9]{54}", "«EZAK<A54>»", sieve="EZ[AT]K"),
    token("shippo", r"shippo_(?:live|test)_[a-fA-F0-9]{40}", "«shippo_live_<h40>»"),
    token("facebook", r"EAA[A-Za-z0-9]{80,}", "«EAAC<A180>»", unless=".{4}.*AAA.*"),
    token("onepassword_service", rf"ops_eyJ{BASE64}{{100,}}{PADDING}", "«ops_eyJ<A260>»"),
    token(
        "onepassword",
        r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}",
        "«A3-<u6>-<u6>-<u5>-<u5>-<u5>-<u5>»",
    ),
    token(
        "paddle",
        r"pdl_(?:live|sdbx)_apikey_[A-Za-z0-9_]{40,}",
        "«pdl_live_apikey_<l26>_<A22>_<A3>»",
        sieve="pdl_(?:live|sdbx)_",
    ),
    token(
        "mercury",
        r"(?:secret-token:)?mercury_(?:production|sandbox)_[a-z]{3,6}_[A-Za-z0-9]{40,}",
        "«mercury_production_wma_<A44>»",
        sieve="mercury_(?:production|sandbox)_",
    ),
    token(
        "razorpay",
        r"rzp_(?:live|test)_[A-Za-z0-9]{14,}",
        "«rzp_live_<A14>»",
        sieve="rzp_(?:live|test)_",
    ),
    token("ramp", r"ramp_sec_[A-Za-z0-9]{40,}", "«ramp_sec_<A48>»"),
    token(
        "polar",
        r"polar_(?:at|oat|pat)_[A-Za-z0-9_-]{20,}",
        "«polar_oat_<w40>»",
        sieve="polar_(?:at|oat|pat)_",
    ),
    token(
        "xendit",
        r"xnd_(?:production|development)_[A-Za-z0-9]{50,}",
        "«xnd_production_<A60>»",
        sieve="xnd_(?:production|development)_",
    ),
    token(
        "persona",
        r"persona_(?:production|sandbox)_[a-z0-9_-]{20,}",
        "«persona_production_<l36>»",
        sieve="persona_(?:production|sandbox)_",
    ),
    token("proof", r"prf_(?:cli_)?[A-Za-z0-9_-]{24,}", "«prf_cli_<w40>»", unless=WORDS),
    token(
        "asaas",
        r"\$aact_(?:prod|hmlg)_[A-Za-z0-9_-]{20,}",
        "«$aact_prod_<w60>»",
        sieve=r"aact_(?:prod|hmlg)_",
    ),
    token(
        "onfido",
        r"api_(?:live|sandbox)(?:_ca|_us)?\.[A-Za-z0-9_-]{20,}",
        "«api_live_us.<w32>»",
        sieve="api_(?:live|sandbox)",
    ),
)
